"""Questions about the two phases of the training loop of 03_ppo_details."""

import torch

from rl_checks.engine import Case

D, A = 3, 3


def rollout_phase(draw):
    def case(name, T, N, terminated=(), truncated=(), first=(), spread=0.5):
        """first: envs whose first observation begins an episode; spread: size of the actor's weights."""
        flags = {}
        for key, places in (("terminated", terminated), ("truncated", truncated)):
            flags[key] = torch.zeros(T, N)
            for t, n in places:
                flags[key][t, n] = 1.0
        next_done = torch.zeros(N)
        next_done[list(first)] = 1.0
        return Case(name, {
            "script_obs": draw.quarters((T, N, D)), "final_obs": draw.quarters((T, N, D), -4, 4),
            "script_rewards": draw.quarters((T, N)), **flags, "next_obs": draw.quarters((N, D)), "next_done": next_done,
            "actor_weight": spread * _scattered(draw, (A, D)), "critic_weight": _scattered(draw, (1, D)),
            "gamma": draw.choice((0.75, 0.875))})

    certain = case("a policy that is certain", 5, 4, [(2, 1)])
    # Logits 24 apart: the second action at every observation, whatever is drawn.
    certain.inputs["actor_weight"] = torch.tensor([[0.0, 0, 0], [24, 0, 0], [0, 0, 0]])
    for name in ("script_obs", "next_obs", "final_obs"):
        certain.inputs[name][..., 0] = 1.0
    return [
        case("nothing ends", 6, 8),
        case("episodes terminate", 6, 7, [(0, 0), (2, 1), (5, 2), (3, 0)], first=[1, 3]),
        case("a clock truncates", 7, 6, [(1, 0)], [(1, 1), (2, 1), (4, 3), (6, 2)], first=[0]),
        case("terminated and truncated in the same step", 5, 8, [(1, 0), (3, 2)], [(1, 0), (1, 4), (3, 2)], first=[2]),
        certain,
    ]


def learning_phase(draw):
    def case(name, T, N, M, epochs, **fixed):
        B = T * N
        deals = torch.stack([torch.tensor(draw.distinct(range(B), B)) for _ in range(epochs)])
        return Case(name, {
            "obs": draw.quarters((T, N, D)), "actions": draw.integers((T, N), 0, A), "rewards": draw.quarters((T, N)),
            "logprobs": draw.quarters((T, N), -3, -0.5), "dones": draw.bits((T, N), 0.3), "values": draw.quarters((T, N)),
            "next_obs": draw.quarters((N, D)), "next_done": draw.bits(N, 0.5), "advantages": draw.quarters((T, N), -4, 4),
            "actor_weight": _scattered(draw, (A, D)), "critic_weight": _scattered(draw, (1, D)), "deals": deals,
            "gamma": 0.875, "gae_lambda": 0.625, "update_epochs": epochs, "minibatch_size": M,
            "clip_coef": 0.1875, "vf_coef": 0.375, "ent_coef": 0.25, "max_grad_norm": 64.0, "learning_rate": 0.125, **fixed})

    return [case("one epoch, one minibatch", 4, 3, 12, 1), case("three epochs of four minibatches", 4, 2, 2, 3),
            case("the gradient is clipped", 3, 4, 6, 2, max_grad_norm=0.125),
            case("large steps, clipped now and then", 5, 2, 5, 2, max_grad_norm=0.5, learning_rate=0.5)]


def _scattered(draw, shape):
    """Weights away from 0, of both signs."""
    return draw.quarters(shape, 0.25, 1.25) * (2 * draw.bits(shape) - 1)
