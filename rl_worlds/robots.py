"""MuJoCo locomotion on threads: one model, one MjData for each environment.

mj_step releases Python's lock, so threads really run at the same time; what is left to Python is done for all
environments at once, in numpy. The numbers are those of Gymnasium's v5 environments: same integration, same order of
operations, same use of the random generators. Their constants are read from an environment that Gymnasium makes.
"""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np

from rl_worlds.same_step import SameStepEnv


class Body:
    """What a kind of robot observes and is rewarded for. `now` holds MjData fields of all environments, flattened: [N, ...].

    one   Gymnasium's environment of this kind, unwrapped
    """

    fields = ("qpos", "qvel")
    hidden = 1             # leading positions that are not observed: where the robot is says nothing of how to walk
    gaussian_speed = True  # how velocities are drawn at a reset

    def __init__(self, one):
        self.one = one

    def observe(self, now):
        return np.concatenate([now["qpos"][:, self.hidden:], now["qvel"]], axis=1)

    def place(self, now):
        """[N]: what the forward velocity is the difference of."""
        return now["qpos"][:, 0].copy()

    def healthy(self, now):
        return np.ones(len(now["qpos"]), dtype=bool)

    def rewards(self, now, actions, velocity, healthy):
        return self.one._forward_reward_weight * velocity - self.effort(actions)

    def effort(self, actions):
        return self.one._ctrl_cost_weight * np.square(actions).sum(axis=1)


class Hopper(Body):
    gaussian_speed = False

    def observe(self, now):
        return np.concatenate([now["qpos"][:, self.hidden:], np.clip(now["qvel"], -10, 10)], axis=1)

    def healthy(self, now):
        state = np.concatenate([now["qpos"], now["qvel"]], axis=1)[:, 2:]
        return self.upright(now) & within(state, self.one._healthy_state_range).all(axis=1)

    def upright(self, now):
        return (within(now["qpos"][:, 1], self.one._healthy_z_range)
                & within(now["qpos"][:, 2], self.one._healthy_angle_range))

    def rewards(self, now, actions, velocity, healthy):
        forward = self.one._forward_reward_weight * velocity + healthy * self.one._healthy_reward
        return forward - self.effort(actions)


class Walker2d(Hopper):
    def healthy(self, now):
        return self.upright(now)


class Ant(Body):
    fields = ("qpos", "qvel", "cfrc_ext", "xpos")
    hidden = 2

    def observe(self, now):
        forces = np.clip(now["cfrc_ext"][:, 6:], *self.one._contact_force_range)  # body 0 is the world
        return np.concatenate([now["qpos"][:, self.hidden:], now["qvel"], forces], axis=1)

    def place(self, now):
        return now["xpos"][:, 3 * self.one._main_body].copy()

    def healthy(self, now):
        low, high = self.one._healthy_z_range
        finite = np.isfinite(now["qpos"]).all(axis=1) & np.isfinite(now["qvel"]).all(axis=1)
        return finite & (low <= now["qpos"][:, 2]) & (now["qpos"][:, 2] <= high)

    def rewards(self, now, actions, velocity, healthy):
        forces = np.clip(now["cfrc_ext"], *self.one._contact_force_range)
        contact = self.one._contact_cost_weight * np.square(forces).sum(axis=1)
        forward = self.one._forward_reward_weight * velocity + healthy * self.one._healthy_reward
        return forward - (self.effort(actions) + contact)


class Humanoid(Body):
    fields = ("qpos", "qvel", "cinert", "cvel", "qfrc_actuator", "cfrc_ext", "xipos")
    hidden = 2
    gaussian_speed = False

    def observe(self, now):
        return np.concatenate([now["qpos"][:, 2:], now["qvel"], now["cinert"][:, 10:], now["cvel"][:, 6:],
                               now["qfrc_actuator"][:, 6:], now["cfrc_ext"][:, 6:]], axis=1)

    def place(self, now):
        mass = self.one.model.body_mass
        return now["xipos"][:, ::3] @ mass / mass.sum()

    def healthy(self, now):
        return within(now["qpos"][:, 2], self.one._healthy_z_range)

    def rewards(self, now, actions, velocity, healthy):
        contact = self.one._contact_cost_weight * np.square(now["cfrc_ext"]).sum(axis=1)
        costs = self.effort(actions.astype(np.float64)) + np.clip(contact, *self.one._contact_cost_range)
        return self.one._forward_reward_weight * velocity + healthy * self.one._healthy_reward - costs


ROBOTS = {"Ant-v5": Ant, "HalfCheetah-v5": Body, "Hopper-v5": Hopper, "Humanoid-v5": Humanoid, "Walker2d-v5": Walker2d}


def within(x, bounds):
    low, high = bounds
    return (low < x) & (x < high)


class Robots(SameStepEnv):
    """N robots of one kind."""

    def __init__(self, env_id, num_envs, seed, threads):
        import mujoco

        example = gym.make(env_id)
        super().__init__(example, num_envs, seed)
        self._mujoco = mujoco
        self._one = one = example.unwrapped
        self._body = ROBOTS[env_id](one)
        self._data = [mujoco.MjData(one.model) for _ in range(num_envs)]
        self._controls = [data.ctrl for data in self._data]
        # Views into every MjData: looking a field up through the binding takes longer than copying it.
        self._views = [[getattr(data, name).reshape(-1) for name in self._body.fields] for data in self._data]
        self._now = {name: np.zeros((num_envs, len(view))) for name, view in zip(self._body.fields, self._views[0])}
        self._place = np.zeros(num_envs)
        self._threads = min(num_envs, threads or _cores())
        # The calling thread steps robots too.
        self._pool = ThreadPoolExecutor(self._threads - 1, "robots") if self._threads > 1 else None

    def _advance(self, actions):
        if self._data is None:
            raise gym.error.ClosedEnvironmentError("these environments are closed")
        turns = itertools.count()  # whoever is free takes the next robot
        helpers = [self._pool.submit(self._step_robots, actions, turns) for _ in range(self._threads - 1)]
        try:
            self._step_robots(actions, turns)
        finally:
            for helper in helpers:
                helper.result()
        body, now, before = self._body, self._now, self._place
        self._place = body.place(now)
        healthy = body.healthy(now)
        velocity = (self._place - before) / self._one.dt
        rewards = body.rewards(now, actions, velocity, healthy)
        return body.observe(now), rewards.astype(np.float64, copy=False), ~healthy

    def _step_robots(self, actions, turns):
        step, forces = self._mujoco.mj_step, self._mujoco.mj_rnePostConstraint
        model, frames = self._one.model, self._one.frame_skip
        rows = list(self._now.values())
        for i in turns:
            if i >= self.num_envs:
                return
            self._controls[i][:] = actions[i]
            step(model, self._data[i], nstep=frames)
            forces(model, self._data[i])
            for row, view in zip(rows, self._views[i]):
                row[i] = view

    def _restart(self, which, options):
        if self._data is None:
            raise gym.error.ClosedEnvironmentError("these environments are closed")
        one, scale = self._one, self._one._reset_noise_scale
        for i in which:
            data, generator = self._data[i], self._generators[i]
            self._mujoco.mj_resetData(one.model, data)
            data.qpos[:] = one.init_qpos + generator.uniform(low=-scale, high=scale, size=one.model.nq)
            if self._body.gaussian_speed:
                data.qvel[:] = one.init_qvel + scale * generator.standard_normal(one.model.nv)
            else:
                data.qvel[:] = one.init_qvel + generator.uniform(low=-scale, high=scale, size=one.model.nv)
            self._mujoco.mj_forward(one.model, data)
            for row, view in zip(self._now.values(), self._views[i]):
                row[i] = view
        fresh = {name: rows[which] for name, rows in self._now.items()}
        self._place[which] = self._body.place(fresh)
        return self._body.observe(fresh)

    def close_extras(self, **kwargs):
        if self._pool:
            self._pool.shutdown()
        self._one.close()
        self._pool = self._data = self._views = self._controls = None


def _cores():
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
