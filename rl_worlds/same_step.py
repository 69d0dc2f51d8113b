"""What all vector environments here share: seeding, action checks, time limit, autoreset and episode statistics."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class EpisodeStatistics:
    """Returns and lengths of the running episodes."""

    def __init__(self, num_envs):
        self.returns = np.zeros(num_envs)
        self.lengths = np.zeros(num_envs, dtype=np.int64)

    def add(self, rewards):
        self.returns += rewards
        self.lengths += 1

    def close(self, done, infos):
        """Writes the ended episodes into infos, as Gymnasium's RecordEpisodeStatistics names them, and starts anew.

        done    [N] bool
        """
        infos["episode"] = {"r": np.where(done, self.returns, 0.0), "l": np.where(done, self.lengths, 0)}
        infos["_episode"] = done.copy()
        self.returns[done] = 0.0
        self.lengths[done] = 0


class SameStepEnv(VectorEnv):
    """N environments that know how to restart some of them and how to advance all of them.

    A subclass writes
        _restart(which, options)   which [K] indices -> first observations [K, D]
        _advance(actions)          -> (observations [N, D], rewards [N], terminated [N])
    """

    def __init__(self, example, num_envs, seed):
        """example: one environment out of gymnasium.make, whose spaces and time limit count."""
        self.spec = example.spec
        self.num_envs = num_envs
        self.metadata = {**example.metadata, "render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self.single_observation_space, self.single_action_space = example.observation_space, example.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.action_space.seed(seed)
        self._first_seed = seed
        self._limit = example.spec.max_episode_steps
        self._generators = [None] * num_envs
        self._statistics = EpisodeStatistics(num_envs)

    def reset(self, *, seed=None, options=None):
        """Starts all episodes anew. seed: an int, environment i takes seed + i; or a list with one for each."""
        for i, one in enumerate(seeds_of(seed, self._first_seed, self.num_envs)):
            if one is not None or self._generators[i] is None:
                self._generators[i], _ = seeding.np_random(one)
        self._first_seed = None
        self._statistics = EpisodeStatistics(self.num_envs)
        return self._restart(np.arange(self.num_envs), options), {}

    def step(self, actions):
        if self._generators[0] is None:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        actions = checked_actions(actions, self.single_action_space, self.num_envs)
        observations, rewards, terminated = self._advance(actions)
        self._statistics.add(rewards)
        truncated = self._statistics.lengths >= self._limit
        done, infos = terminated | truncated, {}
        if done.any():
            which = np.flatnonzero(done)
            final = np.full(self.num_envs, None, dtype=object)
            for i in which:
                final[i] = observations[i].copy()
            infos = {"final_obs": final, "_final_obs": done}
            self._statistics.close(done, infos)
            observations[which] = self._restart(which, None)
        return observations, rewards, terminated, truncated, infos


def seeds_of(seed, first_seed, num_envs):
    """One seed for each environment; None: go on with the generator that is there."""
    seed = first_seed if seed is None else seed
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + i for i in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(f"seed has {len(seed)} entries for {num_envs} environments")
    return list(seed)


def checked_actions(actions, space, num_envs):
    """`actions` as a numpy array of the right shape, or a ValueError that says what is wrong with them."""
    if hasattr(actions, "detach"):
        actions = actions.detach().cpu()
    actions = np.asarray(actions)
    expected = (num_envs, *space.shape)
    if actions.shape != expected:
        raise ValueError(f"actions have shape {actions.shape}, expected {expected}: one action for each environment")
    if isinstance(space, Discrete):
        if actions.dtype.kind not in "iu":
            raise ValueError(f"actions have dtype {actions.dtype}, expected whole numbers")
        wrong = (actions < space.start) | (actions >= space.start + space.n)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(f"actions[env={i}] = {actions[i]}, expected {space.start} to {space.start + space.n - 1}")
    elif actions.dtype.kind == "f" and not np.isfinite(actions).all():
        i = int(np.argwhere(~np.isfinite(actions))[0, 0])
        raise ValueError(f"actions[env={i}] = {actions[i]} is not finite: the policy's weights or its inputs are probably "
                         f"NaN already; look at the losses and gradients of the last update")
    return actions
