"""What benchmarks.train runs for each assignment, and what it should reach.

An assignment has runs: a label and a function

    measure(defined, seed, short) -> record

defined  dict   what the solution notebook defines (grading.solutions.load)
seed     int
short    bool   a rehearsal: a few steps, to see that everything works
record   dict   numbers only a training run knows; the keys are those of `record_of`
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Recipe:
    runs: dict[str, Callable]  # label -> measure
    goals: dict[str, dict]     # label -> {"mean": at least, "cpu_seconds": at most}, for every seed
    solved: float              # the return that `first_solved` waits for


def record_of(returns, steps, cpu_seconds, wall_seconds, first_solved):
    """The record of one training run.

    returns       [E]    returns of the evaluation episodes
    first_solved  None, or (steps, CPU-seconds) when the mean of the last 100 training episodes first passed `solved`
    """
    mean, half = float(np.mean(returns)), float(1.96 * np.std(returns, ddof=1) / len(returns) ** 0.5)
    return {
        "steps": steps,
        "cpu_seconds": round(cpu_seconds, 2),
        "wall_seconds": round(wall_seconds, 2),
        "cpu_us_per_step": round(1e6 * cpu_seconds / steps, 1),
        "first_solved": first_solved and {"steps": first_solved[0], "cpu_seconds": round(first_solved[1], 2)},
        "evaluation": {
            "episodes": len(returns),
            "mean": round(mean, 1),
            "interval_95": [round(mean - half, 1), round(mean + half, 1)],
            "returns": [round(float(x), 1) for x in returns],
        },
    }


def lunar_lander(settings_of):
    """measure() for a run of 02_lunar_lander; settings_of(defined) -> its Settings."""

    def measure(defined, seed, short):
        settings = replace(settings_of(defined), seed=seed)
        settings = settings.for_rehearsal() if short else settings
        solved_at = []
        cpu, wall = time.process_time(), time.perf_counter()

        def watch(run):
            if not solved_at and len(run.returns) >= 100 and np.mean(run.returns[-100:]) >= LUNAR_LANDER_SOLVED:
                solved_at.append((run.steps, time.process_time() - cpu))

        run = defined["train"](settings, after_update=watch)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        returns = defined["evaluate"](run, episodes=2 if short else 100)
        return record_of(returns, run.steps, cpu, wall, solved_at[0] if solved_at else None)

    return measure


def robot(env_id, total_steps, checkpoints=()):
    """measure() for a run of 04_continuous_control; its record also has a curve, and evaluations at the checkpoints."""

    def measure(defined, seed, short):
        settings = replace(defined["Settings"](), env_id=env_id, total_steps=total_steps, seed=seed)
        settings = settings.for_rehearsal() if short else settings
        episodes, ahead, curve, reached, solved_at = 2 if short else 100, list(checkpoints), [], {}, []
        cpu, wall = time.process_time(), time.perf_counter()

        def evaluation(run):
            return defined["evaluate"](defined["pilot"](run), env_id, episodes=episodes)

        def watch(run):
            nonlocal cpu, wall
            paused = time.process_time(), time.perf_counter()
            recent = float(np.mean(run.returns[-100:])) if run.returns else None
            if run.steps % CURVE_EVERY < settings.num_envs * settings.num_steps:
                curve.append([run.steps, recent and round(recent, 1)])
            if not solved_at and len(run.returns) >= 100 and recent >= ANT_RUNS:
                solved_at.append((run.steps, paused[0] - cpu))
            if ahead and run.steps >= ahead[0]:
                reached[str(ahead.pop(0))] = round(float(np.mean(evaluation(run))), 1)
            # Time spent on looking is no training time.
            cpu, wall = cpu + time.process_time() - paused[0], wall + time.perf_counter() - paused[1]

        run = defined["train"](settings, after_update=watch)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        record = record_of(evaluation(run), run.steps, cpu, wall, solved_at[0] if solved_at else None)
        return {**record, "env_id": env_id, "device": defined["DEVICE"], "evaluation_mean_at": reached, "curve": curve}

    return measure


def cart_pole(settings_of):
    """measure() for a run of 03_ppo_details; settings_of(defined) -> its PPOArgs."""

    def measure(defined, seed, short):
        args = replace(settings_of(defined), seed=seed, log_dir="")
        args = replace(args, total_timesteps=2 * args.batch_size) if short else args
        solved_at, returns = [], []
        cpu, wall = time.process_time(), time.perf_counter()

        def watch(steps, numbers, agent):
            returns.append(numbers.get("charts/episodic_return", np.nan))
            if not solved_at and len(returns) >= 10 and np.nanmean(returns[-10:]) >= CART_POLE_SOLVED:
                solved_at.append((steps, time.process_time() - cpu))

        agent = defined["train_ppo"](args, after_update=watch)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        evaluated = defined["evaluate"](agent, args.env_id, episodes=2 if short else 100)
        return record_of(evaluated, args.num_updates * args.batch_size, cpu, wall, solved_at[0] if solved_at else None)

    return measure


CART_POLE_SOLVED = 475.0  # https://gymnasium.farama.org/environments/classic_control/cart_pole/
CURVE_EVERY = 50_000
ANT_RUNS = 4500.0  # what PPO with envpool and rl_games publishes for Ant-v5, see docs/speed.md

LUNAR_LANDER_SOLVED = 200.0  # https://gymnasium.farama.org/environments/box2d/lunar_lander/

RECIPES = {
    "02_lunar_lander": Recipe(
        runs={
            "500k": lunar_lander(lambda defined: defined["Settings"]()),
            "300k": lunar_lander(lambda defined: defined["Settings"](total_steps=300_000)),
            "experiment 0": lunar_lander(lambda defined: defined["EXPERIMENT_0"]),
        },
        goals={"500k": {"mean": 270, "cpu_seconds": 60}, "300k": {"mean": 250, "cpu_seconds": 36}},
        solved=LUNAR_LANDER_SOLVED,
    ),
    "03_ppo_details": Recipe(
        runs={
            "defaults": cart_pole(lambda defined: defined["PPOArgs"]()),
            "fast": cart_pole(lambda defined: defined["FAST"]),
        },
        goals={"defaults": {"mean": 475, "cpu_seconds": 120}, "fast": {"mean": 500, "cpu_seconds": 10}},
        solved=CART_POLE_SOLVED,
    ),
    "04_continuous_control": Recipe(
        runs={
            "Ant 3M": robot("Ant-v5", 3_000_000, checkpoints=(400_000, 1_000_000, 2_000_000)),
            "HalfCheetah 1M": robot("HalfCheetah-v5", 1_000_000),
            "Humanoid 1M": robot("Humanoid-v5", 1_000_000),
        },
        goals={"Ant 3M": {"mean": 4500, "cpu_seconds": 900}},
        solved=ANT_RUNS,
    ),
}
