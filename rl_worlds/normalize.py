"""Observations of mean 0 and variance 1, rewards of a steady scale, over any vector environment with SAME_STEP."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from safetensors.numpy import load_file, save_file


class Moments:
    """Mean and variance of everything seen so far, merged batch by batch.

    source  Chan, Golub and LeVeque 1979: how the moments of two samples combine
    """

    def __init__(self, shape):
        self.count, self.mean, self.var = 0.0, np.zeros(shape), np.ones(shape)

    def update(self, batch):
        """batch [B, ...]"""
        count, mean, var = len(batch), batch.mean(axis=0), batch.var(axis=0)
        total, apart = self.count + count, mean - self.mean
        self.var = (self.count * self.var + count * var + apart**2 * self.count * count / total) / total
        self.mean = self.mean + apart * count / total
        self.count = total


class Normalized(VectorWrapper):
    """`envs` with normalised observations, and rewards divided by the running standard deviation of the return.

    envs    a vector environment with SAME_STEP autoreset, out of make_envs
    gamma   discount of the running return, the learner's own
    clip    normalised observations and scaled rewards stay within [-clip, clip]

    infos["final_obs"] is normalised too; infos["episode"] keeps the true returns. freeze() stops learning, for
    evaluation; save(path) and load(path) keep the statistics in a safetensors file, which holds numbers and no code.
    """

    def __init__(self, envs, gamma=0.99, clip=10.0):
        mode = envs.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"envs have autoreset_mode={mode}: filler rows would enter the statistics; use make_envs")
        super().__init__(envs)
        self.gamma, self.clip, self.frozen = gamma, clip, False
        self.observations, self.returns = Moments(envs.single_observation_space.shape), Moments(())
        self._running = np.zeros(envs.num_envs)
        self.single_observation_space = gym.spaces.Box(-clip, clip, envs.single_observation_space.shape, np.float32)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, envs.num_envs)

    def reset(self, *, seed=None, options=None):
        observations, infos = self.env.reset(seed=seed, options=options)
        self._running[:] = 0.0
        self._learn(observations)
        return self.normalize(observations), infos

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._learn(observations)
        if not self.frozen:
            self._running = self.gamma * self._running + rewards
            self.returns.update(self._running)
            self._running[terminated | truncated] = 0.0
        if "final_obs" in infos:
            for i in np.flatnonzero(infos["_final_obs"]):
                infos["final_obs"][i] = self.normalize(infos["final_obs"][i])
        scaled = np.clip(rewards / np.sqrt(self.returns.var + 1e-8), -self.clip, self.clip)
        return self.normalize(observations), scaled, terminated, truncated, infos

    def normalize(self, observations):
        """[..., D] as the policy sees them, float32."""
        scaled = (observations - self.observations.mean) / np.sqrt(self.observations.var + 1e-8)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)

    def freeze(self, frozen=True):
        """From now on the statistics stay as they are; freeze(False) lets them learn again. Returns self."""
        self.frozen = frozen
        return self

    def save(self, path):
        save_file({f"{name}.{key}": np.asarray(value, dtype=np.float64)
                   for name in ("observations", "returns") for key, value in vars(getattr(self, name)).items()}, path)

    def load(self, path):
        """The statistics that save() wrote. Returns self. ValueError where they are of another environment."""
        stored = load_file(path)
        shape, ours = stored.get("observations.mean", np.zeros(0)).shape, self.observations.mean.shape
        if shape != ours:
            raise ValueError(f"{path} holds statistics of shape {shape}, these observations have {ours}")
        for name in ("observations", "returns"):
            for key in vars(getattr(self, name)):
                setattr(getattr(self, name), key, stored[f"{name}.{key}"])
        return self

    def _learn(self, observations):
        if not self.frozen:
            self.observations.update(observations)
