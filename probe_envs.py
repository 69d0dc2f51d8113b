"""Tiny environments with known answers, for finding out which part of an agent is broken.

Importing this module registers `Probe1-v0` to `Probe5-v0` and the probes of our own, `ProbeBoundary-v0` and so on. Each
class is a page: what happens, what a right agent knows in the end, and which mistake shows here. The answers stand
as data in `.answers`.

    envs = gym.make_vec("Probe3-v0", num_envs=4)    # fast: all copies in one numpy step, SAME_STEP autoreset
    env = gym.make("Probe3-v0")                     # a single one

N copies, D numbers in an observation.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


@dataclass(frozen=True)
class Answer:
    """What a right agent knows at one observation; None where the probe says nothing about it.

    obs      [D]       the observation
    value    number, or gamma -> number: V(obs)
    probs    [A]       probabilities of the actions
    mean     [A]       mean of a continuous action
    """

    obs: tuple
    value: float | Callable | None = None
    probs: tuple | None = None
    mean: tuple | None = None

    def value_at(self, gamma):
        """V(obs) for a discount, None if the probe does not say."""
        return self.value(gamma) if callable(self.value) else self.value


def _steady_reward(reward, steps, gamma):
    """The discounted sum of the same reward over a number of steps."""
    return reward * sum(gamma**k for k in range(steps))


class Probe(VectorEnv):
    """N copies of a probe, stepped together. A subclass says how an episode starts and what an action does.

    obs      [N, D]  what the agent sees now
    steps    [N]     steps since the episode began
    memory   [N]     one number that an episode may remember
    """

    answers: tuple = ()
    low, high, size = -1.0, 1.0, 1  # of an observation; size is D
    single_action_space = Discrete(2)

    def __init__(self, num_envs=1, autoreset_mode=AutoresetMode.SAME_STEP, render_mode=None):
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode}
        self.single_observation_space = Box(self.low, self.high, (self.size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def start(self, copies):
        """First observations [len(copies), D] of the copies (indices) in which an episode begins."""
        return np.zeros((len(copies), self.size))

    def advance(self, action):
        """(observations [N, D], rewards, terminated, truncated) that the actions, [N] or [N, A], lead to."""
        raise NotImplementedError

    def reset(self, *, seed=None, options=None):
        if isinstance(seed, (list, tuple)):
            seed = int(np.random.SeedSequence(list(seed)).generate_state(1)[0])
        super().reset(seed=seed, options=options)
        self.obs = np.zeros((self.num_envs, self.size), np.float32)
        self.steps, self.memory = np.zeros(self.num_envs, int), np.zeros(self.num_envs)
        self.ended = np.zeros(self.num_envs, bool)
        self._begin(np.arange(self.num_envs))
        return self.obs.copy(), {}

    def step(self, actions):
        shape = self.action_space.shape
        obs, rewards, terminated, truncated = self.advance(np.asarray(actions).reshape(shape))
        rewards = np.array(rewards, np.float64)
        terminated, truncated = (np.array(np.broadcast_to(flag, self.num_envs)) for flag in (terminated, truncated))
        fresh = np.zeros(self.num_envs, bool)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            # The step after an end only resets: its action is ignored and its reward is 0.
            fresh = self.ended
            rewards[fresh] = 0.0
            terminated[fresh] = truncated[fresh] = False
        self.ended = terminated | truncated
        self.obs, self.steps = np.array(obs, np.float32), self.steps + 1
        infos = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self.ended.any():
            fresh = self.ended
            infos = {"final_obs": _rows(self.obs, fresh), "_final_obs": fresh.copy()}
        if fresh.any():
            self._begin(np.flatnonzero(fresh))
        return self.obs.copy(), rewards, terminated, truncated, infos

    def _begin(self, copies):
        self.steps[copies] = 0
        self.obs[copies] = self.start(copies)


class SingleProbe(gym.Env):
    """One copy of a probe as a plain environment."""

    def __init__(self, probe, render_mode=None):
        self.copies = probe(1, AutoresetMode.DISABLED, render_mode)
        self.render_mode = render_mode
        self.observation_space = self.copies.single_observation_space
        self.action_space = self.copies.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        obs, _ = self.copies.reset(seed=seed)
        return obs[0], {}

    def step(self, action):
        obs, rewards, terminated, truncated, _ = self.copies.step(np.asarray(action)[None])
        return obs[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), {}


class Probe1(Probe):
    """One step, reward 1, whatever you do: V(0) = 1.

    If it fails: the critic learns nothing. Value loss, its sign, its gradient, the optimizer.
    """

    answers = (Answer((0.0,), value=1.0),)

    def advance(self, action):
        return self.obs, np.ones(self.num_envs), True, False


class Probe2(Probe):
    """One step; the observation is -1 or +1, and so is the reward: V(-1) = -1, V(+1) = +1.

    If it fails where Probe1 passes: observations and returns come from different rows.
    """

    answers = (Answer((-1.0,), value=-1.0), Answer((1.0,), value=1.0))

    def start(self, copies):
        return self.np_random.choice((-1.0, 1.0), (len(copies), 1))

    def advance(self, action):
        return self.obs, self.obs[:, 0], True, False


class Probe3(Probe):
    """Two steps, observation 0 then 1; the reward 1 comes at the end: V(0) = gamma, V(1) = 1.

    If it fails where Probe2 passes: the discount, the bootstrap, or where episodes end.
    """

    low = 0.0
    answers = (Answer((0.0,), value=lambda gamma: gamma), Answer((1.0,), value=1.0))

    def advance(self, action):
        second = self.steps == 1
        return np.ones((self.num_envs, 1)), second.astype(float), second, False


class Probe4(Probe):
    """One step; action 1 is worth +1, action 0 is worth -1: pi = [0, 1], V(0) = 1.

    If it fails where Probe1 passes: the policy loss, its sign, the advantages, the actor's gradient.
    """

    answers = (Answer((0.0,), value=1.0, probs=(0.0, 1.0)),)

    def advance(self, action):
        return self.obs, 2.0 * action - 1.0, True, False


class Probe5(Probe):
    """One step; the observation is 0 or 1, and the action that equals it is worth +1, the other -1.

    Answer: pi(0) = [1, 0], pi(1) = [0, 1], V = 1 at both.
    If it fails where Probe4 passes: actions are paired with the observations of other rows.
    """

    low = 0.0
    answers = (Answer((0.0,), value=1.0, probs=(1.0, 0.0)), Answer((1.0,), value=1.0, probs=(0.0, 1.0)))

    def start(self, copies):
        return self.np_random.choice((0.0, 1.0), (len(copies), 1))

    def advance(self, action):
        return self.obs, np.where(action == self.obs[:, 0], 1.0, -1.0), True, False


class ProbeBoundary(Probe):
    """An episode without an end: the observation goes 0, 1, 0, 1, ..., and the reward equals it.

    Answer: V(1) = 1 + gamma V(0) and V(0) = gamma V(1), so V(1) = 1 / (1 - gamma^2) and V(0) = gamma V(1).
    Use it with short rollouts and a small gamma. If V is off: the last step of a rollout is treated as the end of an
    episode, next_value is that of another observation, or next_done is not what the last step said.
    """

    low = 0.0
    answers = (Answer((0.0,), value=lambda gamma: gamma / (1 - gamma**2)),
               Answer((1.0,), value=lambda gamma: 1 / (1 - gamma**2)))

    def advance(self, action):
        return 1 - self.obs, self.obs[:, 0], False, False


class ProbeTruncation(Probe):
    """Observation 0, then 1 for ever, reward 1 wherever the observation is 1; a clock truncates after 4 steps.

    Answer: the clock is not part of the task, so V(1) = 1 / (1 - gamma) and V(0) = gamma V(1).
    If V is too low: truncation is treated as termination, or bootstrapped from the observation after the reset.
    """

    low = 0.0
    answers = (Answer((0.0,), value=lambda gamma: gamma / (1 - gamma)),
               Answer((1.0,), value=lambda gamma: 1 / (1 - gamma)))

    def advance(self, action):
        return np.ones((self.num_envs, 1)), self.obs[:, 0], False, self.steps == 3


class ProbeTermination(Probe):
    """Reward 1 at every step; the observation says (begun, last step). After 4 steps the episode terminates, and in the
    same step a clock rings: termination wins, as always.

    Answer: V(0, 0) = 1 + gamma + gamma^2 + gamma^3 at the first step, V(1, 1) = 1 at the last one.
    If V is too high: something is bootstrapped after a termination, or the sum runs into the next episode.
    """

    low, size = 0.0, 2
    answers = (Answer((0.0, 0.0), value=lambda gamma: 1 + gamma + gamma**2 + gamma**3),
               Answer((1.0, 1.0), value=1.0))

    def advance(self, action):
        obs = np.stack([np.ones(self.num_envs), (self.steps == 2)], axis=1)
        return obs, np.ones(self.num_envs), self.steps == 3, self.steps == 3


class ProbeFiller(Probe):
    """One step, reward 1, and the last observation looks like the first: V(0) = 1. Use it with a small gamma.

    If V is near 1 / (2 - gamma): every other row is an autoreset filler, whose reward 0 is nobody's.
    The vector environment is in NEXT_STEP mode and the loop was written for SAME_STEP.
    """

    answers = (Answer((0.0,), value=1.0),)

    def advance(self, action):
        return self.obs, np.ones(self.num_envs), True, False


class ProbeLambda(Probe):
    """The first action decides the reward (+1 or -1) that comes 4 steps later; in between all looks the same.

    Answer: pi(1) = [0, 1] at the first observation. The critic cannot carry the news back, since the steps between
    cannot be told apart: only the sum over later TD errors can. If it fails where Probe4 passes: lambda is lost.
    """

    low = 0.0
    answers = (Answer((1.0,), probs=(0.0, 1.0)),)

    def start(self, copies):
        return np.ones((len(copies), 1))

    def advance(self, action):
        self.memory = np.where(self.steps == 0, 2.0 * action - 1.0, self.memory)
        last = self.steps == 4
        return np.zeros((self.num_envs, 1)), self.memory * last, last, False


class ProbeClip(Probe4):
    """Probe4, trained for ONE update with many epochs: the clip holds pi(1) near its start of 0.5.

    Answer: the ratio stops being pulled at 1 + clip_coef, so pi(1) ends a little above 0.5 * (1 + clip_coef); here the
    answer says "not at 1". If pi(1) is near 1: nothing clips. If it is still 0.5: nothing learns.
    """

    answers = (Answer((0.0,), probs=(0.4, 0.6)),)


class ProbeEntropy(Probe4):
    """Probe4 with a strong entropy bonus, ent_coef = 2: the policy stops where the two pulls are equal.

    With z = logit pi(1) and normalised advantages the pull of the reward on z is sqrt(p (1 - p)), that of the entropy
    ent_coef * z * p * (1 - p); they are equal at z = 1.18. Answer: pi(1) = 0.764.
    If pi(1) is near 1: the entropy bonus is missing or has the wrong sign.
    """

    answers = (Answer((0.0,), probs=(0.236, 0.764)),)


class ProbeMixup(Probe):
    """An episode of 3 steps in a good world, reward +1 a step, or in a bad one, -1.

    The observation says which world, and how many steps are left: (world, left / 3). V = world * (1 + gamma + ...).
    If V is pulled towards 0: rows of different environments are mixed, as by reshape where a transpose was meant.
    """

    size = 2
    answers = tuple(Answer((world, left / 3), value=functools.partial(_steady_reward, world, left))
                    for world in (-1.0, 1.0) for left in (1, 2, 3))

    def start(self, copies):
        self.memory[copies] = self.np_random.choice((-1.0, 1.0), len(copies))
        return np.stack([self.memory[copies], np.ones(len(copies))], axis=1)

    def advance(self, action):
        left = 1 - (self.steps + 1) / 3
        return np.stack([self.memory, left], axis=1), self.memory, self.steps == 2, False


class ProbeScale(Probe):
    """Continuous: two numbers to choose; the reward is 1 - |a - target|^2 with the target (obs, -obs / 2).

    Answer: the mean is (-1, 0.5) at -1 and (1, -0.5) at +1. If the mean is off: log-probabilities not summed over the
    action's dimensions, clipped actions stored, or a policy that cannot leave its scale.
    """

    single_action_space = Box(-2.0, 2.0, (2,), np.float32)
    answers = (Answer((-1.0,), mean=(-1.0, 0.5)), Answer((1.0,), mean=(1.0, -0.5)))

    def start(self, copies):
        return self.np_random.choice((-1.0, 1.0), (len(copies), 1))

    def advance(self, action):
        target = self.obs * np.array([1.0, -0.5])
        return self.obs, 1 - np.square(action - target).sum(axis=1), True, False


def _rows(obs, chosen):
    """The chosen observations as Gymnasium hands them out: an object array [N], None elsewhere."""
    rows = np.full(len(obs), None, dtype=object)
    for i in np.flatnonzero(chosen):
        rows[i] = obs[i].copy()
    return rows


# name -> class; the id is name-v0. Probe1 to Probe5 are the classic ladder (Andy Jones, "Debugging RL, without the
# agonizing pain"), the others look where that ladder does not.
PROBES = {probe.__name__: probe for probe in (
    Probe1, Probe2, Probe3, Probe4, Probe5, ProbeBoundary, ProbeTruncation, ProbeTermination, ProbeFiller, ProbeLambda,
    ProbeClip, ProbeEntropy, ProbeMixup, ProbeScale)}

for _name, _probe in PROBES.items():
    if f"{_name}-v0" not in gym.registry:
        gym.register(f"{_name}-v0", entry_point=functools.partial(SingleProbe, _probe), vector_entry_point=_probe)
