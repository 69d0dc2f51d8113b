"""What the tests of rl_gui share: an environment that needs no library to be drawn, and a watch."""

import time

import gymnasium as gym
import numpy as np


class PaintedEnv:
    """The least that rl_gui asks of an environment; counts how often it is drawn, and takes `seconds` for it."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, seconds=0.0, render_mode="rgb_array"):
        self.metadata = {"render_fps": 100}
        self.render_mode, self.seconds, self.drawn = render_mode, seconds, 0

    def reset(self, seed=None):
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(1), 1.0, self.steps == 5, False, {}

    def render(self):
        self.drawn += 1
        time.sleep(self.seconds)
        return np.full((40, 61, 3), self.drawn % 256, np.uint8)


def seconds_of(call, times):
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times
