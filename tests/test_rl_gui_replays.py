"""Replays: small MP4s of one episode, of everything that was drawn, of a policy that gets better."""

import gymnasium as gym
import numpy as np
import pytest
from painted import PaintedEnv

import rl_gui
from rl_pictures import video


def test_a_replay_is_a_small_mp4_that_plays_in_the_page():
    replay = rl_gui.replay(gym.make("LunarLander-v3", render_mode="rgb_array"), seed=1, max_steps=60, caption="random")
    assert replay.mp4[4:8] == b"ftyp"
    assert len(replay.mp4) <= 300_000
    html = replay._repr_html_()
    assert "<video controls" in html and 'src="data:video/mp4;base64,' in html
    assert f"return {replay.episode_return:.1f}" in html


def test_a_replay_follows_the_policy_to_the_end_of_the_episode():
    observed = []
    replay = rl_gui.replay(PaintedEnv(), lambda observation: observed.append(observation) or 1)
    assert replay.episode_return == 5.0
    assert len(observed) == 5
    assert replay.steps == 6  # the first picture is the one before the first action


def test_the_same_seed_gives_the_same_replay():
    env = gym.make("CartPole-v1", render_mode="rgb_array")
    first, again = (rl_gui.replay(env, seed=3) for _ in range(2))
    assert first.episode_return == again.episode_return and first.mp4 == again.mp4


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_a_policy_may_give_tensors(env_id):
    import torch

    env = gym.make(env_id, render_mode="rgb_array")
    action = torch.tensor(1) if env_id == "CartPole-v1" else torch.zeros(1, 1, requires_grad=True)
    assert rl_gui.replay(env, lambda observation: action, seed=0, max_steps=5).steps == 6


def test_a_vector_env_is_replayed_with_a_policy_of_batches():
    env = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync", render_mode="rgb_array")
    replay = rl_gui.replay(env, lambda observations: (observations[:, 2] > 0).astype(int), seed=0, max_steps=30)
    assert replay.episode_return >= 20


def test_a_video_that_is_too_large_is_compressed_again(monkeypatch):
    rng = np.random.default_rng(0)
    recorder = video.Recorder(30)
    for _ in range(20):
        recorder.add(rng.integers(0, 256, (240, 320, 3), np.uint8))
    assert len(recorder.finish().mp4) <= video.MAX_BYTES


def test_recorded_frames_are_all_kept_even_where_nobody_watches(unwatched, tmp_path):
    env = PaintedEnv()
    render = rl_gui.create_renderer(env, record=True)
    for step in range(12):
        render(f"step {step}")
    assert render.replay().steps == 12
    render()
    path = render.save(tmp_path / "videos" / "one.mp4")
    assert path.read_bytes()[4:8] == b"ftyp"


def test_asking_for_a_replay_of_nothing_says_what_to_do():
    with pytest.raises(ValueError, match="record=True"):
        rl_gui.create_renderer(PaintedEnv()).replay()
    with pytest.raises(ValueError, match="Nothing was recorded yet"):
        rl_gui.create_renderer(PaintedEnv(), record=True).replay()


def test_a_video_of_checkpoints_names_each_of_them():
    made = rl_gui.improvement(PaintedEnv(), {"untrained": lambda o: 0, "100k steps": lambda o: 1}, max_steps=3)
    assert made.steps == 8
    assert "untrained: return 3; 100k steps: return 3" in made._repr_html_()
