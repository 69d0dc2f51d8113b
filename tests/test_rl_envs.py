"""The environments of rl_envs are Gymnasium's, only faster: same numbers, same ends, same last observations."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rl_envs

ROBOTS = ("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "Walker2d-v5")
LAST = {"HalfCheetah-v5": 1005}  # never terminates: the time limit must come within the test


def gymnasium_envs(env_id, num_envs):
    return SyncVectorEnv([lambda: gym.make(env_id)] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)


def compare(env_id, num_envs, steps, seed=7, threads=2):
    """Steps ours beside Gymnasium's -> number of episode ends. Asserts that they are the same."""
    theirs = gymnasium_envs(env_id, num_envs)
    ours = rl_envs.make_envs(env_id, num_envs, seed=seed, threads=threads)
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    first, _ = ours.reset()
    np.testing.assert_array_equal(first, theirs.reset(seed=seed)[0])
    ends = 0
    ours.action_space.seed(seed)
    for _ in range(steps):
        actions = ours.action_space.sample()
        obs, rewards, terminated, truncated, infos = ours.step(actions)
        obs_2, rewards_2, terminated_2, truncated_2, infos_2 = theirs.step(actions)
        assert obs.dtype == obs_2.dtype and rewards.dtype == rewards_2.dtype
        np.testing.assert_array_equal(obs, obs_2)
        assert np.abs(rewards - rewards_2).max() <= 1e-12
        np.testing.assert_array_equal(terminated, terminated_2)
        np.testing.assert_array_equal(truncated, truncated_2)
        done = terminated | truncated
        assert ("final_obs" in infos) == done.any()
        for i in np.flatnonzero(done):
            np.testing.assert_array_equal(infos["final_obs"][i], infos_2["final_obs"][i])
            np.testing.assert_array_equal(infos["_final_obs"], infos_2["_final_obs"])
        ends += done.sum()
    ours.close()
    theirs.close()
    return ends


@pytest.mark.parametrize("env_id", ROBOTS)
def test_robots_are_gymnasium_s_bit_for_bit(env_id):
    assert compare(env_id, num_envs=3, steps=LAST.get(env_id, 200)) >= 3


def test_ant_is_cut_by_the_clock_where_gymnasium_cuts_it():
    theirs, ours = gymnasium_envs("Ant-v5", 2), rl_envs.make_envs("Ant-v5", 2, seed=3)
    theirs.reset(seed=3)
    ours.reset()
    still = np.zeros((2, 8), dtype=np.float32)  # an ant that does nothing stands for 1000 steps
    for _ in range(1001):
        mine, yours = ours.step(still), theirs.step(still)
        for a, b in zip(mine[:4], yours[:4]):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        if mine[3].any():
            np.testing.assert_array_equal(mine[4]["episode"]["l"], [1000, 1000])


def test_cartpole_is_gymnasium_s_bit_for_bit():
    assert compare("CartPole-v1", num_envs=5, steps=1500) > 100


def test_cartpole_is_cut_after_500_steps():
    envs = rl_envs.make_envs("CartPole-v1", 1)
    obs, _ = envs.reset()
    for t in range(500):
        push = obs[:, 2] + 0.5 * obs[:, 3] + 0.1 * obs[:, 0] + 0.3 * obs[:, 1] > 0  # balances
        obs, _, terminated, truncated, infos = envs.step(push.astype(np.int64))
        assert not terminated[0]
        assert truncated[0] == (t == 499)
    assert infos["episode"]["l"][0] == infos["episode"]["r"][0] == 500


@pytest.mark.parametrize("env_id", ["LunarLander-v3", "MountainCarContinuous-v0", "Pendulum-v1"])
def test_other_environments_are_gymnasium_s(env_id):
    compare(env_id, num_envs=2, steps=250)


@pytest.mark.parametrize("env_id", ["Ant-v5", "CartPole-v1", "LunarLander-v3"])
def test_the_number_of_threads_and_a_second_run_change_nothing(env_id):
    def run(threads):
        envs = rl_envs.make_envs(env_id, 5, seed=11, threads=threads)
        obs = [envs.reset()[0]]
        obs += [envs.step(envs.action_space.sample())[0] for _ in range(60)]
        envs.close()
        return np.stack(obs)
    np.testing.assert_array_equal(run(1), run(3))


@pytest.mark.parametrize("env_id", ["Ant-v5", "CartPole-v1", "LunarLander-v3"])
def test_environments_of_one_call_have_different_seeds(env_id):
    obs, _ = rl_envs.make_envs(env_id, 3, seed=5).reset()
    assert len(np.unique(obs, axis=0)) == 3


@pytest.mark.parametrize("env_id", ["Ant-v5", "CartPole-v1", "LunarLander-v3"])
def test_a_second_reset_starts_new_episodes_and_a_seed_repeats_them(env_id):
    envs = rl_envs.make_envs(env_id, 2, seed=5)
    first, second = envs.reset()[0], envs.reset()[0]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(envs.reset(seed=5)[0], first)
    np.testing.assert_array_equal(envs.reset(seed=[5, 6])[0], first)


@pytest.mark.parametrize("env_id", ["Hopper-v5", "CartPole-v1", "LunarLander-v3"])
def test_episode_statistics_are_sums_over_the_episode(env_id):
    envs = rl_envs.make_envs(env_id, 3, seed=2)
    envs.reset()
    returns, lengths, seen = np.zeros(3), np.zeros(3), 0
    for _ in range(300):
        _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        returns, lengths, done = returns + rewards, lengths + 1, terminated | truncated
        assert ("episode" in infos) == done.any()
        if done.any():
            np.testing.assert_array_equal(infos["_episode"], done)
            np.testing.assert_allclose(infos["episode"]["r"][done], returns[done])
            np.testing.assert_array_equal(infos["episode"]["l"][done], lengths[done])
            returns[done] = lengths[done] = 0
            seen += done.sum()
    assert seen > 3


@pytest.mark.parametrize("env_id", ["Ant-v5", "CartPole-v1"])
def test_what_a_step_returned_is_not_changed_by_the_next(env_id):
    envs = rl_envs.make_envs(env_id, 2)
    obs, _ = envs.reset()
    kept = obs.copy()
    out = envs.step(envs.action_space.sample())
    copies = [x.copy() for x in out[:4]]
    for _ in range(50):
        envs.step(envs.action_space.sample())
    np.testing.assert_array_equal(obs, kept)
    for x, copy in zip(out, copies):
        np.testing.assert_array_equal(x, copy)


def test_torch_actions_are_taken():
    envs = rl_envs.make_envs("HalfCheetah-v5", 2)
    envs.reset()
    assert envs.step(torch.zeros(2, 6, requires_grad=True))[0].shape == (2, 17)


# Errors ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("env_id, words", [("Ant-v55", "did you mean Ant-v"), ("LunarLandr-v3", "did you mean LunarLander"),
                                           ("", "not a registered"), (None, "not a registered")])
def test_an_unknown_id_is_told_with_what_comes_close(env_id, words):
    with pytest.raises(ValueError, match=words):
        rl_envs.make_envs(env_id, 2)


@pytest.mark.parametrize("num_envs", [0, -1, 2.0, True, "4"])
def test_a_number_of_environments_must_be_a_positive_whole_number(num_envs):
    with pytest.raises(ValueError, match=r"num_envs=.*1 environment or more"):
        rl_envs.make_envs("CartPole-v1", num_envs)


@pytest.mark.parametrize("env_id, actions, words", [
    ("Ant-v5", np.zeros((2, 7)), r"actions have shape \(2, 7\), expected \(2, 8\)"),
    ("Ant-v5", np.zeros(8), r"shape \(8,\), expected \(2, 8\)"),
    ("Ant-v5", np.array([[0.0] * 8, [np.nan] * 8]), r"actions\[env=1\] .* not finite"),
    ("CartPole-v1", np.array([0, 2]), r"actions\[env=1\] = 2, expected 0 to 1"),
    ("CartPole-v1", np.array([0.0, 1.0]), "whole numbers"),
    ("LunarLander-v3", np.array([[0], [1]]), r"expected \(2,\)"),
    ("LunarLander-v3", np.array([0, -1]), r"actions\[env=1\] = -1"),
    ("MountainCarContinuous-v0", np.full((2, 1), np.inf), "not finite"),
])
def test_wrong_actions_are_named(env_id, actions, words):
    envs = rl_envs.make_envs(env_id, 2)
    envs.reset()
    with pytest.raises(ValueError, match=words):
        envs.step(actions)


@pytest.mark.parametrize("env_id", ["Ant-v5", "CartPole-v1", "LunarLander-v3"])
def test_a_step_before_the_first_reset_is_refused(env_id):
    envs = rl_envs.make_envs(env_id, 1)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(envs.action_space.sample())


def test_closed_robots_say_so_and_closing_twice_is_fine():
    envs = rl_envs.make_envs("Ant-v5", 2)
    envs.reset()
    envs.close()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.step(np.zeros((2, 8)))


# Normalisation --------------------------------------------------------------------------------------------------------

class Scripted(gym.vector.VectorEnv):
    """Two environments with one number as observation: what the script says. The second one ends at t = 1."""

    def __init__(self, script, rewards):
        self.num_envs, self.metadata = 2, {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gym.spaces.Box(-100, 100, (1,), np.float64)
        self.observation_space = gym.spaces.Box(-100, 100, (2, 1), np.float64)
        self.single_action_space, self.action_space = gym.spaces.Discrete(2), gym.spaces.MultiDiscrete([2, 2])
        self.script, self.rewards, self.t = script, rewards, -1

    def reset(self, *, seed=None, options=None):
        self.t = -1
        return np.array(self.script[0], dtype=np.float64)[:, None], {}

    def step(self, actions):
        self.t += 1
        ended = np.array([False, self.t == 1])
        infos = {"final_obs": np.array([None, np.array([8.0])], dtype=object), "_final_obs": ended} if ended.any() else {}
        obs = np.array(self.script[self.t + 1], dtype=np.float64)[:, None]
        return obs, np.array(self.rewards[self.t]), ended, np.zeros(2, dtype=bool), infos


def test_moments_are_those_of_everything_seen():
    envs = rl_envs.Normalized(Scripted([[0, 2], [4, 6], [8, 4]], [[1.0, 2.0], [3.0, 4.0]]), gamma=0.5)
    envs.reset()
    envs.step(None)
    _, scaled, _, _, infos = envs.step(None)
    # Seen: 0, 2, 4, 6, 8, 4. Mean 4; variance (16 + 4 + 0 + 4 + 16 + 0) / 6 = 20 / 3.
    assert envs.observations.mean == pytest.approx(4)
    assert envs.observations.var == pytest.approx(20 / 3)
    # The last observation of the ended episode is 8: (8 - 4) / sqrt(20 / 3).
    assert infos["final_obs"][1] == pytest.approx(4 / (20 / 3) ** 0.5)
    # Discounted returns: 1, 2, then 0.5 * 1 + 3 = 3.5 and 0.5 * 2 + 4 = 5. Mean 2.875, variance 2.296875.
    assert envs.returns.var == pytest.approx(2.296875)
    assert scaled == pytest.approx([3 / 2.296875**0.5, 4 / 2.296875**0.5])


def test_the_running_return_starts_anew_after_an_end():
    envs = rl_envs.Normalized(Scripted([[0, 0]] * 4, [[1.0, 1.0]] * 3), gamma=0.5)
    envs.reset()
    for _ in range(3):
        envs.step(None)
    np.testing.assert_allclose(envs._running, [1.75, 1.0])


def test_frozen_statistics_stay_and_can_be_saved(tmp_path):
    envs = rl_envs.Normalized(rl_envs.make_envs("Ant-v5", 2, seed=1))
    obs, _ = envs.reset()
    assert obs.dtype == np.float32 and np.abs(obs).max() <= 10
    assert envs.observation_space.contains(obs)
    for _ in range(30):
        envs.step(envs.action_space.sample())
    envs.save(tmp_path / "ant.safetensors")
    other = rl_envs.Normalized(rl_envs.make_envs("Ant-v5", 2, seed=9)).load(tmp_path / "ant.safetensors").freeze()
    before = other.observations.mean.copy()
    other.reset()
    other.step(other.action_space.sample())
    np.testing.assert_array_equal(other.observations.mean, before)
    np.testing.assert_array_equal(before, envs.observations.mean)
    assert other.returns.count == envs.returns.count


def test_statistics_of_another_robot_are_refused(tmp_path):
    rl_envs.Normalized(rl_envs.make_envs("Ant-v5", 1)).save(tmp_path / "ant.safetensors")
    with pytest.raises(ValueError, match=r"statistics of shape \(105,\)"):
        rl_envs.Normalized(rl_envs.make_envs("HalfCheetah-v5", 1)).load(tmp_path / "ant.safetensors")


def test_filler_rows_of_next_step_autoreset_are_refused():
    with pytest.raises(ValueError, match="filler rows"):
        rl_envs.Normalized(SyncVectorEnv([lambda: gym.make("CartPole-v1")], autoreset_mode=AutoresetMode.NEXT_STEP))
