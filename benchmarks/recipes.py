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
}
