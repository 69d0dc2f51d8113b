"""Questions about 02_lunar_lander. B = T*N rows, env-major; D observation size, A actions."""

import torch

from rl_checks.engine import Case

GAMMAS, LAMBDAS = (0.75, 0.875, 0.9375), (0.25, 0.5, 0.625)  # exact in binary, never equal


def networks(draw):
    states, actions = draw.quarters((6, 5)), draw.integers(6, 0, 3)
    return [Case("layers and given methods", {"state_dim": 5, "num_actions": 3, "states": states, "actions": actions})]


def compute_advantages(draw):
    def case(name, T, N, terminated=(), truncated=None, **fixed):
        return Case(name, rollout(draw, T, N, terminated, truncated, **fixed), optional=truncated is not None)

    return [
        _pencil(),
        case("one episode, no end", 5, 3),
        case("episodes end inside", 6, 3, [(2, 0), (4, 0), (3, 2)]),
        case("an episode ends at the border of an environment's rows", 5, 3, [(4, 0), (1, 1), (4, 2)]),
        case("two ends in a row, and one at the first step", 4, 3, [(0, 0), (1, 1), (2, 1), (0, 2)]),
        case("one environment", 6, 1, [(3, 0)]),
        case("one step per environment", 1, 5, [(0, 2)]),
        case("lambda = 0", 4, 3, [(1, 1)], lmbda=0.0),
        case("lambda = 1", 4, 3, [(2, 0)], lmbda=1.0),
        case("truncations inside", 6, 3, [(4, 1)], [(2, 0), (3, 2)]),
        case("truncations at the border", 4, 3, [(3, 1)], [(3, 0), (1, 2), (3, 2)]),
    ]


def compute_loss(draw):
    def case(name, ratios, signs, **fixed):
        return Case(name, batch(draw, ratios, signs, **fixed))

    inside, above, below = (0.90625, 1.0625), (1.5, 1.75), (0.5, 0.375)
    return [
        case("ratio inside the clip range", inside * 3, (1, 1, -1, -1, 1, -1)),
        case("ratio above the range, advantage > 0: clipped", above * 2, (1, 1, 1, 1)),
        case("ratio above the range, advantage < 0: not clipped", above * 2, (-1, -1, -1, -1)),
        case("ratio below the range, advantage > 0: not clipped", below * 2, (1, 1, 1, 1)),
        case("ratio below the range, advantage < 0: clipped", below * 2, (-1, -1, -1, -1)),
        case("everything at once", inside + above + below + inside, (1, -1, 1, -1, -1, 1, 1, 1)),
        case("a wide clip range", (0.5, 1.5, 2.5, 0.125, 1.25), (1, -1, 1, -1, 1), epsilon=0.75),
        case("a single row", (1.375,), (1,)),
    ]


def rollout(draw, T, N, terminated=(), truncated=None, lmbda=None):
    """Inputs for compute_advantages. terminated, truncated: pairs (t, env); truncated None leaves the argument out."""
    D = 3
    states = draw.quarters((N, T, D))
    next_states = draw.quarters((N, T, D))
    ends = set(terminated) | set(truncated or ())
    # Inside an episode the next state is the next row's state; after an end the environment has been reset, and
    # next_states keeps what was last seen. The last row of an environment leads out of the batch.
    for n in range(N):
        for t in range(T - 1):
            if (t, n) not in ends:
                next_states[n, t] = states[n, t + 1]
    inputs = {
        "states": states.reshape(T * N, D), "rewards": draw.quarters(T * N), "next_states": next_states.reshape(T * N, D),
        "terminations": _flags(T, N, terminated), "gamma": draw.choice(GAMMAS),
        "lmbda": draw.choice(LAMBDAS) if lmbda is None else lmbda, "epsilon": 0.1875, "num_steps": T,
        "actor_weight": draw.quarters((4, D)), "critic_weight": _away_from_zero(draw, (1, D)),
    }
    if truncated is not None:
        inputs["truncations"] = _flags(T, N, truncated)
    return inputs


def batch(draw, ratios, signs, epsilon=None):
    """Inputs for compute_loss whose rows have the given new/old probability ratios and signs of the advantage."""
    B, D, A = len(ratios), 3, 4
    states, actions = draw.quarters((B, D)), draw.integers(B, 0, A)
    actor_weight = draw.quarters((A, D), -1, 1)
    log_probs = torch.log_softmax(states.double() @ actor_weight.double().T, dim=1)[torch.arange(B), actions]
    return {
        "states": states, "actions": actions,
        "advantages": torch.tensor(signs, dtype=torch.float32) * draw.quarters(B, 0.5, 3),
        "critic_targets": draw.quarters(B, -3, 3),
        "log_probs_old": (log_probs - torch.tensor(ratios, dtype=torch.float64).log()).float(),
        # Distinct from 0.2, so that a constant in the code shows; no ratio lies near 1 +- epsilon.
        "gamma": 0.875, "lmbda": 0.5, "epsilon": draw.choice((0.1875, 0.21875, 0.25)) if epsilon is None else epsilon,
        "num_steps": 1, "actor_weight": actor_weight, "critic_weight": _away_from_zero(draw, (1, D)),
    }


def _pencil():
    """Small enough for pencil and paper: V(s) = s, gamma = 1/2, lambda = 1/4 (tests/test_lunar_lander.py works it out)."""
    return Case("by hand: 3 steps, 2 environments", {
        "states": torch.tensor([[1.0], [2.0], [3.0], [2.0], [0.0], [1.0]]),
        "rewards": torch.tensor([1.0, 0.0, 2.0, -1.0, 1.0, 0.5]),
        "next_states": torch.tensor([[2.0], [3.0], [4.0], [5.0], [1.0], [2.0]]),
        "terminations": torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
        "gamma": 0.5, "lmbda": 0.25, "epsilon": 0.1875, "num_steps": 3,
        "actor_weight": torch.tensor([[1.0], [-1.0]]), "critic_weight": torch.tensor([[1.0]])})


def _flags(T, N, places):
    flags = torch.zeros(N, T)
    for t, n in places:
        flags[n, t] = 1.0
    return flags.reshape(-1)


def _away_from_zero(draw, shape):
    weight = draw.quarters(shape, 0.25, 1.25)
    return weight * (2 * draw.bits(shape) - 1)
