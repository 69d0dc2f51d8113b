"""CartPole in numpy: N carts in a handful of array operations, with the numbers of Gymnasium's CartPoleEnv."""

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.utils import maybe_parse_reset_bounds

from rl_worlds.same_step import SameStepEnv


class CartPole(SameStepEnv):
    """N carts. State: x, its speed, theta, its speed; each [N] float64."""

    def __init__(self, env_id, num_envs, seed):
        example = gym.make(env_id)
        super().__init__(example, num_envs, seed)
        self._one = example.unwrapped  # holds the physical constants
        self._state = np.zeros((4, num_envs))

    def _advance(self, actions):
        one, (x, x_speed, theta, theta_speed) = self._one, self._state
        force = np.where(actions == 1, one.force_mag, -one.force_mag)
        cos, sin = np.cos(theta), np.sin(theta)
        # Barto, Sutton and Anderson 1983, without friction; the order of operations is Gymnasium's.
        push = (force + one.polemass_length * np.square(theta_speed) * sin) / one.total_mass
        theta_acc = (one.gravity * sin - cos * push) / (
            one.length * (4.0 / 3.0 - one.masspole * np.square(cos) / one.total_mass))
        x_acc = push - one.polemass_length * theta_acc * cos / one.total_mass
        self._state = np.stack([x + one.tau * x_speed, x_speed + one.tau * x_acc,
                                theta + one.tau * theta_speed, theta_speed + one.tau * theta_acc])
        terminated = ((np.abs(self._state[0]) > one.x_threshold)
                      | (np.abs(self._state[2]) > one.theta_threshold_radians))
        return self._state.T.astype(np.float32), np.ones(self.num_envs), terminated

    def _restart(self, which, options):
        low, high = maybe_parse_reset_bounds(options, -0.05, 0.05)
        for i in which:
            self._state[:, i] = self._generators[i].uniform(low=low, high=high, size=(4,))
        return self._state[:, which].T.astype(np.float32)

    def close_extras(self, **kwargs):
        self._one.close()
