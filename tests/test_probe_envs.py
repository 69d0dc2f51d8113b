"""The probes do what their pages say, alone and in company, in every mode of autoreset."""

import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import probe_envs

NAMES = sorted(probe_envs.PROBES)
GAMMA = 0.75


def copies(name, num_envs=4, **kwargs):
    return gym.make_vec(f"{name}-v0", num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs)


def good_actions(envs, obs):
    """The actions of an agent that knows the answers; 1, or the target, where a probe does not say."""
    actions = np.zeros(envs.action_space.shape, envs.action_space.dtype)
    for i, row in enumerate(obs):
        answer = next((a for a in envs.answers if np.allclose(a.obs, row)), None)
        if answer is not None and answer.mean is not None:
            actions[i] = answer.mean
        elif answer is not None and answer.probs is not None:
            actions[i] = int(np.argmax(answer.probs))
    return actions


@pytest.mark.parametrize("name", NAMES)
def test_known_values_are_the_discounted_rewards_of_a_right_agent(name):
    """Monte Carlo with the known actions; where a clock truncates, the known value at the last observation follows."""
    envs = copies(name, 32)
    answers = {a.obs: a.value_at(GAMMA) for a in envs.answers if a.value_at(GAMMA) is not None}
    obs, _ = envs.reset(seed=1)
    trail = []
    for _ in range(80):
        actions = good_actions(envs, obs)
        next_obs, rewards, terminated, truncated, infos = envs.step(actions)
        final = infos.get("final_obs", [None] * 32)
        last = [row if row is not None else next_obs[i] for i, row in enumerate(final)]
        trail.append((obs, rewards, terminated, truncated, last))
        obs = next_obs
    value = np.zeros(32)  # the far end is discounted away, unless a clock or an end sets it
    seen = {}
    for t, (obs, rewards, terminated, truncated, last) in reversed(list(enumerate(trail))):
        known = np.array([answers.get(tuple(float(x) for x in row), 0.0) for row in last])
        value = rewards + GAMMA * np.where(terminated, 0.0, np.where(truncated, known, value))
        if t < 20:
            for row, v in zip(obs, value):
                seen.setdefault(tuple(float(x) for x in row), []).append(v)
    for point, expected in answers.items():
        point = next(p for p in seen if np.allclose(p, point))
        assert np.allclose(seen[point], expected, atol=1e-4), f"{name}: V{point}"


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_states_an_answer_and_a_page(name):
    probe = probe_envs.PROBES[name]
    assert probe.answers and "If " in probe.__doc__
    for answer in probe.answers:
        assert len(answer.obs) == probe.size
        assert answer.value is not None or answer.probs is not None or answer.mean is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_single_probe_is_a_plain_environment(name):
    env = gym.make(f"{name}-v0")
    obs, _ = env.reset(seed=3)
    assert env.observation_space.contains(obs)
    env.action_space.seed(3)
    for _ in range(12):
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(obs) and isinstance(reward, float)
        if terminated or truncated:
            env.reset()


@pytest.mark.parametrize("name", NAMES)
def test_all_copies_together_do_what_single_ones_do(name):
    """The same class steps both; here Gymnasium's own loop over single ones is the witness for the autoreset."""
    fast = copies(name, 1)
    slow = gym.make_vec(f"{name}-v0", num_envs=1, vectorization_mode="sync",
                        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
    a, _ = fast.reset(seed=5)
    b, _ = slow.reset(seed=5)
    fast.action_space.seed(5)
    assert np.array_equal(a, b)
    for _ in range(20):
        actions = fast.action_space.sample()
        ours, theirs = fast.step(actions), slow.step(actions)
        for x, y in zip(ours[:4], theirs[:4]):
            assert np.array_equal(x, y)
        assert ("final_obs" in ours[4]) == ("final_obs" in theirs[4])
        if "final_obs" in ours[4]:
            assert np.array_equal(ours[4]["final_obs"][0], theirs[4]["final_obs"][0])


def test_the_metadata_tell_the_mode_that_is_used():
    assert copies("Probe1").metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    envs = copies("Probe3", autoreset_mode=AutoresetMode.NEXT_STEP)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


def test_in_next_step_mode_a_filler_row_follows_an_end():
    envs = copies("ProbeFiller", 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    steps = [envs.step(np.zeros(2, int)) for _ in range(4)]
    rewards, ends = zip(*[(step[1].tolist(), step[2].tolist()) for step in steps])
    assert rewards == ([1, 1], [0, 0], [1, 1], [0, 0])
    assert ends == ([True, True], [False, False], [True, True], [False, False])


def test_the_last_observation_is_kept_and_the_next_episode_begins():
    envs = copies("ProbeTruncation", 3)
    envs.reset(seed=0)
    for _ in range(3):
        _, _, _, truncated, infos = envs.step(np.zeros(3, int))
        assert not truncated.any() and not infos
    obs, _, terminated, truncated, infos = envs.step(np.zeros(3, int))
    assert truncated.all() and not terminated.any()
    assert (obs == 0).all() and all((row == 1).all() for row in infos["final_obs"])


def test_the_same_seed_gives_the_same_episodes_and_copies_differ():
    first, again, other = (copies("Probe5", 64).reset(seed=s)[0] for s in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert len(np.unique(first)) == 2


def test_returned_observations_are_not_overwritten_later():
    envs = copies("ProbeMixup", 4)
    first, _ = envs.reset(seed=1)
    before = first.copy()
    envs.step(np.zeros(4, int))
    assert np.array_equal(first, before)


def test_ten_thousand_steps_take_a_fraction_of_a_second():
    envs = copies("Probe2", 4)
    envs.reset(seed=0)
    started = time.process_time()
    for _ in range(2500):
        envs.step(np.zeros(4, int))
    assert time.process_time() - started < 1.0
