"""Questions about 01_policy_gradients. T steps, N trajectories, B rows, A actions."""

import torch

from rl_checks.engine import Case

GAMMAS = (0.5, 0.75, 0.875)  # exact in binary
EPSILONS = (0.125, 0.25, 0.375)


def discounted_returns(draw):
    return [
        Case("by hand", {"rewards": torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 8.0]]), "gamma": 0.5}),
        _rewards(draw, "several trajectories", 6, 4),
        _rewards(draw, "one trajectory", 5, 1),
        _rewards(draw, "one step", 1, 3),
        _rewards(draw, "no discount, gamma = 1", 4, 3, gamma=1.0),
        _rewards(draw, "only the first reward, gamma = 0", 4, 3, gamma=0.0),
        _rewards(draw, "trajectories of different lengths, filled up with 0", 7, 3, lengths=(7, 2, 4)),
    ]


def reward_to_go(draw):
    return [
        Case("by hand", {"rewards": torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 8.0]]), "gamma": 0.5}),
        _rewards(draw, "several trajectories", 6, 4),
        _rewards(draw, "one trajectory", 5, 1),
        _rewards(draw, "one step", 1, 3),
        _rewards(draw, "no discount, gamma = 1", 4, 3, gamma=1.0),
        _rewards(draw, "only the next reward, gamma = 0", 4, 3, gamma=0.0),
        _rewards(draw, "trajectories of different lengths, filled up with 0", 7, 3, lengths=(7, 2, 4)),
    ]


def policy_gradient_loss(draw):
    zeros, actions, returns = torch.zeros(2, 3), torch.tensor([0, 2]), torch.tensor([3.0, 1.0])
    by_hand = {"logits": zeros, "actions": actions, "returns": returns}
    return [
        Case("by hand, no baseline", by_hand),
        Case("by hand, baseline 2", {**by_hand, "baselines": torch.tensor([2.0, 2.0])}),
        _batch(draw, "several rows, no baseline", 7, 4),
        _batch(draw, "several rows, a baseline for each", 6, 3, baseline=True),
        _batch(draw, "two actions", 5, 2, baseline=True),
        _batch(draw, "as many rows as actions", 4, 4, baseline=True),
        _batch(draw, "one row", 1, 5),
        _batch(draw, "returns below zero", 5, 3, low=-4.0, high=-1.0),
    ]


def kl_categorical(draw):
    equal = draw.quarters((3, 4))
    far = torch.tensor([[200.0, -200.0, 0.0], [0.0, 150.0, -150.0]])
    return [
        Case("by hand: (1/2, 1/2) and (1/4, 3/4)", {
            "logits_p": torch.zeros(1, 2), "logits_q": torch.tensor([[0.25, 0.75]]).log()}),
        Case("several states", {"logits_p": draw.quarters((5, 3)), "logits_q": draw.quarters((5, 3))}),
        Case("two actions", {"logits_p": draw.quarters((4, 2)), "logits_q": draw.quarters((4, 2))}),
        Case("one state, many actions", {"logits_p": draw.quarters((1, 7)), "logits_q": draw.quarters((1, 7))}),
        Case("equal policies", {"logits_p": equal, "logits_q": equal.clone()}),
        Case("equal policies, logits that differ by a constant", {"logits_p": equal, "logits_q": equal + 1.5}),
        Case("probabilities that underflow to 0", {"logits_p": far, "logits_q": draw.quarters((2, 3))}),
    ]


def clipped_objective(draw):
    inside, above, below = (0.9375, 1.0625), (1.5, 2.25), (0.5, 0.25)

    def case(name, ratios, sign, epsilon=None):
        size = draw.quarters(len(ratios), 0.5, 2.5)
        signs = torch.tensor(sign) if isinstance(sign, tuple) else sign
        epsilon = draw.choice(EPSILONS) if epsilon is None else epsilon
        return Case(name, {"ratio": torch.tensor(ratios), "advantages": signs * size, "epsilon": epsilon})

    return [
        Case("by hand", {"ratio": torch.tensor([1.5, 1.5, 0.5, 0.5]),
                         "advantages": torch.tensor([2.0, -2.0, 2.0, -2.0]), "epsilon": 0.25}),
        case("ratio inside the range", inside * 2, (1, 1, -1, -1)),
        case("ratio above the range, advantage > 0: flat", above * 2, 1),
        case("ratio above the range, advantage < 0: not clipped", above * 2, -1),
        case("ratio below the range, advantage > 0: not clipped", below * 2, 1),
        case("ratio below the range, advantage < 0: flat", below * 2, -1),
        case("a wide range", (0.5, 1.5, 1.875, 0.125), (1, 1, 1, -1), epsilon=0.75),
        case("one row", (1.75,), 1),
    ]


def td_errors(draw):
    def case(name, T, N, ends=(), gamma=None):
        terminated = torch.zeros(T, N, dtype=torch.bool)
        for t, n in ends:
            terminated[t, n] = True
        shape = (T, N)
        return Case(name, {
            "rewards": _not_zero(draw, shape), "values": _not_zero(draw, shape), "next_values": _not_zero(draw, shape),
            "terminated": terminated, "gamma": draw.choice(GAMMAS) if gamma is None else gamma})

    return [
        Case("by hand", {
            "rewards": torch.tensor([[1.0, 1.0]]), "values": torch.tensor([[2.0, 2.0]]),
            "next_values": torch.tensor([[4.0, 4.0]]), "terminated": torch.tensor([[False, True]]), "gamma": 0.5}),
        case("no end", 5, 3),
        case("episodes end inside", 5, 3, [(1, 0), (3, 2)]),
        case("episodes end at the first and at the last step", 4, 3, [(0, 1), (3, 0), (3, 1)]),
        case("one environment", 6, 1, [(2, 0)]),
        case("one step", 1, 4, [(0, 3)]),
        case("gamma = 1", 3, 2, [(1, 1)], gamma=1.0),
        case("gamma = 0", 3, 2, [(1, 1)], gamma=0.0),
    ]


def _rewards(draw, name, T, N, gamma=None, lengths=None):
    rewards = _not_zero(draw, (T, N))
    for n, length in enumerate(lengths or ()):
        rewards[length:, n] = 0.0
    return Case(name, {"rewards": rewards, "gamma": draw.choice(GAMMAS) if gamma is None else gamma})


def _batch(draw, name, B, A, baseline=False, low=-2.0, high=3.0):
    inputs = {"logits": draw.quarters((B, A)), "actions": draw.integers(B, 0, A), "returns": draw.quarters(B, low, high)}
    if baseline:
        inputs["baselines"] = _not_zero(draw, (B,))
    return Case(name, inputs)


def _not_zero(draw, shape):
    """Quarters between -2 and 2 without 0, which would hide a missing term."""
    values = draw.quarters(shape)
    return torch.where(values == 0, torch.full_like(values, 0.75), values)
