"""Faults planted in the training loop of 03_ppo_details, each in a fresh copy of everything that the notebook defines.

FAULTS[name] is a function of the notebook's namespace that breaks it. Those of rollout_phase and learning_phase are the
known mistakes of these two pieces, put into a loop that really trains; those of train_ppo and make_envs are edits.
"""

import sys
import types

import numpy as np

from grading import notebooks, solutions
from grading.mistakes import mistakes_of, ppo_learning

NAME = "03_ppo_details"
LEARNING = ("compute_advantages", "make_minibatches", "calc_policy_loss", "calc_value_function_loss", "calc_entropy_loss")
FAULTS = {}


def fresh():
    """A namespace of its own in which the notebook's definitions have run: {name: object}."""
    module = types.ModuleType("notebook_with_a_fault")
    sys.modules[module.__name__] = module
    notebook = notebooks.read(notebooks.solution_path(NAME))
    for cell in notebooks.definitions(notebook):
        solutions.run(cell.source, f"<{NAME}: {cell.id}>", module.__dict__)
    return module.__dict__


def broken(name):
    """train_ppo with the fault `name` in it."""
    space = fresh()
    FAULTS[name](space)
    return space["train_ppo"]


def _phase(piece, key, wrong):
    def plant(space):
        for name in LEARNING:  # a mistake lives in its module and calls the pieces by these names
            setattr(ppo_learning, name, space[name])
        space[piece] = wrong
    FAULTS[f"{piece}: {key}"] = plant


for _piece in ("rollout_phase", "learning_phase"):
    for _key, _mistake in mistakes_of(NAME, _piece).items():
        _phase(_piece, _key, _mistake.wrong)


def edit(cell_id, name, old, new):
    """A fault that replaces a piece of text in a cell."""
    def plant(space):
        notebook = notebooks.read(notebooks.solution_path(NAME))
        source = next(cell.source for cell in notebook.cells if cell.id == cell_id)
        if old not in source:
            raise ValueError(f"{cell_id} has no {old!r}")
        solutions.run(source.replace(old, new), f"<{NAME}: {cell_id}, {name}>", space)
    FAULTS[f"{cell_id}: {name}"] = plant


edit("train-ppo", "next_obs not carried over", "next_obs, next_done = rollout.next_obs, rollout.next_done",
     "next_done = rollout.next_done")
edit("train-ppo", "next_done not carried over", "next_obs, next_done = rollout.next_obs, rollout.next_done",
     "next_obs = rollout.next_obs")
edit("train-ppo", "environments reset before every rollout", "        rollout = rollout_phase(",
     "        next_obs = torch.as_tensor(envs.reset()[0], dtype=torch.float32)\n        rollout = rollout_phase(")
edit("train-ppo", "a new optimizer at every update", "        rollout = rollout_phase(",
     "        optimizer, scheduler = make_optimizer(agent, args.num_updates, args.learning_rate, 0.0)\n"
     "        rollout = rollout_phase(")
edit("train-ppo", "a new agent acts, the old one learns", "rollout_phase(agent, envs,", "rollout_phase(make_agent(envs), envs,")
edit("train-ppo", "learning rate does not fall", "args.learning_rate, 0.0)", "args.learning_rate, args.learning_rate)")
edit("train-ppo", "scheduler as long as the steps", "make_optimizer(agent, args.num_updates,",
     "make_optimizer(agent, args.total_timesteps,")
edit("train-ppo", "scheduler half as long", "make_optimizer(agent, args.num_updates,",
     "make_optimizer(agent, max(1, args.num_updates // 2),")
edit("train-ppo", "only the actor in the optimizer", "make_optimizer(agent,", "make_optimizer(agent.actor,")
edit("train-ppo", "only the critic in the optimizer", "make_optimizer(agent,", "make_optimizer(agent.critic,")
edit("train-ppo", "learns before it collects anew: the same rollout for ever", "        rollout = rollout_phase(",
     "        rollout = rollout if update > 1 else rollout_phase(")
edit("train-ppo", "first rollout starts with ended episodes", "next_done = torch.zeros(args.num_envs, device=device)",
     "next_done = torch.ones(args.num_envs, device=device)")
edit("train-ppo", "returns an untrained agent", "    return agent\n\n\ndef film", "    return make_agent(envs)\n\n\ndef film")
edit("make-envs", "autoreset in the next step", "AutoresetMode.SAME_STEP", "AutoresetMode.NEXT_STEP")
edit("make-envs", "rewards flipped", "rewards * args.reward_factor", "-rewards * args.reward_factor")
edit("make-envs", "rewards cut to their sign", "rewards * args.reward_factor", "np.sign(rewards)")


class _SameSeed:
    """Resets every environment with the same seed."""

    def __init__(self, envs):
        self._envs = envs

    def __getattr__(self, name):
        return getattr(self._envs, name)

    def reset(self, seed=None, options=None):
        return self._envs.reset(seed=None if seed is None else [seed] * self._envs.num_envs)


def _same_seed(space):
    right = space["make_envs"]
    space["make_envs"] = lambda args: _SameSeed(right(args))


FAULTS["make-envs: all environments share one seed"] = _same_seed


def _truncation_hidden(space):
    """An old kind of environment: one flag for both ends."""
    right = space["make_envs"]

    class OneFlag(_SameSeed):
        def reset(self, seed=None, options=None):
            return self._envs.reset(seed=seed)

        def step(self, actions):
            obs, rewards, terminated, truncated, infos = self._envs.step(actions)
            return obs, rewards, terminated | truncated, np.zeros_like(truncated), infos

    space["make_envs"] = lambda args: OneFlag(right(args))


FAULTS["make-envs: one flag for both ends"] = _truncation_hidden
