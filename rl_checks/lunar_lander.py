"""Observers of 02_lunar_lander. They look at a class PPO through small networks with known weights.

T steps, N envs, B = T*N rows (env-major: env n owns rows n*T:(n+1)*T), D observation size, A actions.
"""

import inspect

import torch
from torch import nn

from rl_checks.engine import Piece, Skip, WrongKind, changed_inputs, describe, expect_tensors


def build_ppo(PPO, inputs):
    """A PPO of the student's class whose actor and critic are linear maps with the weights in `inputs`.

    Replacing the networks keeps the check apart from how they were built: only the piece is looked at.
    """
    if not isinstance(PPO, type):
        raise WrongKind(f"PPO must be the class itself, as in rl_tests.test_ppo(PPO); it is {describe(PPO)}")
    actor_weight, critic_weight = inputs["actor_weight"], inputs["critic_weight"]
    num_actions, state_dim = actor_weight.shape
    ppo = PPO(state_dim, num_actions, inputs["gamma"], inputs["lmbda"], inputs["epsilon"], inputs["num_steps"])
    ppo.actor = _linear(actor_weight)
    ppo.critic = _linear(critic_weight)
    return ppo


def accepts_truncations(PPO):
    """Does compute_advantages take the optional fifth argument?"""
    try:
        parameters = inspect.signature(PPO.compute_advantages).parameters.values()
    except (AttributeError, TypeError, ValueError):
        return False
    places = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return places >= 6 or any(p.kind == p.VAR_POSITIONAL for p in parameters)


def observe_compute_advantages(PPO, inputs):
    ppo = build_ppo(PPO, inputs)
    names = ["states", "rewards", "next_states", "terminations"]
    if "truncations" in inputs:
        if not accepts_truncations(PPO):
            raise Skip
        names.append("truncations")
    batch = {name: inputs[name].clone() for name in names}
    returned = _call_with_flags(ppo.compute_advantages, batch)
    advantages, targets = expect_tensors(returned, "compute_advantages", ("advantages", "critic_targets"))
    return {
        "advantages": advantages, "critic_targets": targets,
        "advantages.requires_grad": advantages.requires_grad, "critic_targets.requires_grad": targets.requires_grad,
        "inputs changed": changed_inputs({name: inputs[name] for name in names}, batch),
    }


def _call_with_flags(function, batch):
    """Calls with flags of float32, as the notebook does, or else of bool: ~terminations is as right as 1 - terminations."""
    try:
        return function(*batch.values())
    except (RuntimeError, TypeError, IndexError) as error:
        if isinstance(error, NotImplementedError) and "not implemented for" not in str(error):
            raise  # a stub; torch says NotImplementedError too, of ~ on floats
        bools = [x.bool() if name in ("terminations", "truncations") else x for name, x in batch.items()]
        try:
            return function(*bools)
        except Exception:
            raise error from None


def observe_compute_loss(PPO, inputs):
    ppo = build_ppo(PPO, inputs)
    names = ("states", "actions", "advantages", "critic_targets", "log_probs_old")
    batch = {name: inputs[name].clone() for name in names}
    returned = ppo.compute_loss(*batch.values())
    actor_loss, critic_loss = expect_tensors(returned, "compute_loss", ("actor_loss", "critic_loss"))
    return {
        "actor_loss": actor_loss, "critic_loss": critic_loss,
        "actor_loss.grad(actor)": gradient(actor_loss, ppo.actor),
        "actor_loss.grad(critic)": gradient(actor_loss, ppo.critic),
        "critic_loss.grad(critic)": gradient(critic_loss, ppo.critic),
        "critic_loss.grad(actor)": gradient(critic_loss, ppo.actor),
        "inputs changed": changed_inputs({name: inputs[name] for name in names}, batch),
    }


def observe_networks(PPO, inputs):
    """The given parts of the class: layers, outputs under known weights, separate networks."""
    if not isinstance(PPO, type):
        raise WrongKind(f"PPO must be the class itself, as in rl_tests.test_ppo(PPO); it is {describe(PPO)}")
    ppo = PPO(inputs["state_dim"], inputs["num_actions"], 0.875, 0.75, 0.25, 4)
    for name in ("actor", "critic"):
        if not isinstance(getattr(ppo, name, None), nn.Module):
            raise WrongKind(f"PPO needs a network self.{name} (a torch.nn.Module); "
                            f"it is {describe(getattr(ppo, name, None))}")
    shared = {id(p) for p in ppo.actor.parameters()} & {id(p) for p in ppo.critic.parameters()}
    layers = {name: _layers(getattr(ppo, name)) for name in ("actor", "critic")}
    for offset, network in enumerate((ppo.actor, ppo.critic)):
        fill(network, offset)
    return {
        "layers of the actor": layers["actor"], "layers of the critic": layers["critic"],
        "actor and critic share parameters": bool(shared),
        "compute_values": ppo.compute_values(inputs["states"]).detach().reshape(-1),
        "compute_log_probs": ppo.compute_log_probs(inputs["states"], inputs["actions"]).detach().reshape(-1),
        "number of actions that select_actions gives": ppo.select_actions(inputs["states"]).numel(),
    }


def gradient(loss, network):
    """d loss / d parameters of `network`, flat; zeros where the loss does not reach them or has no graph at all."""
    parameters = list(network.parameters())
    grads = [None] * len(parameters)
    if loss.requires_grad:
        # A loss that is not a scalar is reported by its shape; its sum still has a gradient to show.
        grads = torch.autograd.grad(loss.sum(), parameters, retain_graph=True, allow_unused=True)
    return torch.cat([torch.zeros_like(p).flatten() if g is None else g.flatten() for p, g in zip(parameters, grads)])


def fill(network, offset):
    """Known weights for a network of any layout: small multiples of 1/64 in a pattern without symmetry."""
    with torch.no_grad():
        for k, parameter in enumerate(network.parameters()):
            n = torch.arange(parameter.numel()).reshape(parameter.shape)
            parameter.copy_(((n * 7 + n // 5 * 3 + k * 11 + offset * 5) % 17 - 8) / 64)


def _linear(weight):
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.zero_()
    return nn.Sequential(layer)


def _layers(network):
    """ "3-128-128-4": the sizes of the linear layers in the order in which they are registered."""
    linear = [m for m in network.modules() if isinstance(m, nn.Linear)]
    return "-".join(map(str, [m.in_features for m in linear[:1]] + [m.out_features for m in linear]))


def _grid(quantity, value, inputs):
    """Env-major rows [B] as [T, N]."""
    if quantity not in ("advantages", "critic_targets") or value.dim() != 1:
        return None
    return value.reshape(-1, inputs["num_steps"]).T


def _context(inputs):
    T = inputs["num_steps"]
    values, next_values = ((inputs[name] @ inputs["critic_weight"].T).reshape(-1, T).T
                           for name in ("states", "next_states"))
    ends = inputs["terminations"].bool()
    if "truncations" in inputs:
        ends = ends | inputs["truncations"].bool()
    return {"r": inputs["rewards"].reshape(-1, T).T, "V(s)": values, "V(s')": next_values, "ends": ends.reshape(-1, T).T}


PIECES = {
    "networks": Piece("networks", observe_networks, target="PPO"),
    "compute_advantages": Piece(
        "compute_advantages", observe_compute_advantages, target="PPO", grid=_grid, context=_context, backwards=True,
        words={"advantages.requires_grad": "advantages.requires_grad (a constant for the losses: detach it)",
               "critic_targets.requires_grad": "critic_targets.requires_grad (a constant for the losses: detach it)",
               "inputs changed": "compute_advantages must not change its inputs, it changed"}),
    "compute_loss": Piece(
        "compute_loss", observe_compute_loss, target="PPO",
        words={"actor_loss.grad(actor)": "gradient of actor_loss in the actor's weights",
               "actor_loss.grad(critic)": "gradient of actor_loss in the critic's weights",
               "critic_loss.grad(critic)": "gradient of critic_loss in the critic's weights",
               "critic_loss.grad(actor)": "gradient of critic_loss in the actor's weights",
               "inputs changed": "compute_loss must not change its inputs, it changed"}),
}
