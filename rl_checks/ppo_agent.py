"""Observers of 03_ppo_details: the agents, the scheduler, the optimizer. D observation size, A actions, B rows."""

import contextlib
import inspect
from types import SimpleNamespace

import torch
from torch import nn

from rl_checks.engine import Piece, WrongKind, describe

NETWORKS = ("actor", "critic")


@contextlib.contextmanager
def standing_in(function, **replacements):
    """For the time of one look, gives `function` these objects in place of the notebook's own of the same names.

    So a piece is looked at by itself: what is wrong in another one does not count twice.
    """
    names = getattr(inspect.unwrap(function), "__globals__", {})
    before = {name: names[name] for name in replacements if name in names}
    names.update({name: replacements[name] for name in before})
    try:
        yield
    finally:
        names.update(before)


def build(Agent, inputs):
    """An agent of the student's class for an environment of the size in `inputs`."""
    from gymnasium.spaces import Box, Discrete

    if not callable(Agent) or isinstance(Agent, nn.Module):
        raise WrongKind(f"pass the class itself, as in rl_tests.test_agent_init(Agent); it is {describe(Agent)}")
    D, A, N = inputs["obs_size"], inputs["num_actions"], 3
    action_space = Box(-1.0, 1.0, (A,)) if inputs.get("continuous") else Discrete(A)
    envs = SimpleNamespace(num_envs=N, single_observation_space=Box(-4.0, 4.0, (D,)), single_action_space=action_space,
                           observation_space=Box(-4.0, 4.0, (N, D)))
    agent = Agent(envs)
    for name in NETWORKS:
        if not isinstance(getattr(agent, name, None), nn.Module):
            raise WrongKind(f"the agent needs a network self.{name} (a torch.nn.Module); "
                            f"it is {describe(getattr(agent, name, None))}")
    return agent


def observe_agent(Agent, inputs):
    agent = build(Agent, inputs)
    seen = {}
    for name in NETWORKS:
        layers = linear_layers(getattr(agent, name))
        seen[f"layers of the {name}"] = "-".join(
            map(str, [layer.in_features for layer in layers[:1]] + [layer.out_features for layer in layers]))
        for k, layer in enumerate(layers):
            seen[f"singular values {name} {k}"] = torch.linalg.svdvals(layer.weight.detach().double())
        biases = [layer.bias.detach().flatten() for layer in layers if layer.bias is not None]
        seen[f"biases of the {name}"] = torch.cat(biases) if biases else torch.zeros(0)
    owned = [id(p) for p in agent.parameters()] if isinstance(agent, nn.Module) else []
    both = [{id(p) for p in getattr(agent, name).parameters()} for name in NETWORKS]
    seen["actor and critic share parameters"] = bool(both[0] & both[1])
    seen["agent.parameters() has all parameters"] = (both[0] | both[1]) <= set(owned)
    if inputs.get("continuous"):
        log_std = getattr(agent, "log_std", None)
        seen["log_std"] = log_std.detach().flatten() if isinstance(log_std, torch.Tensor) else describe(log_std)
        seen["log_std is a parameter"] = isinstance(log_std, nn.Parameter) and id(log_std) in owned
    for offset, name in enumerate(NETWORKS):
        fill(getattr(agent, name), offset)
    for name in NETWORKS:
        seen[f"{name}(obs)"] = _forward(getattr(agent, name), inputs)
    return seen


def derive_agent(raw, inputs):
    """Says in words what the weights are: the numbers of a random matrix are nobody's business."""
    seen = dict(raw)
    for name in NETWORKS:
        words = []
        while (values := seen.pop(f"singular values {name} {len(words)}", None)) is not None:
            gain = float(values.max())
            orthogonal = gain > 0 and float(values.min()) > gain * (1 - 1e-4)
            words.append(f"orthogonal x {gain:.3g}" if orthogonal else "not orthogonal")
        seen[f"weights of the {name}"] = ", ".join(words)
        biases = seen[f"biases of the {name}"]
        seen[f"biases of the {name}"] = f"{len(biases)}, " + ("all 0" if not biases.any() else "not all 0")
    return seen


def linear_layers(network):
    return [module for module in network.modules() if isinstance(module, nn.Linear)]


def fill(network, offset):
    """Known weights for a network of any layout: small multiples of 1/32 in a pattern without symmetry."""
    with torch.no_grad():
        for k, parameter in enumerate(network.parameters()):
            n = torch.arange(parameter.numel()).reshape(parameter.shape)
            parameter.copy_(((n * 7 + n // 5 * 3 + k * 11 + offset * 5) % 17 - 8) / 32)


def _forward(network, inputs):
    """What the network says; nothing where its layers do not fit the observations, which is told by the layers."""
    layers = linear_layers(network)
    if not layers or layers[0].in_features != inputs["obs_size"]:
        return torch.zeros(0)
    with torch.no_grad():
        return network(inputs["obs"])


def observe_scheduler(PPOScheduler, inputs):
    if not callable(PPOScheduler):
        raise WrongKind(f"pass the class itself, as in rl_tests.test_ppo_scheduler(PPOScheduler); "
                        f"it is {describe(PPOScheduler)}")
    # Another one, half used: state that belongs to the class and not to the object would show.
    other = PPOScheduler(_optimizer([0.5]), 0.5, 0.25, 4)
    other.step()
    optimizer = _optimizer(inputs["group_lrs"])
    scheduler = PPOScheduler(optimizer, inputs["initial_lr"], inputs["end_lr"], inputs["num_updates"])
    rows = []
    for _ in range(inputs["num_updates"] + inputs["calls_after_the_end"]):
        optimizer.step()
        scheduler.step()
        rows.append([float(group["lr"]) for group in optimizer.param_groups])
    return {"learning rate": torch.tensor(rows, dtype=torch.float64).T}


def _optimizer(lrs):
    return torch.optim.Adam([{"params": [nn.Parameter(torch.zeros(2))], "lr": lr} for lr in lrs])


class _Scheduler:
    """Stands in for the notebook's PPOScheduler: only notes what it is made with."""

    def __init__(self, optimizer, initial_lr, end_lr, num_updates):
        self.optimizer, self.made_with = optimizer, (initial_lr, end_lr, num_updates)

    def step(self):
        """Nothing to do."""


def observe_make_optimizer(make_optimizer, inputs):
    agent = nn.Module()
    agent.actor, agent.critic = nn.Linear(2, 3), nn.Linear(2, 1)
    agent.log_std = nn.Parameter(torch.zeros(3))
    with standing_in(make_optimizer, PPOScheduler=_Scheduler):
        made = make_optimizer(agent, inputs["num_updates"], inputs["initial_lr"], inputs["end_lr"])
    if not isinstance(made, (tuple, list)) or len(made) != 2:
        raise WrongKind(f"make_optimizer must return (optimizer, scheduler); it returned {describe(made)}")
    optimizer, scheduler = made
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise WrongKind(f"the first thing that make_optimizer returns must be the optimizer; it is {describe(optimizer)}")
    if not isinstance(scheduler, _Scheduler):
        raise WrongKind(f"the second thing that make_optimizer returns must be a PPOScheduler; it is {describe(scheduler)}")
    moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
    options = optimizer.param_groups[0]
    made_with = scheduler.made_with
    return {
        "optimizer": type(optimizer).__name__,
        "parameters that it does not move": ", ".join(n for n, p in agent.named_parameters() if id(p) not in moved),
        "learning rate": float(options["lr"]),
        "eps": f"{float(options.get('eps', 0)):g}",  # as text: the tolerance of numbers is as large as this number
        "weight decay": float(options.get("weight_decay", 0)),
        "betas": str(tuple(options.get("betas", ()))),
        "the scheduler's initial_lr": float(made_with[0]), "the scheduler's end_lr": float(made_with[1]),
        "the scheduler's num_updates": float(made_with[2]),
        "the scheduler moves this optimizer": scheduler.optimizer is optimizer,
    }


PIECES = {
    "agent_init": Piece("agent_init", observe_agent, target="Agent", derive=derive_agent),
    "ppo_scheduler": Piece(
        "ppo_scheduler", observe_scheduler, target="PPOScheduler", axes={"learning rate": ("group", "calls before")},
        words={"learning rate": "learning rate after one more call of step()"}),
    "make_optimizer": Piece("make_optimizer", observe_make_optimizer),
}
BONUS = {
    "continuous_agent_init": Piece("continuous_agent_init", observe_agent, target="ContinuousAgent", derive=derive_agent),
}
