"""Every other environment, by Gymnasium's SyncVectorEnv, with the same errors, seeds and episode statistics.

One process on purpose: AsyncVectorEnv costs more CPU time in every environment of docs/speed.md, and more wall-clock
time as well where a step is as cheap as Lunar Lander's.
"""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl_worlds.same_step import EpisodeStatistics, checked_actions, seeds_of


class GymnasiumEnvs(SyncVectorEnv):
    """SyncVectorEnv with SAME_STEP autoreset."""

    def __init__(self, env_id, num_envs, seed):
        super().__init__([lambda: gym.make(env_id)] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
        self.spec = self.envs[0].spec
        self.action_space.seed(seed)
        self._first_seed = seed
        self._ready = False

    def reset(self, *, seed=None, options=None):
        seed, self._first_seed, self._ready = seeds_of(seed, self._first_seed, self.num_envs), None, True
        self._statistics = EpisodeStatistics(self.num_envs)
        return super().reset(seed=seed, options=options)

    def step(self, actions):
        if not self._ready:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        actions = checked_actions(actions, self.single_action_space, self.num_envs)
        observations, rewards, terminated, truncated, infos = super().step(actions)
        self._statistics.add(rewards)
        done = np.logical_or(terminated, truncated)
        if done.any():
            self._statistics.close(done, infos)
        return observations, rewards, terminated, truncated, infos
