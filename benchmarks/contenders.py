"""What benchmarks.speed measures: environments, and training with the settings that each side recommends.

CPU time counts all threads and worker processes. Setting up, the first steps and importing are not counted.
"""

import importlib.util
import time

import numpy as np

NUM_ENVS, THREADS = 16, 2
ENVIRONMENTS = ("one environment", "SyncVectorEnv", "AsyncVectorEnv", "envpool", "ours")
PLAN = {
    "environments": {
        **dict.fromkeys(("Ant-v5", "HalfCheetah-v5", "Humanoid-v5"), (*ENVIRONMENTS, "limit: mj_step")),
        **dict.fromkeys(("LunarLander-v3", "CartPole-v1"), ENVIRONMENTS),
    },
    "training": {"LunarLander-v3": ("Stable-Baselines3", "ours"), "Ant-v5": ("Stable-Baselines3", "ours")},
}
SECONDS = 3.0  # about so long is one measurement of an environment
TRAINING_STEPS = {"LunarLander-v3": 65_536, "Ant-v5": 40_960}  # whole rollouts for both sides
# github.com/DLR-RM/rl-baselines3-zoo, hyperparams/ppo.yml. What is not named there is the library's default.
ZOO = {
    "LunarLander-v3": {"n_envs": 16, "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4,
                       "ent_coef": 0.01},
    "Ant-v5": {"n_envs": 1, "normalize": True},
}


def measure(kind, env_id, name, short):
    """{"cpu_us", "wall_us"} per step of one environment, "steps"; or {"skipped": why}."""
    package = {"envpool": "envpool", "Stable-Baselines3": "stable_baselines3"}.get(name)
    if package and importlib.util.find_spec(package) is None:
        return {"skipped": f"{package} is not installed: pip install -e '.[bench]'"}
    if kind == "training":
        import torch

        torch.set_num_threads(1)
        return (train_peer if package else train_ours)(env_id, short)
    if name == "limit: mj_step":
        return measure_limit(env_id, short)
    return measure_environment(env_id, name, short)


class Clock:
    """CPU and wall time between start() and stop(), the CPU time of `workers` (process ids) included."""

    def __init__(self, workers=()):
        self.workers = list(workers)

    def start(self):
        self.cpu, self.wall = self._cpu(), time.perf_counter()

    def stop(self, steps):
        cpu, wall = self._cpu() - self.cpu, time.perf_counter() - self.wall
        return {"cpu_us": round(1e6 * cpu / steps, 2), "wall_us": round(1e6 * wall / steps, 2), "steps": steps}

    def _cpu(self):
        total = time.process_time()
        if self.workers:
            import psutil

            total += sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in self.workers)
        return total


def measure_environment(env_id, name, short):
    """Random actions, drawn before the clock starts."""
    import gymnasium as gym
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

    import rl_envs

    makers, workers = [lambda: gym.make(env_id)] * NUM_ENVS, ()
    if name == "one environment":
        return measure_one(gym.make(env_id), short)
    if name == "envpool":
        import envpool

        envs = envpool.make_gymnasium(env_id, num_envs=NUM_ENVS, num_threads=THREADS, seed=0)
    elif name == "ours":
        envs = rl_envs.make_envs(env_id, NUM_ENVS, threads=THREADS)
    else:
        kind = {"SyncVectorEnv": SyncVectorEnv, "AsyncVectorEnv": AsyncVectorEnv}[name]
        envs = kind(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        workers = [process.pid for process in getattr(envs, "processes", ())]
    envs.reset()
    space = gym.make(env_id).action_space
    space.seed(0)
    actions = [np.stack([space.sample() for _ in range(NUM_ENVS)]) for _ in range(100)]
    if name == "envpool" and actions[0].dtype == np.float32:
        actions = [a.astype(np.float64) for a in actions]

    def steps(n):
        for i in range(n):
            envs.step(actions[i % 100])

    result = timed(steps, NUM_ENVS, short, workers)
    envs.close()
    return result


def measure_one(env, short):
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(100)]

    def steps(n):
        for i in range(n):
            _, _, terminated, truncated, _ = env.step(actions[i % 100])
            if terminated or truncated:
                env.reset()

    return timed(steps, 1, short)


def measure_limit(env_id, short):
    """mj_step and mj_rnePostConstraint alone, on one thread, on the states that an environment goes through."""
    import gymnasium as gym
    import mujoco

    env = gym.make(env_id)
    one = env.unwrapped
    env.reset(seed=0)
    env.action_space.seed(0)
    # Random actions lead to falls and resets, and a robot on the ground costs more than one in the air.
    actions, starts = [], {}
    for i in range(400):
        actions.append(env.action_space.sample())
        _, _, terminated, truncated, _ = env.step(actions[-1])
        if terminated or truncated:
            env.reset()
            starts[i + 1] = one.data.qpos.copy(), one.data.qvel.copy()
    data = mujoco.MjData(one.model)
    data.qpos[:] = one.init_qpos

    def steps(n):
        for i in range(n):
            if i % 400 in starts:
                mujoco.mj_resetData(one.model, data)
                data.qpos[:], data.qvel[:] = starts[i % 400]
            data.ctrl[:] = actions[i % 400]
            mujoco.mj_step(one.model, data, nstep=one.frame_skip)
            mujoco.mj_rnePostConstraint(one.model, data)

    return timed(steps, 1, short)


def timed(steps, num_envs, short, workers=()):
    """Calls steps(n) with an n that takes about SECONDS."""
    steps(20)
    begun = time.perf_counter()
    steps(50)
    n = 10 if short else max(50, int(50 * SECONDS / (time.perf_counter() - begun)))
    clock = Clock(workers)
    clock.start()
    steps(n)
    return clock.stop(n * num_envs)


def train_ours(env_id, short):
    """The solution notebooks' own train(), as a student runs it; the first rollout and update are not counted."""
    from dataclasses import replace

    from grading import solutions

    defined = solutions.load({"LunarLander-v3": "02_lunar_lander", "Ant-v5": "04_continuous_control"}[env_id])
    settings = replace(defined["Settings"](), total_steps=TRAINING_STEPS[env_id])
    settings = settings.for_rehearsal() if short else settings
    clock, begun = Clock(), []

    def watch(run):
        if not begun:
            begun.append(run.steps)
            clock.start()

    run = defined["train"](settings, after_update=watch)
    return clock.stop(run.steps - begun[0])


def train_peer(env_id, short):
    """Stable-Baselines3 with the rl-zoo settings; the first rollout and update are not counted."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    settings = dict(ZOO[env_id])
    envs = make_vec_env(env_id, n_envs=settings.pop("n_envs"), seed=0)
    if settings.pop("normalize", False):
        envs = VecNormalize(envs, gamma=settings.get("gamma", 0.99))
    clock, begun = Clock(), []

    class Watch(BaseCallback):
        def _on_rollout_start(self):
            if self.num_timesteps and not begun:
                begun.append(self.num_timesteps)
                clock.start()

        def _on_step(self):
            return True

    model = PPO("MlpPolicy", envs, device="cpu", seed=0, **(settings | ({"n_steps": 64} if short else {})))
    rollout = model.n_steps * model.n_envs
    model.learn(3 * rollout if short else max(TRAINING_STEPS[env_id], 3 * rollout), Watch())
    return clock.stop(model.num_timesteps - begun[0])
