"""Questions about 04_continuous_control. T steps, N envs, B rows, D observation size, A actions."""

import math

import torch

from rl_checks.engine import Case

GAMMAS, LAMBDAS = (0.75, 0.875, 0.9375), (0.25, 0.5, 0.625)  # exact in binary, never equal


def GaussianPolicy(draw):
    def case(name, B, D, A, start):
        return Case(name, {
            "obs": draw.quarters((B, D)), "actions": draw.quarters((B, A)), "weight": draw.quarters((A, D), -1, 1),
            "log_std": draw.quarters(A, -1.25, 0.75) + 0.125, "log_std_start": start})

    return [_pencil_policy(), case("three motors", 5, 4, 3, -1.0), case("two motors, another start", 4, 3, 2, -0.5),
            case("one motor", 6, 2, 1, 0.25)]


def _pencil_policy():
    """Means (0, 1), standard deviations (1, 1/2), action (1, 1): the worked example of the notebook."""
    return Case("by hand: the worked example", {
        "obs": torch.tensor([[1.0, 0.0]]), "actions": torch.tensor([[1.0, 1.0]]),
        "weight": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "log_std": torch.tensor([0.0, -math.log(2.0)]),
        "log_std_start": -1.0})


def RunningNorm(draw):
    def case(name, shape, sizes, clip):
        batches = {f"batch{i}": draw.quarters((size, *shape), 2 * i - 3, 2 * i + 3) for i, size in enumerate(sizes)}
        return Case(name, {**batches, "x": draw.quarters((4, *shape), -16, 16), "clip": clip})

    pencil = {"batch0": torch.tensor([[0.0], [2.0]]), "batch1": torch.tensor([[4.0]]),
              "x": torch.tensor([[2.0], [6.0], [-100.0]]), "clip": 10.0}
    return [Case("by hand: 0, 2 and then 4", pencil), case("batches of different sizes", (3,), (5, 2, 7), 10.0),
            case("a narrow clip", (2,), (4, 6), 1.5), case("single numbers", (), (3, 5, 2), 8.0)]


def RewardScaler(draw):
    def case(name, T, N, ends=(), clip=10.0):
        rewards = draw.quarters((T, N), -2, 3)
        rewards[0] += torch.arange(N) / 2 + torch.tensor([0.25 * (i % 2) for i in range(N)])  # the first variance is not 0
        return Case(name, {"rewards": rewards, "ended": _flags(T, N, ends), "gamma": draw.choice(GAMMAS), "clip": clip})

    pencil = {"rewards": torch.tensor([[2.0], [4.0], [1.0]]), "ended": _flags(3, 1, [(0, 0)]), "gamma": 0.5, "clip": 10.0}
    return [Case("by hand: an end at once", {**pencil, "rewards": torch.tensor([[0.0], [4.0], [1.0]])}),
            case("no end", 5, 3), case("ends inside", 6, 3, [(1, 0), (3, 2), (3, 1)]),
            case("an end at the last step and at the first", 4, 2, [(0, 1), (3, 0)]),
            case("a narrow clip", 5, 3, [(2, 1)], clip=1.25), case("one robot", 5, 1, [(2, 0)])]


def bootstrap_truncations(draw):
    def case(name, T, N, cuts=()):
        return Case(name, {"values": draw.quarters((T, N)), "last_values": draw.quarters(N) + 0.125,
                           "truncated": _flags(T, N, cuts), "final_values": draw.quarters((T, N), 3, 9) + 0.0625})

    pencil = {"values": torch.tensor([[5.0], [6.0], [1.0]]), "last_values": torch.tensor([2.0]),
              "truncated": _flags(3, 1, [(1, 0)]), "final_values": torch.tensor([[0.0], [7.0], [0.0]])}
    return [Case("by hand: the worked example", pencil), case("no cut", 4, 3), case("cuts inside", 5, 3, [(1, 0), (3, 2)]),
            case("cuts at the border", 4, 3, [(3, 0), (3, 2), (0, 1)]), case("two cuts in a row", 5, 2, [(1, 1), (2, 1)]),
            case("one step", 1, 4, [(0, 2)])]


def gae(draw):
    def case(name, T, N, terminated=(), truncated=(), lam=None):
        values, next_values = draw.quarters((T, N)), draw.quarters((T, N))
        ends = {*terminated, *truncated}
        for t in range(T - 1):
            for n in range(N):
                if (t, n) not in ends:
                    next_values[t, n] = values[t + 1, n]
        return Case(name, {"rewards": draw.quarters((T, N)), "values": values, "next_values": next_values,
                           "terminated": _flags(T, N, terminated), "truncated": _flags(T, N, truncated),
                           "gamma": draw.choice(GAMMAS), "lam": draw.choice(LAMBDAS) if lam is None else lam})

    pencil = {"rewards": torch.tensor([[1.0], [0.0], [2.0]]), "values": torch.tensor([[5.0], [6.0], [1.0]]),
              "next_values": torch.tensor([[6.0], [7.0], [2.0]]), "terminated": _flags(3, 1, []),
              "truncated": _flags(3, 1, [(1, 0)]), "gamma": 0.5, "lam": 0.25}
    return [Case("by hand: 3 steps, a cut", pencil), case("no end", 5, 3), case("terminated inside", 6, 3, [(2, 0), (3, 2)]),
            case("truncated inside", 6, 3, (), [(1, 0), (4, 1)]), case("both kinds", 6, 3, [(1, 0), (4, 2)], [(3, 0), (2, 1)]),
            case("ends at the border", 4, 3, [(3, 0), (0, 1)], [(3, 2), (0, 2)]),
            case("terminated and truncated in the same step", 4, 2, [(1, 0)], [(1, 0), (2, 1)]),
            case("one step", 1, 5, [(0, 1)], [(0, 3)]), case("lambda = 0", 4, 3, [(1, 1)], [(2, 0)], lam=0.0),
            case("lambda = 1", 4, 3, [(1, 1)], [(2, 0)], lam=1.0)]


def ppo_update(draw):
    ratios = (0.5, 1.5, 0.90625, 1.0625, 1.75, 0.375, 1.5, 0.75)
    signs = (1, 1, -1, 1, -1, -1, -1, 1)

    def case(name, rows=8, optional=False, **fixed):
        return Case(name, _batch(draw, ratios[:rows], signs[:rows], **fixed), optional=optional)

    same = (1.0,) * 6
    return [
        case("one epoch, ratios on both sides of the clip"),
        # 1.75 lies between 1 + 0.625 and exp(0.625): it tells a clipped ratio from a clipped log-ratio.
        Case("a wide clip range and a small value coefficient",
             _batch(draw, ratios, (1, -1, 1, -1, 1, 1, -1, -1), clip=0.625, value_coef=0.25)),
        case("with an entropy bonus", entropy_coef=0.5),
        case("the gradient norm is clipped", max_grad_norm=0.25),
        case("two epochs", epochs=2, lr=0.125, entropy_coef=0.25),
        case("two epochs, the gradient norm is clipped", epochs=2, lr=0.5, max_grad_norm=0.5),
        case("minibatches: three of four rows", minibatch_size=4, repeat=12, epochs=3),
        case("minibatches: rows left over", minibatch_size=4, repeat=10, epochs=2),
        # Rates between the bounds of 1e-5 and 1e-2: above them, the ways to clamp differ.
        Case("extension: the KL is too high",
             _batch(draw, ratios, signs, target_kl=0.015625, epochs=2, lr=0.0078125), optional=True),
        Case("extension: the KL is low",
             _batch(draw, same, signs[:6], target_kl=4.0, epochs=2, lr=0.001953125), optional=True),
        Case("extension: the highest rate",
             _batch(draw, same, signs[:6], target_kl=4.0, epochs=3, lr=0.0078125), optional=True),
    ]


def collect(draw):
    def case(name, T, N, terminated=(), truncated=()):
        D, A = 3, 2
        return Case(name, {
            "obs": draw.quarters((N, D)), "script_obs": draw.quarters((T, N, D)), "final_obs": draw.quarters((T, N, D), 3, 6),
            "script_rewards": draw.quarters((T, N)), "script_returns": draw.quarters((T, N), 10, 90),
            "terminated": _flags(T, N, terminated), "truncated": _flags(T, N, truncated),
            "policy_weight": draw.quarters((A, D), 0.5, 2),
            "low": torch.tensor([-0.5, -1.0]), "high": torch.tensor([0.75, 0.5])})

    return [case("no end", 4, 3), case("terminated and truncated inside", 6, 3, [(1, 0), (4, 2)], [(2, 1), (4, 0)]),
            case("cut at the first and at the last step", 4, 3, [(3, 1)], [(0, 0), (3, 2)]),
            case("all are cut at once", 3, 4, (), [(1, n) for n in range(4)]), case("one robot", 5, 1, [(3, 0)], [(1, 0)])]


def _batch(draw, ratios, signs, minibatch_size=0, repeat=None, **fixed):
    """Inputs for ppo_update. minibatch_size 0: the whole batch. repeat: so many rows, each with an obs[0] of its own."""
    D, A = 3, 2
    B = repeat or len(ratios)
    ratios, signs = [ratios[i % len(ratios)] for i in range(B)], [signs[i % len(signs)] for i in range(B)]
    obs, actions = draw.quarters((B, D), -1, 1), draw.quarters((B, A), -1, 1)
    obs[:, 0] = torch.arange(B) / 8 - 0.5
    weight, log_std = draw.quarters((A, D), -0.5, 0.5), draw.quarters(A, -0.5, 0.25)
    log_probs = torch.distributions.Normal(obs.double() @ weight.double().T, log_std.double().exp()).log_prob(actions).sum(-1)
    return {
        "obs": obs, "actions": actions, "policy_weight": weight, "log_std": log_std,
        "critic_weight": draw.quarters((1, D), 0.25, 1),
        "log_probs": (log_probs - torch.tensor(ratios, dtype=torch.float64).log()).float(),
        "advantages": torch.tensor(signs, dtype=torch.float32) * draw.quarters(B, 1.5, 3) + 0.25,
        "returns": draw.quarters(B, -2, 2), "minibatch_size": minibatch_size,
        # Distinct from the usual 0.2, 0.5 and 0, so that a constant in the code shows. No ratio lies near 1 +- clip.
        "epochs": 1, "clip": draw.choice((0.1875, 0.21875)), "value_coef": 0.75, "entropy_coef": 0.0, "max_grad_norm": 64.0,
        "target_kl": None, "lr": 0.25, **fixed}


def _flags(T, N, places):
    flags = torch.zeros(T, N)
    for t, n in places:
        flags[t, n] = 1.0
    return flags
