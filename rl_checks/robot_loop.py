"""Observers of 04_continuous_control: the update and the collecting, with stand-ins and scripted environments.

T steps, N envs, B rows of a batch, D observation size, A actions.
"""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

from rl_checks.engine import Piece, Skip, WrongKind, describe

UPDATE = ("minibatch_size", "epochs", "clip", "value_coef", "entropy_coef", "max_grad_norm", "target_kl")
# Rows are repeated this often: dividing by the standard deviation of the sample or of the population is then the same.
REPEATS = 512
PER_STEP = ("rollout.obs", "rollout.actions", "rollout.rewards", "rollout.terminated", "rollout.truncated",
            "actions that the robots got", "observations that norm learned", "rewards that scale got",
            "ends that scale got")


def linear(weight):
    """A network that is one linear map without bias, with known weights."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return nn.Sequential(layer)


class StandInPolicy(nn.Module):
    """A Gaussian policy with a linear mean; notes which rows it was asked about with gradients."""

    def __init__(self, weight, log_std):
        super().__init__()
        self.mean, self.log_std, self.visited = linear(weight), nn.Parameter(log_std.clone()), []

    def forward(self, obs):
        return self.mean(obs)

    def log_prob(self, obs, actions):
        if torch.is_grad_enabled():
            self.visited.append(obs[..., 0].detach().reshape(-1).clone())
        return Normal(self.mean(obs), self.log_std.exp()).log_prob(actions).sum(-1)

    def entropy(self):
        return Normal(torch.zeros_like(self.log_std), self.log_std.exp()).entropy().sum()


class StandInCritic(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.value = linear(weight)

    def forward(self, obs):
        return self.value(obs).squeeze(-1)


# ppo_update -----------------------------------------------------------------------------------------------------------

def observe_update(ppo_update, inputs):
    # float64, so that the order of the rows does not show in the sums.
    inputs = {name: x.double() if isinstance(x, torch.Tensor) else x for name, x in inputs.items()}
    policy, critic = StandInPolicy(inputs["policy_weight"], inputs["log_std"]), StandInCritic(inputs["critic_weight"])
    start = [p.detach().clone() for p in (*policy.parameters(), *critic.parameters())]
    # Plain gradient descent: what moved is the gradient. Two groups, as where actor and critic have rates of their own.
    optimizer = torch.optim.SGD([{"params": policy.parameters(), "lr": inputs["lr"]},
                                 {"params": critic.parameters(), "lr": inputs["lr"] / 2}])
    settings = SimpleNamespace(gamma=0.99, lam=0.95, learning_rate=inputs["lr"], seed=0, num_envs=1, total_steps=1,
                               num_steps=1, **{name: inputs[name] for name in UPDATE})
    repeats = REPEATS if inputs["minibatch_size"] == 0 else 1
    batch = SimpleNamespace(**{name: inputs[name].repeat(repeats, *[1] * (inputs[name].dim() - 1))
                               for name in ("obs", "actions", "log_probs", "advantages", "returns")})
    settings.minibatch_size = settings.minibatch_size or len(batch.obs)
    metrics = ppo_update(policy, critic, optimizer, batch, settings)
    if not isinstance(metrics, dict) or not {"kl", "clipfrac"} <= metrics.keys():
        raise WrongKind(f'ppo_update must return {{"kl": float, "clipfrac": float}}; it returned {describe(metrics)}')
    rates = torch.tensor([float(group["lr"]) for group in optimizer.param_groups], dtype=torch.float64)
    if inputs["target_kl"] is not None and torch.allclose(rates, torch.tensor([1.0, 0.5]).double() * inputs["lr"]):
        raise Skip  # the extension is not written
    moved = [(p.detach() - q) / inputs["lr"] for p, q in zip((*policy.parameters(), *critic.parameters()), start)]
    names = {id(p): name for name, p in (("log_std", policy.log_std), ("policy", policy.mean[0].weight),
                                         ("critic", critic.value[0].weight))}
    seen = {f"step of {names[id(p)]} / learning rate": step
            for p, step in zip((*policy.parameters(), *critic.parameters()), moved)}
    seen |= {name: torch.tensor(float(metrics[name]), dtype=torch.float64) for name in ("kl", "clipfrac")}
    seen["learning rates"] = rates / inputs["lr"]
    if repeats > 1:
        return seen
    return {"visited": torch.cat(policy.visited) if policy.visited else torch.zeros(0),
            "sizes": " ".join(str(len(rows)) for rows in policy.visited)}


def derive_update(raw, inputs):
    """What the rows of the minibatches say, whatever their order."""
    if "visited" not in raw:
        return raw
    B, epochs, visited = len(inputs["obs"]), inputs["epochs"], raw["visited"]
    whole, rows = len(visited) == B * epochs, inputs["obs"][:, 0]
    rounds = visited.reshape(epochs, B).float() if whole else torch.zeros(epochs, B)
    return {
        "sizes of the minibatches": raw["sizes"], "rows visited": len(visited),
        "each epoch visits every row once": whole and bool((rounds.sort(dim=1).values == rows.sort().values).all()),
        "rows are shuffled": bool((rounds != rows).any()),
        "epochs have orders of their own": not whole or bool((rounds[1:] != rounds[:-1]).any(dim=1).all()),
    }


# collect --------------------------------------------------------------------------------------------------------------

class ScriptedRobots:
    """A vector environment that plays a script, whatever is done, and notes the actions."""

    def __init__(self, inputs):
        from gymnasium.spaces import Box
        from gymnasium.vector import AutoresetMode

        self.script, self.received, self.resets = inputs, [], 0
        (self.T, self.num_envs, D), low, high = inputs["script_obs"].shape, inputs["low"], inputs["high"]
        self.single_observation_space = Box(-9.0, 9.0, (D,), np.float64)
        self.single_action_space = Box(low.numpy(), high.numpy())
        self.observation_space = Box(-9.0, 9.0, (self.num_envs, D), np.float64)
        self.action_space = Box(low.numpy()[None].repeat(self.num_envs, 0), high.numpy()[None].repeat(self.num_envs, 0))
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def reset(self, seed=None, options=None):
        self.resets += 1
        return self.script["obs"].double().numpy().copy(), {}

    def step(self, actions):
        t = len(self.received)
        if t >= self.T:
            raise WrongKind(f"collect must step the environments num_steps = {self.T} times; it stepped them more often")
        self.received.append(torch.as_tensor(np.asarray(actions)).detach().double().clone())
        terminated, truncated = (self.script[name][t].bool().numpy().copy() for name in ("terminated", "truncated"))
        infos, ended = {}, terminated | truncated
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            for n in np.flatnonzero(ended):
                last[n] = self.script["final_obs"][t, n].double().numpy().copy()
            infos = {"final_obs": last, "_final_obs": ended.copy(), "_episode": ended.copy(),
                     "episode": {"r": np.where(ended, self.script["script_returns"][t].double().numpy(), 0.0),
                                 "l": ended * (t + 1)}}
        return (self.script["script_obs"][t].double().numpy().copy(), self.script["script_rewards"][t].double().numpy(),
                terminated, truncated, infos)


class StandInNorm:
    """Halves what it is given, and notes what it has learned.

    coming   list of [N, D]: the observations in the order in which they will be seen
    """

    frozen = False

    def __init__(self, coming):
        size = coming[0].shape[1]
        self.mean, self.var = torch.zeros(size).double(), torch.full((size,), 4.0).double()
        self.coming, self.learned, self.too_early = coming, [], 0

    def update(self, batch):
        self.learned.append(torch.as_tensor(batch).detach().double().clone())

    def __call__(self, x):
        x = torch.as_tensor(x)
        known, will_be_known = (any(torch.equal(x.double(), y.double()) for y in rows) for rows in (self.learned, self.coming))
        self.too_early += will_be_known and not known
        return (x / 2).float()


class LinearActor(nn.Module):
    """Acts without dice, so that every action is known."""

    def __init__(self, weight):
        super().__init__()
        self.mean, self.asked = linear(weight), []

    def forward(self, obs):
        return self.mean(obs)

    def sample(self, obs):
        with torch.no_grad():
            return self.mean(obs)


def observe_collect(collect, inputs):
    envs, norm = ScriptedRobots(inputs), StandInNorm([inputs["obs"], *inputs["script_obs"]])
    policy, scaled, flags = LinearActor(inputs["policy_weight"]), [], []

    def scale(rewards, ended):
        scaled.append(torch.as_tensor(rewards).double().clone())
        flags.append(torch.as_tensor(ended).bool().clone())
        return (torch.as_tensor(rewards) / 4).float()

    returned = collect(envs, policy, norm, scale, inputs["obs"].double().clone(), envs.T)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise WrongKind(f"collect must return (rollout, obs); it returned {describe(returned)}")
    rollout, obs = returned
    fields = {name: getattr(rollout, name, None)
              for name in ("obs", "actions", "rewards", "terminated", "truncated", "final_obs", "next_obs")}
    for name, field in fields.items():
        if not isinstance(field, torch.Tensor):
            raise WrongKind(f"rollout.{name} must be a torch tensor; it is {describe(field)}")
    cut = inputs["truncated"].bool()
    final = fields.pop("final_obs").detach()
    fields |= {name: fields[name].bool() for name in ("terminated", "truncated")}
    seen = {f"rollout.{name}": field.detach() for name, field in fields.items()}
    if cut.any():
        seen["rollout.final_obs where truncated"] = final[cut] if final.shape[:2] == cut.shape else final
    noted = getattr(rollout, "episode_returns", None)
    if not isinstance(noted, list):
        raise WrongKind(f"rollout.episode_returns must be a list; it is {describe(noted)}")
    return seen | {
        "rollout.episode_returns": torch.tensor([float(x) for x in noted], dtype=torch.float64),
        "the returned obs": torch.as_tensor(obs).detach().double(),
        "actions that the robots got": stacked(envs.received), "observations that norm learned": stacked(norm.learned),
        "batches normalised before they were learned": norm.too_early,
        "rewards that scale got": stacked(scaled), "ends that scale got": stacked(flags),
        "resets of the environments": envs.resets,
    }


def stacked(rows):
    """One tensor of what was noted, or of the sizes where they differ."""
    if rows and all(row.shape == rows[0].shape for row in rows):
        return torch.stack(rows)
    return torch.tensor([len(row) for row in rows])


LOOP_PIECES = {
    "ppo_update": Piece("ppo_update", observe_update, derive=derive_update, tolerance=2e-4),  # see REPEATS
    "collect": Piece("collect", observe_collect, axes=dict.fromkeys(PER_STEP, ("t", "env", "i"))),
}
