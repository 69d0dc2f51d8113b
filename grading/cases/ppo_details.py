"""Questions about 03_ppo_details, in the order of the notebook. T steps, N envs, B = T * N rows, M of a minibatch."""

from grading.cases.ppo_losses import (
    calc_approx_kl,
    calc_clipfrac,
    calc_entropy,
    calc_entropy_loss,
    calc_explained_variance,
    calc_old_approx_kl,
    calc_policy_loss,
    calc_value_function_loss,
)
from grading.cases.ppo_phases import learning_phase, rollout_phase
from grading.cases.ppo_rollouts import (
    compute_advantages,
    compute_advantages_without_loop,
    make_minibatches,
    minibatch_indexes,
)
from rl_checks.engine import Case

__all__ = ["calc_approx_kl", "calc_clipfrac", "calc_entropy", "calc_entropy_loss", "calc_explained_variance",
           "calc_old_approx_kl", "calc_policy_loss", "calc_value_function_loss", "compute_advantages",
           "compute_advantages_without_loop", "learning_phase", "make_minibatches", "minibatch_indexes", "rollout_phase"]


def agent_init(draw):
    def case(name, obs_size, num_actions):
        return Case(name, {"obs_size": obs_size, "num_actions": num_actions, "obs": draw.quarters((3, obs_size))})

    return [case("CartPole: 4 numbers, 2 actions", 4, 2), case("3 numbers, 5 actions", 3, 5),
            case("a probe: 1 number, 2 actions", 1, 2), case("more numbers than units", 70, 3)]


def ppo_scheduler(draw):
    def case(name, initial_lr, end_lr, num_updates, group_lrs):
        return Case(name, {"initial_lr": initial_lr, "end_lr": end_lr, "num_updates": num_updates,
                           "group_lrs": group_lrs, "calls_after_the_end": 3})

    # Learning rates of order 1, so that a tolerance of 1e-5 means something.
    start, end, n = draw.choice((0.875, 1.0, 1.25)), draw.choice((0.125, 0.25)), draw.integers((1,), 5, 9).item()
    return [
        case("by hand: from 1 to 0 in 4", 1.0, 0.0, 4, [1.0]),
        case("it ends above 0", start, end, n, [start]),
        case("initial_lr is not the optimizer's", start, end, n + 2, [0.5]),
        case("several parameter groups", start + 1, end, n + 1, [start + 1, 0.5, start + 1]),
        case("it rises", 0.25, 1.5, n + 3, [0.25]),
    ]


def make_optimizer(draw):
    start, end = draw.choice((0.5, 0.75)), draw.choice((0.125, 0.25))
    n = draw.integers((1,), 3, 30).item()
    return [Case("an agent with two networks", {"num_updates": n, "initial_lr": start, "end_lr": end})]


def continuous_agent_init(draw):
    def case(name, obs_size, num_actions):
        return Case(name, {"obs_size": obs_size, "num_actions": num_actions, "obs": draw.quarters((3, obs_size)),
                           "continuous": True})

    return [case("MountainCarContinuous: 2 numbers, 1 action", 2, 1), case("3 numbers, 4 actions", 3, 4)]
