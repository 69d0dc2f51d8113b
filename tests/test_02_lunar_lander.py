"""The given loop of 02_lunar_lander: what the notebook promises about it. Two rollouts of 4 environments, no training.

T steps, N envs, B = N*T rows, environment i owns rows i*T to (i+1)*T - 1.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from grading import solutions

T, N = 160, 4  # a random lander falls for 70 to 130 steps: every environment ends an episode within T


@pytest.fixture(scope="module")
def lander():
    return solutions.load("02_lunar_lander")


@pytest.fixture(scope="module")
def settings(lander):
    return lander["Settings"](seed=3, total_steps=2 * N * T, num_envs=N, num_steps=T, epochs=2, minibatch_size=80)


def collect(lander, settings):
    """(ppo, first rollout) with states and rewards as the environment gives them."""
    torch.manual_seed(settings.seed)
    ppo = lander["PPO"](8, 4, settings.gamma, settings.lmbda, settings.epsilon, T)
    normalise = lander["StateNormaliser"](8, active=False)
    scale = lander["RewardScaler"](N, settings.gamma, active=False)
    return ppo, next(lander["collect_rollouts"](ppo, lander["make_envs"](N), settings, normalise, scale))


@pytest.fixture(scope="module")
def rollout(lander, settings):
    return collect(lander, settings)[1]


def test_rows_of_an_environment_follow_each_other_in_time(rollout):
    states, next_states = rollout.states.reshape(N, T, 8), rollout.next_states.reshape(N, T, 8)
    ended = (rollout.terminations + rollout.truncations).bool().reshape(N, T)
    assert ended.any(dim=1).all()
    same = (next_states[:, :-1] == states[:, 1:]).all(dim=2)
    assert torch.equal(same, ~ended[:, :-1])


def test_next_state_at_an_end_is_where_the_episode_ended(rollout):
    height = rollout.next_states[rollout.terminations.bool()][:, 1]
    assert (height < 1.0).all()  # a new episode starts at 1.4
    assert (rollout.next_states[rollout.terminations.bool()] != 0).any(dim=1).all()


def test_every_end_reports_the_sum_of_its_rewards(rollout):
    ended = (rollout.terminations + rollout.truncations).bool().reshape(N, T)
    env, t = ended.nonzero()[0].tolist()  # the first end of environment 0; its episode began at row 0
    total = rollout.rewards.reshape(N, T)[env, : t + 1].sum().item()
    assert len(rollout.finished) == int(ended.sum())
    assert any(step == t and abs(reported - total) < 1e-2 for step, reported in rollout.finished)


def test_environments_start_differently(rollout):
    assert len(torch.unique(rollout.states.reshape(N, T, 8)[:, 0], dim=0)) == N


def test_stored_log_probs_are_those_of_the_policy_that_acted(lander, settings):
    ppo, rollout = collect(lander, settings)
    assert lander["measure"](ppo, rollout)["ratio_deviation"] == pytest.approx(0.0, abs=1e-6)


def test_an_update_sees_ratios_other_than_one(lander, settings):
    ppo, rollout = collect(lander, settings)
    metrics = lander["update"](ppo, torch.optim.Adam(ppo.parameters(), lr=1e-3), rollout, settings)
    assert metrics["ratio_deviation"] > 1e-3
    assert metrics["kl"] > 0


def test_the_same_seed_gives_the_same_run_and_another_seed_another(lander, settings):
    first, again = lander["train"](settings), lander["train"](settings)
    other = lander["train"](replace(settings, seed=4))
    assert first.returns == again.returns and first.metrics == again.metrics
    assert first.returns != other.returns
    assert first.steps == 2 * N * T and len(first.metrics["kl"]) == 2


def test_evaluation_is_repeatable_and_leaves_the_statistics_alone(lander, settings):
    run = lander["train"](settings)
    before = run.normalise.statistics.mean.copy()
    first, again = lander["evaluate"](run, episodes=3), lander["evaluate"](run, episodes=3)
    assert np.array_equal(first, again) and first.shape == (3,)
    assert np.array_equal(run.normalise.statistics.mean, before)


def test_running_statistics_are_those_of_all_samples_together(lander):
    batches = [np.random.default_rng(i).normal(i, 1 + i, (10 + i, 2)) for i in range(4)]
    statistics = lander["RunningStatistics"](2)
    for batch in batches:
        statistics.update(batch)
    everything = np.concatenate(batches)
    np.testing.assert_allclose(statistics.mean, everything.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(statistics.var, everything.var(axis=0), rtol=1e-3)


def test_the_reward_scaler_follows_the_discounted_return_and_forgets_it_at_an_end(lander):
    scale = lander["RewardScaler"](2, gamma=0.5)
    scale(np.array([1.0, 2.0]), np.array([False, True]))
    scale(np.array([4.0, 8.0]), np.array([False, False]))
    # env 0: 1, then 0.5 * 1 + 4 = 4.5.  env 1: 2, ended; then 8 and not 9.
    np.testing.assert_allclose(scale.returns, [4.5, 8.0])
    np.testing.assert_allclose(scale.statistics.var, np.var([1.0, 2.0, 4.5, 8.0]), rtol=1e-3)


def test_rewards_are_divided_and_keep_their_sign(lander):
    scale = lander["RewardScaler"](2, gamma=0.5)
    assert (np.sign(scale(np.array([3.0, -1.0]), np.zeros(2, bool))) == [1, -1]).all()


@pytest.mark.parametrize("kind", [torch.bool, torch.float32, torch.int64])
def test_terminations_may_be_bool_float_or_int(lander, kind):
    torch.manual_seed(42)
    ppo = lander["PPO"](5, 3, 0.8, 0.95, 0.2, 2)
    states, next_states, rewards = torch.randn(6, 5), torch.randn(6, 5), torch.randn(6)
    ends = torch.tensor([0, 1, 0, 0, 1, 0])
    expected = ppo.compute_advantages(states, rewards, next_states, ends.bool())
    found = ppo.compute_advantages(states, rewards, next_states, ends.to(kind))
    for a, b in zip(expected, found):
        assert torch.equal(a, b) and b.dtype == torch.float32 and b.shape == (6,) and not b.requires_grad


def test_the_actor_is_built_first(lander):
    torch.manual_seed(42)
    ppo = lander["PPO"](5, 3, 0.8, 0.95, 0.2, 1)
    torch.manual_seed(42)
    first = torch.nn.Linear(5, 128)
    assert torch.equal(ppo.actor[0].weight, first.weight)
    assert [tuple(ppo.critic[i].weight.shape) for i in (0, 2, 4)] == [(128, 5), (128, 128), (1, 128)]


def test_with_one_step_and_one_epoch_the_gradient_is_that_of_one_step_actor_critic(lander):
    torch.manual_seed(0)
    ppo = lander["PPO"](8, 4, 0.9, 0.7, 0.2, 1)
    states, next_states, rewards = torch.randn(6, 8), torch.randn(6, 8), torch.randn(6)
    actions = torch.randint(4, (6,))
    advantages, targets = ppo.compute_advantages(states, rewards, next_states, torch.zeros(6))
    deltas = (rewards + 0.9 * ppo.compute_values(next_states) - ppo.compute_values(states)).detach()
    log_probs = ppo.compute_log_probs(states, actions)
    actor_loss, _ = ppo.compute_loss(states, actions, advantages, targets, log_probs.detach())
    plain = -(deltas * log_probs).mean()
    for a, b in zip(torch.autograd.grad(actor_loss, ppo.actor.parameters()),
                    torch.autograd.grad(plain, ppo.actor.parameters())):
        torch.testing.assert_close(a, b)
