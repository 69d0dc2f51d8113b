"""Observers of 03_ppo_details: the two phases of the training loop, with scripted environments and simple stand-ins.

T steps, N envs, D observation size, A actions, M rows of a minibatch.
"""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from rl_checks.engine import Piece, WrongKind, describe
from rl_checks.ppo_agent import standing_in

ROLLOUT = ("obs", "actions", "logprobs", "rewards", "dones", "values", "next_obs", "next_done")


class ScriptedEnvs:
    """A vector environment that plays a script, whatever is done: only the loop around it is looked at.

    script   obs, final_obs [T, N, D], rewards, terminated, truncated [T, N]: what step t returns
    received actions [N] of every step
    """

    def __init__(self, script, num_actions):
        from gymnasium.spaces import Box, Discrete
        from gymnasium.vector import AutoresetMode

        self.script, self.received, self.resets = script, [], 0
        _, self.num_envs, size = script["script_obs"].shape
        self.single_observation_space = Box(-4.0, 4.0, (size,))
        self.single_action_space = Discrete(num_actions)
        self.observation_space = Box(-4.0, 4.0, (self.num_envs, size))
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def reset(self, seed=None, options=None):
        self.resets += 1
        return self._get("script_obs", 0), {}

    def step(self, actions):
        t = len(self.received)
        if t >= len(self.script["script_obs"]):
            raise WrongKind(f"rollout_phase must step the environments args.num_steps = {t} times; it stepped them more often")
        self.received.append(torch.as_tensor(np.asarray(actions)).clone().reshape(-1))
        terminated, truncated = self._get("terminated", t).astype(bool), self._get("truncated", t).astype(bool)
        infos, ended = {}, terminated | truncated
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            for n in np.flatnonzero(ended):
                last[n] = self._get("final_obs", t)[n]
            infos = {"final_obs": last, "_final_obs": ended.copy(), "final_info": {}, "_final_info": ended.copy()}
        return self._get("script_obs", t), self._get("script_rewards", t).astype(np.float64), terminated, truncated, infos

    def _get(self, name, t):
        return self.script[name][t].numpy().copy()


class LinearAgent(nn.Module):
    """An agent whose two networks are single linear layers with known weights."""

    def __init__(self, inputs):
        super().__init__()
        self.actor, self.critic = (nn.Sequential(_linear(inputs[name])) for name in ("actor_weight", "critic_weight"))


def _linear(weight):
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.zero_()
    return layer


def observe_rollout(rollout_phase, inputs):
    agent, envs = LinearAgent(inputs), ScriptedEnvs(inputs, len(inputs["actor_weight"]))
    T, N = inputs["script_rewards"].shape
    args = SimpleNamespace(num_steps=T, num_envs=N, gamma=inputs["gamma"], batch_size=T * N, cuda=False)
    rollout = rollout_phase(agent, envs, inputs["next_obs"].clone(), inputs["next_done"].clone(), args)
    fields = {name: getattr(rollout, name, None) for name in ROLLOUT}
    for name, field in fields.items():
        if not isinstance(field, torch.Tensor):
            raise WrongKind(f"rollout_phase must return a Rollout; its {name} is {describe(field)}")
    attached = ", ".join(name for name, field in fields.items() if field.requires_grad)
    # An empty list of actions would have no shape to compare.
    received = torch.stack(envs.received).long() if envs.received else torch.zeros(0, N, dtype=torch.int64)
    return {name: field.detach() for name, field in fields.items()} | {
        "received": received, "resets": envs.resets, "fields that require a gradient": attached}


def derive_rollout(raw, inputs):
    """Actions are drawn, so they are judged by what they must agree with and not by their values."""
    seen = dict(raw)
    T, N = inputs["script_rewards"].shape
    received, actions, logprobs = seen.pop("received"), seen.pop("actions").long(), seen.pop("logprobs")
    resets = seen.pop("resets")
    obs = torch.cat([inputs["next_obs"][None], inputs["script_obs"][:-1]])
    table = torch.log_softmax(obs.double() @ inputs["actor_weight"].double().T, dim=-1)  # [T, N, A]
    seen["shape of actions"], seen["shape of logprobs"] = str(tuple(actions.shape)), str(tuple(logprobs.shape))
    whole = actions.shape == logprobs.shape == received.shape == (T, N)
    if whole and bool(((actions >= 0) & (actions < table.shape[-1])).all()):
        taken = table.gather(2, actions[..., None]).squeeze(2)
        wrong = logprobs.double() - taken
        if table.max(-1).values.min() > -1e-6:  # no dice: the same numbers for everyone
            seen["logprobs minus log pi(actions | obs)"] = wrong.float()
        else:
            seen["logprobs are log pi(actions | obs)"] = bool((wrong.abs() < 1e-5).all())
            seen["actions are drawn, not only the most likely ones"] = not torch.equal(received, table.argmax(-1))
        seen["stored actions are those that the environments got"] = torch.equal(actions, received)
        # Log-probability below -16, 1e-7: by chance once in half a million checks.
        seen["the environments got actions that the policy never takes"] = bool(
            table.gather(2, received[..., None]).min() < -16)
    seen["calls of envs.reset()"] = resets
    return seen


def observe_learning(learning_phase, inputs):
    agent = LinearAgent(inputs)
    optimizer = torch.optim.SGD(agent.parameters(), lr=inputs["learning_rate"])
    log = _Calls()
    for name in ("step", "zero_grad"):  # counted, and done as ever
        setattr(optimizer, name, log.counting(f"optimizer.{name}", getattr(optimizer, name)))
    scheduler = SimpleNamespace(step=log.counting("scheduler.step"))
    rollout = SimpleNamespace(**{name: inputs[name].clone() for name in ROLLOUT})
    T, N = inputs["rewards"].shape
    args = SimpleNamespace(
        batch_size=T * N, num_envs=N, num_steps=T, device="cpu",
        **{name: inputs[name] for name in ("gamma", "gae_lambda", "update_epochs", "minibatch_size", "clip_coef",
                                           "vf_coef", "ent_coef", "max_grad_norm")})
    args.num_minibatches = args.batch_size // args.minibatch_size
    metrics = SimpleNamespace(add=lambda probs, mb, policy_loss, value_loss: log.note(
        "metrics.add", policy_loss=_value(policy_loss), value_loss=_value(value_loss)))
    with standing_in(learning_phase, **_stand_ins(inputs, log)):
        learning_phase(agent, optimizer, scheduler, rollout, metrics, args)
    advantages = log.first("compute_advantages")
    batch = log.first("make_minibatches")
    return {
        "the actor's weights afterwards": agent.actor[0].weight.detach(),
        "the critic's weights afterwards": agent.critic[0].weight.detach(),
        **{f"calls of {name}": log.count(name) for name in (
            "make_minibatches", "calc_policy_loss", "optimizer.step", "scheduler.step", "metrics.add")},
        **{f"compute_advantages: {name}": advantages.get(name) for name in (
            "next_value", "next_done", "rewards", "values", "dones", "gamma", "gae_lambda", "next_value.requires_grad")},
        **{f"make_minibatches: {name}": batch.get(name) for name in (
            "obs", "logprobs", "actions", "advantages", "values", "obs_shape", "action_shape", "batch_size",
            "minibatch_size")},
        "calc_policy_loss: mb_logprobs": log.column("calc_policy_loss", "mb_logprobs"),
        "calc_policy_loss: mb_advantages": log.column("calc_policy_loss", "mb_advantages"),
        "calc_value_function_loss: mb_returns": log.column("calc_value_function_loss", "mb_returns"),
        "metrics.add: policy_loss": log.column("metrics.add", "policy_loss"),
        "metrics.add: value_loss": log.column("metrics.add", "value_loss"),
    }


class _Calls:
    """What was called with what, in order."""

    def __init__(self):
        self.calls = []

    def note(self, function, **given):
        self.calls.append((function, given))

    def counting(self, name, function=lambda *arguments, **options: None):
        def counted(*arguments, **options):
            self.note(name)
            return function(*arguments, **options)
        return counted

    def count(self, function):
        return sum(name == function for name, _ in self.calls)

    def first(self, function):
        return next((given for name, given in self.calls if name == function), {})

    def column(self, function, argument):
        values = [given[argument].reshape(-1) for name, given in self.calls if name == function]
        return torch.cat(values) if values else torch.zeros(0)


def _stand_ins(inputs, log):
    """Simple losses with known gradients in place of the student's: each depends on all that it should be given."""
    turn = iter(range(10**6))

    def compute_advantages(next_value, next_done, rewards, values, dones, device, gamma, gae_lambda):
        log.note("compute_advantages", next_value=next_value.detach().clone(), next_done=next_done.clone(),
                 rewards=rewards.clone(), values=values.clone(), dones=dones.clone(), gamma=float(gamma),
                 gae_lambda=float(gae_lambda), **{"next_value.requires_grad": next_value.requires_grad})
        return inputs["advantages"].clone()

    def make_minibatches(obs, logprobs, actions, advantages, values, obs_shape, action_shape, batch_size, minibatch_size):
        log.note("make_minibatches", obs=obs.clone(), logprobs=logprobs.clone(), actions=actions.clone(),
                 advantages=advantages.detach().clone(), values=values.clone(), obs_shape=str(tuple(obs_shape)),
                 action_shape=str(tuple(action_shape)), batch_size=int(batch_size), minibatch_size=int(minibatch_size))
        columns = {"obs": obs.reshape(-1, obs.shape[-1]), "logprobs": logprobs.reshape(-1), "actions": actions.reshape(-1),
                   "advantages": advantages.reshape(-1), "values": values.reshape(-1)}
        columns["returns"] = columns["advantages"] * 0.5 + columns["values"]
        deals = inputs["deals"]
        parts = deals[next(turn) % len(deals)].split(inputs["minibatch_size"])
        return [SimpleNamespace(**{name: column[rows] for name, column in columns.items()}) for rows in parts]

    def calc_policy_loss(probs, mb_action, mb_advantages, mb_logprobs, clip_coef):
        log.note("calc_policy_loss", mb_logprobs=mb_logprobs.detach().clone(), mb_advantages=mb_advantages.detach().clone())
        return clip_coef * (probs.log_prob(mb_action) * mb_advantages).mean()

    def calc_value_function_loss(critic, mb_obs, mb_returns, v_coef):
        log.note("calc_value_function_loss", mb_returns=mb_returns.detach().clone())
        return v_coef * (critic(mb_obs).squeeze(-1) * mb_returns).mean()

    def calc_entropy_loss(probs, ent_coef):
        return ent_coef * probs.log_prob(torch.zeros(probs.batch_shape)).mean()

    return {function.__name__: function for function in (
        compute_advantages, make_minibatches, calc_policy_loss, calc_value_function_loss, calc_entropy_loss)}


def _value(loss):
    return torch.as_tensor(loss, dtype=torch.float32).detach().reshape(1).clone()


def _grid(quantity, value, inputs):
    return value if quantity in ("rewards", "dones", "values") and value.dim() == 2 else None


def _context(inputs):
    ended = inputs["terminated"].bool() | inputs["truncated"].bool()
    return {"reward of the env": inputs["script_rewards"], "terminated": inputs["terminated"],
            "truncated": inputs["truncated"], "ends": ended}


PIECES = {
    "rollout_phase": Piece(
        "rollout_phase", observe_rollout, derive=derive_rollout, grid=_grid, context=_context,
        axes={"obs": ("t", "env", "i"), "logprobs minus log pi(actions | obs)": ("t", "env"), "next_obs": ("env", "i"),
              "next_done": ("env",)}),
    "learning_phase": Piece("learning_phase", observe_learning),
}
