"""Observers of 04_continuous_control: the policy, the running statistics and the advantages.

T steps, N envs, D observation size, A actions. What uses scripted environments and stand-ins is in robot_loop.
"""

import torch
from torch import nn

from rl_checks.engine import Piece, WrongKind, changed_inputs, describe, expect_tensors
from rl_checks.robot_loop import LOOP_PIECES, linear

SAMPLES = 1500  # enough to tell a standard deviation that is 10 % off


def make(Class, name, *arguments):
    """An object of the student's class."""
    if not isinstance(Class, type):
        raise WrongKind(f"{name} must be the class itself, as in rl_tests.test_...({name}); it is {describe(Class)}")
    return Class(*arguments)


# GaussianPolicy -------------------------------------------------------------------------------------------------------

def observe_gaussian_policy(GaussianPolicy, inputs):
    A, D = inputs["weight"].shape
    policy = make(GaussianPolicy, "GaussianPolicy", D, A, inputs["log_std_start"])
    log_std = getattr(policy, "log_std", None)
    if not isinstance(log_std, torch.Tensor):
        raise WrongKind(f"GaussianPolicy needs self.log_std, an nn.Parameter; it is {describe(log_std)}")
    if not isinstance(getattr(policy, "mean", None), nn.Module):
        raise WrongKind(f"GaussianPolicy needs a network self.mean; it is {describe(getattr(policy, 'mean', None))}")
    seen = {
        "log_std at the start": log_std.detach().clone(),
        "log_std is a parameter": any(parameter is log_std for parameter in policy.parameters()),
        "means of an untrained policy": policy.mean(inputs["obs"]).detach(),
    }
    if log_std.numel() > A:
        raise WrongKind(f"self.log_std has {log_std.numel()} entries, expected {A}, one for each motor")
    # Known weights in place of the student's network: only what is done with its output is looked at.
    policy.mean, obs, actions = linear(inputs["weight"]), inputs["obs"].clone(), inputs["actions"].clone()
    with torch.no_grad():
        log_std.copy_(inputs["log_std"][: log_std.numel()].reshape(log_std.shape))
    (mean,) = expect_tensors(policy(obs), "forward", ("the mean",))
    (log_prob,) = expect_tensors(policy.log_prob(obs, actions), "log_prob", ("log_prob",))
    (entropy,) = expect_tensors(policy.entropy(), "entropy", ("entropy",))
    (drawn,) = expect_tensors(policy.sample(obs[:1].expand(SAMPLES, D)), "sample", ("actions",))
    return seen | {
        "forward": mean, "log_prob": log_prob,
        "gradient of log_prob in log_std": gradient(log_prob, log_std),
        "gradient of log_prob in the mean": gradient(log_prob, policy.mean[0].weight),
        "entropy": entropy, "gradient of entropy in log_std": gradient(entropy, log_std),
        "sample.requires_grad": drawn.requires_grad, "samples": drawn.detach(),
        "log_prob of [T, N, D]": policy.log_prob(obs[None], actions[None]).detach(),
        "inputs changed": changed_inputs({"obs": inputs["obs"], "actions": inputs["actions"]},
                                         {"obs": obs, "actions": actions}),
    }


def derive_gaussian_policy(raw, inputs):
    """Random numbers told by what they are like, since no two ways to draw them agree."""
    seen = dict(raw)
    start = seen.pop("means of an untrained policy")
    seen["means of an untrained policy are near 0"] = bool((start.abs() < 0.25).all())
    drawn = seen.pop("samples")
    if drawn.shape != (SAMPLES, len(inputs["log_std"])):
        return seen | {"shape of a sample": f"{tuple(drawn.shape)} for {SAMPLES} observations"}
    z = (drawn - inputs["obs"][0] @ inputs["weight"].T) / inputs["log_std"].exp()
    apart = torch.corrcoef(z.T) - torch.eye(z.shape[1])
    return seen | {
        "shape of a sample": "",
        "samples are not cut off": all(len(column.unique()) > 0.95 * SAMPLES for column in z.T),
        "samples lie around the mean": bool((z.mean(0).abs() < 0.15).all()),
        "samples spread by exp(log_std)": bool(((z.std(0) - 1).abs() < 0.1).all()),
        "dimensions are drawn independently": bool((torch.nan_to_num(apart, nan=1.0).abs() < 0.15).all()),
    }


def gradient(value, leaf):
    """d sum(value) / d leaf; zeros where there is none."""
    grad = None
    if value.requires_grad and leaf.requires_grad:
        (grad,) = torch.autograd.grad(value.sum(), leaf, retain_graph=True, allow_unused=True)
    return torch.zeros_like(leaf) if grad is None else grad


# Running statistics ---------------------------------------------------------------------------------------------------

def observe_running_norm(RunningNorm, inputs):
    shape = tuple(inputs["x"].shape[1:])
    norm = make(RunningNorm, "RunningNorm", shape, inputs["clip"])
    before = _normalised(norm, inputs["x"])
    seen = {"before the first batch": before}
    batches = [inputs[name] for name in sorted(inputs) if name.startswith("batch")]
    for i, batch in enumerate(batches):
        norm.update(batch.clone())
        seen |= {f"mean after batch {i}": _statistic(norm, "mean"), f"var after batch {i}": _statistic(norm, "var")}
    seen["normalised"] = _normalised(norm, inputs["x"])
    seen["normalised again"] = _normalised(norm, inputs["x"])
    norm.frozen = True
    norm.update(batches[0] + 1.0)
    return seen | {"mean while frozen": _statistic(norm, "mean"), "var while frozen": _statistic(norm, "var")}


def _normalised(norm, x):
    (y,) = expect_tensors(norm(x.clone()), "RunningNorm.__call__", ("the normalised x",))
    return y.detach()


def _statistic(norm, name):
    """float64 whatever the student's is: precision shows in the numbers."""
    value = getattr(norm, name, None)
    if value is None:
        raise WrongKind(f"RunningNorm needs self.{name}")
    return torch.as_tensor(value).detach().double().clone()


def observe_reward_scaler(RewardScaler, inputs):
    N = inputs["rewards"].shape[1]
    scale = make(RewardScaler, "RewardScaler", N, inputs["gamma"], inputs["clip"])
    scaled, changed = [], ""
    for rewards, ended in zip(inputs["rewards"].double(), inputs["ended"].bool()):
        given = {"rewards": rewards.clone(), "ended": ended.clone()}
        (one,) = expect_tensors(scale(*given.values()), "RewardScaler.__call__", ("scaled rewards",))
        if one.shape != (N,):
            raise WrongKind(f"RewardScaler must return rewards of shape {(N,)}; it returned shape {tuple(one.shape)}")
        changed = changed or changed_inputs({"rewards": rewards, "ended": ended}, given)
        scaled.append(one.detach().clone())  # a view of something that goes on changing would show later steps
    return {"scaled rewards": torch.stack(scaled), "inputs changed": changed}


# Advantages -----------------------------------------------------------------------------------------------------------

def observe_bootstrap(bootstrap_truncations, inputs):
    names = ("values", "last_values", "truncated", "final_values")
    batch = {name: _flag_or_number(name, inputs[name]).clone() for name in names}
    before = {name: x.clone() for name, x in batch.items()}
    (next_values,) = expect_tensors(bootstrap_truncations(*batch.values()), "bootstrap_truncations", ("next_values",))
    return {"next_values": next_values.detach(), "inputs changed": changed_inputs(before, batch)}


def observe_gae(gae, inputs):
    names = ("rewards", "values", "next_values", "terminated", "truncated")
    batch = {name: _flag_or_number(name, inputs[name]).clone() for name in names}
    before = {name: x.clone() for name, x in batch.items()}
    returned = gae(*batch.values(), inputs["gamma"], inputs["lam"])
    advantages, returns = expect_tensors(returned, "gae", ("advantages", "returns"))
    return {"advantages": advantages.detach(), "returns": returns.detach(), "inputs changed": changed_inputs(before, batch)}


def _flag_or_number(name, x):
    return x.bool() if name in ("terminated", "truncated") else x


def _context(inputs):
    ends = inputs["terminated"].bool() | inputs["truncated"].bool()
    return {"r": inputs["rewards"], "V(s)": inputs["values"], "V(s')": inputs["next_values"], "ends": ends}


def _grid(*quantities):
    return lambda quantity, value, inputs: value if quantity in quantities and value.dim() == 2 else None


PIECES = {
    "GaussianPolicy": Piece(
        "GaussianPolicy", observe_gaussian_policy, derive=derive_gaussian_policy,
        words={"inputs changed": "the policy must not change its inputs, it changed",
               "sample.requires_grad": "sample(obs).requires_grad (acting needs no gradient)"}),
    "RunningNorm": Piece("RunningNorm", observe_running_norm),
    "RewardScaler": Piece(
        "RewardScaler", observe_reward_scaler, grid=_grid("scaled rewards"),
        words={"inputs changed": "RewardScaler must not change its inputs, it changed"}),
    "bootstrap_truncations": Piece(
        "bootstrap_truncations", observe_bootstrap, grid=_grid("next_values"),
        words={"inputs changed": "bootstrap_truncations must not change its inputs, it changed"}),
    "gae": Piece(
        "gae", observe_gae, grid=_grid("advantages", "returns"), context=_context, backwards=True,
        words={"inputs changed": "gae must not change its inputs, it changed"}),
    **LOOP_PIECES,
}
