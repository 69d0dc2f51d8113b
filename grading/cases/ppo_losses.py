"""Questions about the losses and the metrics of 03_ppo_details. M rows of a minibatch, A actions."""

import math

import torch

from rl_checks.engine import Case

INSIDE, ABOVE, BELOW = (0.90625, 1.0625), (1.5, 1.75), (0.5, 0.375)  # ratios; none lies near 1 +- clip_coef
CLIPS = (0.1875, 0.21875, 0.25)  # not 0.2, so that a constant in the code shows


def calc_policy_loss(draw):
    def case(name, ratios, signs, **fixed):
        return Case(name, minibatch(draw, ratios, signs, **fixed))

    return [
        case("ratios inside the clip range", INSIDE * 4, (1, -1, 1, 1, -1, -1, 1, -1)),
        case("ratio above the range, advantages of both signs", ABOVE * 4, (1, -1, -1, 1, 1, 1, -1, -1)),
        case("ratio below the range, advantages of both signs", BELOW * 4, (1, -1, -1, 1, 1, 1, -1, -1)),
        case("everything at once", INSIDE + ABOVE + BELOW + ABOVE + BELOW + INSIDE,
             (1, -1, 1, -1, 1, -1, -1, 1, -1, 1, 1, 1)),
        case("all advantages are large and positive", ABOVE + BELOW + INSIDE + ABOVE, (1, -1, 1, -1, -1, 1, 1, -1),
             offset=32.0),
        case("a wide clip range", (1.25, 1.5, 0.75, 0.5, 2.5, 0.25), (1, -1, -1, 1, 1, -1), clip_coef=0.625),
        _equal_advantages(draw),
    ]


def minibatch(draw, ratios, signs, clip_coef=None, offset=0.0):
    """Rows with the given new/old ratios, and advantages that keep their signs when their mean is subtracted."""
    M, A = len(ratios), 3
    logits, actions = draw.quarters((M, A), -1, 1), draw.integers(M, 0, A)
    advantages = torch.tensor(signs, dtype=torch.float32) * draw.quarters(M, 4, 8) + offset
    logprobs = torch.log_softmax(logits.double(), dim=1)[torch.arange(M), actions]
    return {"logits": logits, "mb_action": actions, "mb_advantages": advantages,
            "mb_logprobs": (logprobs - torch.tensor(ratios, dtype=torch.float64).log()).float(),
            "clip_coef": draw.choice(CLIPS) if clip_coef is None else clip_coef}


def _equal_advantages(draw):
    inputs = minibatch(draw, INSIDE + ABOVE, (1, 1, 1, 1))
    inputs["mb_advantages"] = torch.full((4,), draw.quarters((1,), 1, 4).item())
    return Case("all advantages are equal: nothing to learn, and no nan", inputs)


def calc_value_function_loss(draw):
    def case(name, M, D):
        return Case(name, {"weight": draw.quarters((1, D), 0.25, 1.5), "bias": draw.choice((0.25, 0.5, -0.75)),
                           "mb_obs": draw.quarters((M, D)), "mb_returns": draw.quarters(M, -8, 8),
                           "v_coef": draw.choice((0.25, 0.375, 0.75))})

    by_hand = {"weight": torch.tensor([[1.0]]), "bias": 0.0, "mb_obs": torch.tensor([[1.0], [3.0]]),
               "mb_returns": torch.tensor([2.0, 1.0]), "v_coef": 0.25}
    return [Case("by hand: V = (1, 3), returns = (2, 1)", by_hand), case("6 rows", 6, 3), case("9 rows", 9, 2)]


def calc_entropy_loss(draw):
    def case(name, logits):
        return Case(name, {"logits": logits, "ent_coef": draw.choice((0.25, 0.375, 0.75))})

    sure = torch.tensor([[6.0, 0.0], [0.0, 5.0], [-4.0, 3.0]])
    return [case("all actions equally likely", torch.zeros(3, 2)), case("a policy that is almost sure", sure),
            case("4 actions", draw.quarters((5, 4), -3, 3)), case("2 actions, 7 rows", draw.quarters((7, 2), -3, 3))]


def calc_entropy(draw):
    return [Case("2 actions", {"logits": draw.quarters((6, 2), -2, 2)}),
            Case("4 actions, 5 rows", {"logits": draw.quarters((5, 4), -3, 3)}),
            Case("all equally likely: ln 3", {"logits": torch.zeros(4, 3)})]


def logprobs(draw, M, low=-0.75, high=0.75):
    """New and old log-probabilities of M actions whose log ratios lie in [low, high]."""
    old = draw.quarters(M, -3, -1)
    log_ratios = draw.quarters(M, 4 * low, 4 * high) / 4
    return {"new_logprobs": old + log_ratios, "old_logprobs": old}


def calc_old_approx_kl(draw):
    return [Case("8 samples", logprobs(draw, 8)), Case("all actions have become less likely", logprobs(draw, 6, -1, -0.25)),
            Case("all actions have become more likely", logprobs(draw, 7, 0.25, 1))]


def calc_approx_kl(draw):
    return [*calc_old_approx_kl(draw), Case("nothing has changed", logprobs(draw, 5, 0, 0))]


def calc_clipfrac(draw):
    def case(name, ratios, clip_coef):
        old = draw.quarters(len(ratios), -3, -1)
        return Case(name, {"new_logprobs": old + torch.tensor([math.log(r) for r in ratios]), "old_logprobs": old,
                           "clip_coef": clip_coef})

    return [case("2 of 5 outside", (1.0, 1.5, 0.5, 1.125, 0.875), 0.25),
            case("above only", (1.5, 1.25, 1.0, 1.75), 0.125), case("below only", (0.5, 0.75, 1.0, 0.25, 1.0625), 0.125),
            case("none outside", (1.0, 0.9375, 1.0625), 0.21875),
            case("the range is one of ratios, not of log ratios", (1.375, 0.75, 1.0, 0.6875, 1.34375, 0.71875), 0.3125),
            case("all outside", (0.25, 1.75, 0.125), 0.5)]


def calc_explained_variance(draw):
    returns = draw.quarters((4, 3), -4, 4)
    returns[0, 0], returns[0, 1] = 4.25, -4.25  # never all equal
    better, offset = returns + draw.quarters((4, 3), -1, 1), returns + 2.0
    return [Case("a fair critic", {"values": better, "returns": returns}),
            Case("right but for a constant", {"values": offset, "returns": returns}),
            Case("a critic that says the same everywhere", {"values": torch.full((4, 3), 0.75), "returns": returns}),
            Case("worse than a constant", {"values": -2 * returns, "returns": returns}),
            Case("all returns are equal", {"values": better, "returns": torch.full((4, 3), 1.5)})]
