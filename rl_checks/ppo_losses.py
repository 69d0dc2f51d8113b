"""Observers of 03_ppo_details: the losses and the metrics. M rows of a minibatch, A actions, D observation size."""

import math

import torch
from torch import nn
from torch.distributions import Categorical

from rl_checks.engine import Piece, WrongKind, attempt, changed_inputs, describe, expect_tensors


def observe_policy_loss(calc_policy_loss, inputs):
    names = ("mb_action", "mb_advantages", "mb_logprobs")
    logits = inputs["logits"].clone().requires_grad_()
    batch = {name: inputs[name].clone() for name in names}
    loss = calc_policy_loss(Categorical(logits=logits), *batch.values(), inputs["clip_coef"])
    (loss,) = expect_tensors(loss, "calc_policy_loss", ("loss",))
    return {"loss": loss, "gradient of the loss in the logits": gradient(loss, logits),
            "effective advantages": _effective_advantages(calc_policy_loss, inputs["mb_advantages"]),
            "inputs changed": changed_inputs({name: inputs[name] for name in names}, batch)}


def derive_policy_loss(raw, inputs):
    """Brings the two usual normalisations together: dividing by the standard deviation of the population, as some do,
    gives numbers larger by a known factor than dividing by that of the sample."""
    seen = dict(raw)
    effective, M = seen.pop("effective advantages").double(), len(inputs["mb_advantages"])
    if effective.numel() == M and abs(effective.std(unbiased=False).item() - 1) < 1e-4:
        for name in ("loss", "gradient of the loss in the logits"):
            seen[name] = seen[name] * math.sqrt((M - 1) / M)
    return seen


def _effective_advantages(calc_policy_loss, advantages):
    """What the loss multiplies the ratios with, read off its gradient where every ratio is 1 and nothing is clipped."""
    M = len(advantages)
    logits = torch.zeros(M, 2, requires_grad=True)
    loss, _ = attempt(lambda: calc_policy_loss(Categorical(logits=logits), torch.zeros(M, dtype=torch.int64),
                                               advantages.clone(), torch.full((M,), math.log(0.5)), 64.0))
    if not isinstance(loss, torch.Tensor):
        return torch.zeros(0)
    return -2 * M * gradient(loss, logits)[:, 0]


def observe_value_loss(calc_value_function_loss, inputs):
    critic = nn.Sequential(nn.Linear(inputs["weight"].shape[1], 1))
    with torch.no_grad():
        critic[0].weight.copy_(inputs["weight"])
        critic[0].bias.fill_(inputs["bias"])
    names = ("mb_obs", "mb_returns")
    batch = {name: inputs[name].clone() for name in names}
    loss = calc_value_function_loss(critic, *batch.values(), inputs["v_coef"])
    (loss,) = expect_tensors(loss, "calc_value_function_loss", ("loss",))
    return {"loss": loss, "gradient of the loss in the critic's weights": gradient(loss, critic[0].weight),
            "gradient of the loss in the critic's bias": gradient(loss, critic[0].bias),
            "inputs changed": changed_inputs({name: inputs[name] for name in names}, batch)}


def observe_entropy_loss(calc_entropy_loss, inputs):
    logits = inputs["logits"].clone().requires_grad_()
    loss = calc_entropy_loss(Categorical(logits=logits), inputs["ent_coef"])
    (loss,) = expect_tensors(loss, "calc_entropy_loss", ("loss",))
    return {"loss": loss, "gradient of the loss in the logits": gradient(loss, logits)}


def gradient(loss, leaf):
    """d loss / d leaf; zeros where the loss does not depend on it or has no graph at all."""
    grad = None
    if loss.requires_grad:
        # A loss that is not a scalar is told by its shape; its sum still has a gradient to show.
        (grad,) = torch.autograd.grad(loss.sum(), [leaf], retain_graph=True, allow_unused=True)
    return torch.zeros_like(leaf) if grad is None else grad


def _metric(name, arguments):
    """An observer of a function of tensors that returns one number."""
    def observe(function, inputs):
        given = [inputs[argument].clone() if isinstance(inputs[argument], torch.Tensor) else inputs[argument]
                 for argument in arguments]
        return {name: number(function(*given), function)}
    return observe


def observe_entropy(calc_entropy, inputs):
    return {"entropy": number(calc_entropy(Categorical(logits=inputs["logits"].clone())), calc_entropy)}


def number(value, function):
    """A float, from a number or a tensor with one element; text where it is not finite, so that nan equals nan."""
    if (isinstance(value, torch.Tensor) and value.numel() == 1) or (hasattr(value, "item") and getattr(value, "ndim", 1) == 0):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongKind(f"{getattr(function, '__name__', 'it')} must return a float; it returned {describe(value)}")
    return float(value) if math.isfinite(value) else str(float(value))


_LOGPROBS = ("new_logprobs", "old_logprobs")
PIECES = {
    "calc_policy_loss": Piece(
        "calc_policy_loss", observe_policy_loss, derive=derive_policy_loss,
        axes={"gradient of the loss in the logits": ("row", "action")},
        words={"loss": "the policy loss", "inputs changed": "calc_policy_loss must not change its inputs, it changed"}),
    "calc_value_function_loss": Piece(
        "calc_value_function_loss", observe_value_loss,
        words={"loss": "the value loss",
               "inputs changed": "calc_value_function_loss must not change its inputs, it changed"}),
    "calc_entropy_loss": Piece(
        "calc_entropy_loss", observe_entropy_loss, words={"loss": "the entropy loss"},
        axes={"gradient of the loss in the logits": ("row", "action")}),
    "calc_old_approx_kl": Piece("calc_old_approx_kl", _metric("old_approx_kl", _LOGPROBS)),
    "calc_approx_kl": Piece("calc_approx_kl", _metric("approx_kl", _LOGPROBS)),
    "calc_clipfrac": Piece("calc_clipfrac", _metric("clipfrac", (*_LOGPROBS, "clip_coef"))),
    "calc_explained_variance": Piece(
        "calc_explained_variance", _metric("explained_variance", ("values", "returns"))),
    "calc_entropy": Piece("calc_entropy", observe_entropy),
}
