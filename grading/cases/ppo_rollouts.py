"""Questions about advantages and minibatches of 03_ppo_details."""

import torch

from rl_checks.engine import Case

GAMMAS, LAMBDAS = (0.75, 0.875, 0.9375), (0.25, 0.5, 0.625)  # exact in binary, never equal


def rollout(draw, T, N, firsts=(), ended=(), gamma=None, gae_lambda=None):
    """Inputs of compute_advantages. firsts: (t, env) that begin an episode; ended: envs that end at the last step."""
    dones, next_done = torch.zeros(T, N), torch.zeros(N)
    for t, n in firsts:
        dones[t, n] = 1.0
    for n in ended:
        next_done[n] = 1.0
    return {
        "next_value": _away_from_zero(draw, (1, N)), "next_done": next_done, "rewards": draw.quarters((T, N)),
        "values": _away_from_zero(draw, (T, N)), "dones": dones,
        "gamma": draw.choice(GAMMAS) if gamma is None else gamma,
        "gae_lambda": draw.choice(LAMBDAS) if gae_lambda is None else gae_lambda,
    }


def compute_advantages(draw):
    def case(name, T, N, firsts=(), ended=(), **fixed):
        return Case(name, rollout(draw, T, N, firsts, ended, **fixed))

    return [
        _pencil(),
        case("one long episode, still running at the end", 5, 3),
        case("episodes end inside", 6, 3, [(2, 0), (4, 0), (3, 2)]),
        case("an episode ends at the last step", 5, 3, [(2, 1)], [0]),
        case("the first step begins an episode", 4, 3, [(0, 0), (0, 2), (2, 1)]),
        case("two short episodes in a row", 6, 2, [(2, 0), (3, 0), (4, 1), (5, 1)], [1]),
        case("more environments than steps", 3, 6, [(1, 0), (2, 3)], [5, 0]),
        case("one environment", 7, 1, [(3, 0)]),
        case("one step per environment", 1, 4, [(0, 2)], [1]),
        case("lambda = 0", 4, 3, [(2, 1)], gae_lambda=0.0),
        case("lambda = 1", 4, 3, [(2, 0)], [2], gae_lambda=1.0),
        case("gamma = 1", 4, 2, [(2, 1)], [0], gamma=1.0),
    ]


def compute_advantages_without_loop(draw):
    long = Case("a long rollout", rollout(draw, 96, 2, [(30, 0), (31, 1), (70, 1)], [0]))
    return [*compute_advantages(draw)[1:], long]


def _pencil():
    """gamma = 1/2, lambda = 1/4: tests/test_ppo_details.py works it out."""
    return Case("by hand: 3 steps, 2 environments", {
        "next_value": torch.tensor([[4.0, 2.0]]), "next_done": torch.tensor([0.0, 1.0]),
        "rewards": torch.tensor([[1.0, 1.0], [0.0, 2.0], [2.0, 1.0]]),
        "values": torch.tensor([[1.0, 2.0], [2.0, 1.0], [4.0, 3.0]]),
        "dones": torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]), "gamma": 0.5, "gae_lambda": 0.25})


def minibatch_indexes(draw):
    return [Case(name, {"batch_size": B, "minibatch_size": M}) for name, B, M in (
        ("64 rows, 16 a minibatch", 64, 16), ("90 rows, 15 a minibatch", 90, 15), ("128 rows, 32 a minibatch", 128, 32),
        ("10 rows do not divide into 4s: refuse them or deal all", 10, 4))]


def make_minibatches(draw):
    def case(name, T, N, obs_shape, M, action_shape=()):
        B = T * N
        # The first number of an observation says which row it is, in no order that could be mistaken for another.
        obs = draw.quarters((T, N, *obs_shape))
        obs.reshape(B, -1)[:, 0] = torch.tensor(draw.distinct(range(-4 * B, 4 * B), B)) / 4
        actions = draw.integers((T, N), 0, 3) if not action_shape else draw.quarters((T, N, *action_shape))
        deals = torch.stack([torch.tensor(draw.distinct(range(B), B)) for _ in range(8)])
        return Case(name, {"obs": obs, "logprobs": draw.quarters((T, N), -3, -0.25), "actions": actions,
                           "advantages": draw.quarters((T, N), -8, 8), "values": draw.quarters((T, N), -8, 8),
                           "minibatch_size": M, "deals": deals})

    return [case("8 steps, 5 environments, 10 a minibatch", 8, 5, (3,), 10), case("5 steps, 12 environments", 5, 12, (2,), 15),
            case("observations with two dimensions, actions with one", 6, 4, (2, 3), 6, (2,))]


def _away_from_zero(draw, shape):
    return draw.quarters(shape, 0.25, 3) * (2 * draw.bits(shape) - 1)
