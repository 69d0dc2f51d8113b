"""Observers of 01_policy_gradients. T steps, N trajectories or envs, B rows, A actions."""

import torch

from rl_checks.engine import Piece, changed_inputs, expect_tensors


def observe_discounted_returns(function, inputs):
    return _call(function, inputs, "discounted_returns", "returns", ("rewards",), ("gamma",))[0]


def observe_reward_to_go(function, inputs):
    return _call(function, inputs, "reward_to_go", "to_go", ("rewards",), ("gamma",))[0]


def observe_td_errors(function, inputs):
    tensors = ("rewards", "values", "next_values", "terminated")
    return _call(function, inputs, "td_errors", "deltas", tensors, ("gamma",))[0]


def observe_kl_categorical(function, inputs):
    return _call(function, inputs, "kl_categorical", "kl", ("logits_p", "logits_q"))[0]


def observe_policy_gradient_loss(function, inputs):
    """The loss and its gradients; without a baseline in the inputs the function gets none."""
    tensors = ("logits", "actions", "returns") + (("baselines",) if "baselines" in inputs else ())
    learned = tuple(name for name in tensors if name != "actions")
    seen, batch, loss = _call(function, inputs, "policy_gradient_loss", "loss", tensors, gradients=learned)
    for name in learned:
        seen[f"gradient in the {name}"] = _gradient(loss, batch[name])
    return seen


def observe_clipped_objective(function, inputs):
    """The values, and the slope of each in its ratio."""
    tensors = ("ratio", "advantages")
    seen, batch, objective = _call(
        function, inputs, "clipped_objective", "objective", tensors, ("epsilon",), gradients=("ratio",))
    seen["gradient in the ratio"] = _gradient(objective, batch["ratio"])
    return seen


def _call(function, inputs, name, quantity, tensors, numbers=(), gradients=()):
    """(what was seen, the tensors that were passed, the result) of function(*tensors, *numbers)."""
    batch = {key: inputs[key].clone().requires_grad_(key in gradients) for key in tensors}
    returned = function(*batch.values(), *(inputs[key] for key in numbers))
    (result,) = expect_tensors(returned, name, (quantity,))
    before = {key: inputs[key] for key in tensors}
    seen = {quantity: result.detach(), "inputs changed": changed_inputs(before, batch)}
    return seen, batch, result


def _gradient(result, tensor):
    """d sum(result) / d tensor, zeros where no gradient flows."""
    gradient = None
    if result.requires_grad:
        (gradient,) = torch.autograd.grad(result.sum(), tensor, retain_graph=True, allow_unused=True)
    return torch.zeros_like(tensor) if gradient is None else gradient


def _piece(name, observe, **more):
    words = {"inputs changed": f"{name} must not change its inputs, it changed", **more.pop("words", {})}
    return Piece(name, observe, words=words, **more)


def _grid_of(quantity):
    return lambda name, value, inputs: value if name == quantity and value.dim() == 2 else None


def _td_context(inputs):
    return {"r": inputs["rewards"], "V(s)": inputs["values"], "V(s')": inputs["next_values"], "ends": inputs["terminated"]}


PIECES = {
    "discounted_returns": _piece(
        "discounted_returns", observe_discounted_returns, axes={"returns": ("trajectory",)}),
    "reward_to_go": _piece(
        "reward_to_go", observe_reward_to_go, grid=_grid_of("to_go"), backwards=True,
        context=lambda inputs: {"r": inputs["rewards"]}),
    "policy_gradient_loss": _piece(
        "policy_gradient_loss", observe_policy_gradient_loss,
        axes={f"gradient in the {name}": ("row", "action") for name in ("logits",)},
        words={"gradient in the returns": "gradient in the returns (constants: detach the weights)",
               "gradient in the baselines": "gradient in the baselines (constants: detach the weights)"}),
    "kl_categorical": _piece("kl_categorical", observe_kl_categorical, axes={"kl": ("row",)}),
    "clipped_objective": _piece(
        "clipped_objective", observe_clipped_objective,
        axes={"objective": ("row",), "gradient in the ratio": ("row",)}),
    "td_errors": _piece("td_errors", observe_td_errors, grid=_grid_of("deltas"), context=_td_context),
}
