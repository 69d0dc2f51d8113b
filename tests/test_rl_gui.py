"""rl_gui without a browser: what is drawn, when, and that nothing can go wrong where nobody watches."""

import base64
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import matplotlib.style
import numpy as np
import pytest
from PIL import Image

import rl_gui
from rl_pictures import curves, figures, live, progress, robot, screen, video

ROOT = Path(__file__).resolve().parent.parent


class PaintedEnv:
    """The least that rl_gui asks of an environment; counts how often it is drawn, and takes `seconds` for it."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, seconds=0.0, render_mode="rgb_array"):
        self.metadata = {"render_fps": 100}
        self.render_mode, self.seconds, self.drawn = render_mode, seconds, 0

    def reset(self, seed=None):
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(1), 1.0, self.steps == 5, False, {}

    def render(self):
        self.drawn += 1
        time.sleep(self.seconds)
        return np.full((40, 61, 3), self.drawn % 256, np.uint8)


@pytest.fixture
def watched(monkeypatch):
    """As if somebody watched; -> the list of what was shown, (HTML, plain text) each."""
    shown = []
    monkeypatch.setenv("RL_GUI", "live")
    monkeypatch.setattr(screen.Screen, "show", lambda self, markup, text: shown.append((markup, text)))
    return shown


@pytest.fixture
def unwatched(monkeypatch):
    monkeypatch.setenv("RL_GUI", "headless")


# Where nobody watches -------------------------------------------------------------------------------------------------


def test_unwatched_rendering_draws_nothing_and_takes_at_most_5_us(unwatched, capfd):
    env = PaintedEnv()
    render = rl_gui.create_renderer(env)
    best = min(_seconds_of(lambda: render("some text"), 2000) for _ in range(5))
    assert best <= 5e-6
    assert env.drawn == 0
    assert capfd.readouterr() == ("", "")


def _seconds_of(call, times):
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times


@pytest.mark.parametrize(
    ("variables", "kernel", "watching"),
    [
        ({"JPY_SESSION_NAME": "a.ipynb"}, True, True),
        ({}, True, False),
        ({"JPY_SESSION_NAME": "a.ipynb"}, False, False),
        ({"JPY_SESSION_NAME": "a.ipynb", "NBGRADER_EXECUTION": "autograde"}, True, False),
        ({"RL_GUI": "headless", "JPY_SESSION_NAME": "a.ipynb"}, True, False),
        ({"RL_GUI": "live"}, False, True),
    ],
)
def test_watched_means_a_kernel_with_a_session_that_does_not_grade(monkeypatch, variables, kernel, watching):
    for name in ("RL_GUI", "JPY_SESSION_NAME", "NBGRADER_EXECUTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shell = type("Shell", (), {"user_ns": {}, "kernel": object()})()
    monkeypatch.setattr(screen, "ipython_kernel", lambda: shell if kernel else None)
    assert screen.is_live() is watching


# Which environments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("render_mode", [None, "human", "rgb_array_list", "ansi"])
def test_an_environment_that_cannot_be_drawn_is_told_the_way_out(render_mode, unwatched):
    with pytest.raises(ValueError, match='render_mode="rgb_array"') as error:
        rl_gui.create_renderer(PaintedEnv(render_mode=render_mode))
    assert f"render_mode={render_mode!r}" in str(error.value)


def test_the_way_out_names_the_environment():
    with pytest.raises(ValueError, match=r'gym.make\("CartPole-v1", render_mode="rgb_array"\)'):
        rl_gui.create_renderer(gym.make("CartPole-v1"))


def test_something_that_is_no_environment_is_named():
    with pytest.raises(ValueError, match="this is a str"):
        rl_gui.create_renderer("CartPole-v1")


@pytest.mark.parametrize("fps", [0, -1, float("inf"), float("nan")])
def test_a_senseless_pace_is_refused(fps):
    with pytest.raises(ValueError, match="fps="):
        rl_gui.create_renderer(PaintedEnv(), fps=fps)


def _make(kind):
    if kind == "plain":
        return gym.make("CartPole-v1", render_mode="rgb_array")
    if kind == "wrapped":
        return gym.wrappers.TransformReward(gym.make("CartPole-v1", render_mode="rgb_array"), lambda r: r)
    return gym.make_vec("CartPole-v1", 3, vectorization_mode=kind, render_mode="rgb_array")


@pytest.mark.parametrize("kind", ["plain", "wrapped", "sync", "async", "vector_entry_point"])
def test_plain_wrapped_and_vector_environments_are_shown(kind, watched):
    env = _make(kind)
    try:
        env.reset(seed=0)
        rl_gui.create_renderer(env)("a caption")
        assert "a caption" in watched[0][0] and "data:image/jpeg;base64," in watched[0][0]
    finally:
        env.close()


def test_only_the_first_member_of_a_vector_env_is_drawn(watched):
    env = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync", render_mode="rgb_array")
    env.reset(seed=0)
    others = []
    for member in env.envs[1:]:
        member.unwrapped.render = lambda: others.append("drawn")
    rl_gui.create_renderer(env)()
    assert others == []


# Live -----------------------------------------------------------------------------------------------------------------


def test_a_fast_loop_is_slowed_down_to_the_pace(watched):
    env = PaintedEnv()
    render = rl_gui.create_renderer(env, fps=100)
    seconds = _seconds_of(render, 20)
    assert 0.009 <= seconds <= 0.02
    assert env.drawn >= 15


def test_late_frames_are_dropped_and_the_loop_keeps_its_pace(watched):
    env = PaintedEnv(seconds=0.03)
    render = rl_gui.create_renderer(env, fps=100)
    seconds = _seconds_of(render, 60)
    assert seconds <= 0.02  # three times faster than drawing every frame would be
    assert 10 <= env.drawn <= 40


def test_even_a_hopelessly_slow_environment_is_shown_now_and_then(watched):
    env = PaintedEnv(seconds=0.1)
    render = rl_gui.create_renderer(env, fps=1000)
    began = time.perf_counter()
    while time.perf_counter() - began < 1.0:
        render()
    assert len(watched) >= 3


def test_every_frame_replaces_the_one_before(monkeypatch):
    import IPython.display

    calls = []
    monkeypatch.setenv("RL_GUI", "live")
    monkeypatch.setattr(IPython.display, "display", lambda *_, display_id, **__: calls.append(("new", display_id)))
    monkeypatch.setattr(IPython.display, "update_display", lambda *_, display_id, **__: calls.append(("same", display_id)))
    render = rl_gui.create_renderer(PaintedEnv(), fps=20)
    for _ in range(4):
        render()
    assert [kind for kind, _ in calls] == ["new", "same", "same", "same"]
    assert len({name for _, name in calls}) == 1


def test_a_caption_cannot_smuggle_html(watched):
    rl_gui.create_renderer(PaintedEnv())('<script>"alert"</script>')
    assert "<script>" not in watched[0][0]
    assert watched[0][1] == '<script>"alert"</script>'


def test_noisy_pictures_stay_below_the_data_rate_of_the_notebook_server():
    rng = np.random.default_rng(0)
    encoder = live.JpegEncoder(fps=50)
    frames = [rng.integers(0, 256, (400, 600, 3), np.uint8) for _ in range(4)]
    jpegs = [encoder(frames[i % 4], now=i / 50) for i in range(250)]
    sent = sum(len(jpeg) * 4 / 3 for jpeg in jpegs if jpeg)
    assert sent <= 1_000_000 * 5  # what the server lets through in these five seconds


# Replays --------------------------------------------------------------------------------------------------------------


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


# Robots ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5"])
def test_a_sketch_shows_the_robot_and_needs_no_opengl(env_id, watched, monkeypatch):
    monkeypatch.setattr(robot, "GlPainter", None)
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    frame = robot.robot_source(robot.robot_of(env), "sketch", (400, 300))()
    assert frame.shape == (300, 400, 3) and frame.dtype == np.uint8
    orange = (frame[..., 0] > 180) & (frame[..., 2] < 110)
    assert 0.005 < orange.mean() < 0.3
    rows, columns = np.nonzero(orange)
    assert 100 < columns.mean() < 300 and 50 < rows.mean() < 250


def test_the_sketch_moves_with_the_robot_over_a_floor_that_stays():
    env = gym.make("Ant-v5", render_mode="rgb_array")
    env.reset(seed=0)
    found = robot.robot_of(env)
    paint = robot.robot_source(found, "sketch", (200, 150))
    before = paint()
    env.unwrapped.data.qpos[0] += 0.3
    after = paint()
    assert not np.array_equal(before[100:], after[100:])
    centre = [np.nonzero((f[..., 0] > 180) & (f[..., 2] < 110))[1].mean() for f in (before, after)]
    assert abs(centre[0] - centre[1]) < 2


def test_drawing_a_robot_never_calls_env_render(watched):
    env = gym.make("Ant-v5", render_mode="rgb_array")
    env.reset(seed=0)
    env.unwrapped.render = None
    rl_gui.create_renderer(env, mode="sketch")("Ant")
    assert len(watched) == 1


def test_a_drawing_process_that_dies_is_followed_by_the_sketch():
    if robot.working_backend() is None:
        pytest.skip("no OpenGL here")
    env = gym.make("Ant-v5", render_mode="rgb_array")
    env.reset(seed=0)
    paint = robot.robot_source(robot.robot_of(env), "auto", (200, 150))
    assert type(paint._paint).__name__ == "GlPainter"
    paint()
    paint._paint._process.kill()
    assert paint().shape == (150, 200, 3)
    assert type(paint._paint).__name__ == "Sketcher"


def test_modes_that_cannot_be_are_refused(watched):
    with pytest.raises(ValueError, match="must be one of auto, gl, sketch, env"):
        rl_gui.create_renderer(PaintedEnv(), mode="opengl")
    with pytest.raises(ValueError, match="MuJoCo robots only"):
        rl_gui.create_renderer(PaintedEnv(), mode="sketch")


KERNEL = """
import sys
import gymnasium as gym
import rl_gui

def watch(env):
    env.reset(seed=0)
    render = rl_gui.create_renderer(env, record=True, figsize=(2, 1.5))
    for _ in range(2):
        env.step(env.action_space.sample())
        render()
    assert render.replay().steps == 2
    return type(render._frame._paint).__name__

if __name__ == "__main__":
    try:
        import mujoco
    except Exception:  # with MUJOCO_GL=osmesa and no such library not even the import works
        print("no-mujoco")
        rl_gui.doctor()
        sys.exit()
    before = watch(gym.make("Ant-v5", render_mode="rgb_array"))
    workers = gym.make_vec("Ant-v5", 2, vectorization_mode="async", render_mode="rgb_array")
    among = watch(workers)
    after = watch(gym.make("Ant-v5", render_mode="rgb_array"))
    workers.close()
    print(before, among, after)
"""


@pytest.mark.parametrize("library", ["there", "missing"])
@pytest.mark.parametrize("wish", [None, "egl", "osmesa", "glfw"])
def test_no_setting_of_opengl_kills_or_hangs_the_kernel(wish, library, tmp_path):
    """Draws before, with and after worker processes, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "RL_GUI")}
    if wish:
        environment["MUJOCO_GL"] = wish
    path = [str(ROOT)]
    if library == "missing":  # what MuJoCo meets where libEGL and libOSMesa are not installed
        (tmp_path / "OpenGL").mkdir()
        (tmp_path / "OpenGL" / "__init__.py").write_text('raise ImportError("Unable to load OpenGL library")')
        path.insert(0, str(tmp_path))
    environment["PYTHONPATH"] = os.pathsep.join(path)
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    if done.stdout.startswith("no-mujoco"):
        assert wish == "osmesa"
        assert "MUJOCO_GL=osmesa" in done.stdout and "unset MUJOCO_GL" in done.stdout
        return
    painters = done.stdout.split()
    assert len(set(painters)) == 1
    if library == "missing" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        assert painters[0] == "Sketcher"


# A training run -------------------------------------------------------------------------------------------------------


def test_reporting_progress_costs_microseconds(watched):
    told = rl_gui.training(10**9)
    told(1, episode_return=1.0)
    assert min(_seconds_of(lambda: told(2, episode_return=1.0, kl=0.01), 500) for _ in range(5)) <= 2e-5


def test_status_and_curves_keep_their_rates(watched, monkeypatch):
    drawn = []
    monkeypatch.setattr(progress.Curves, "__call__", lambda *_: drawn.append(time.perf_counter()) or "")
    told = rl_gui.training(10**9)
    began = time.perf_counter()
    step = 0
    while time.perf_counter() - began < 2.3:
        step += 1
        told(step, kl=0.01)
        time.sleep(0.001)
    assert 8 <= len(watched) <= 12
    assert len(drawn) == 2


def test_the_last_state_says_it_all(watched):
    with rl_gui.training(1000, "Lander") as told:
        for step in range(0, 1001, 100):
            told(step, episode_return=step, kl=0.02, explained_variance=0.5)
    markup, text = watched[-1]
    assert text.startswith("Lander: 1,000 of 1,000 steps (100%) · return 500 · KL divergence 0.02")
    assert "done in" in text and "steps/s" in text
    assert "data:image/png;base64," in markup and "alt=" in markup


def test_an_interrupted_run_says_that_it_stopped(watched):
    with pytest.raises(KeyboardInterrupt), rl_gui.training(1000) as told:
        told(10, kl=0.1)
        raise KeyboardInterrupt
    assert "stopped after" in watched[-1][1]


def test_unwatched_training_prints_a_few_plain_lines(unwatched, capfd):
    with rl_gui.training(1000) as told:
        for step in range(1001):
            told(step, episode_return=1.0)
    out, err = capfd.readouterr()
    assert err == ""
    assert 1 <= len(out.splitlines()) <= 3
    assert out.splitlines()[-1].startswith("1,000 of 1,000 steps (100%) · return 1")


def test_numbers_that_are_not_finite_are_left_out(unwatched, capfd):
    told = rl_gui.training(10)
    told(1, explained_variance=float("nan"), kl=0.5)
    assert told.history == {"kl": ([1], [0.5])}


def test_a_senseless_total_is_refused():
    with pytest.raises(ValueError, match="total_steps=0"):
        rl_gui.training(0)


def test_the_moving_average_is_over_the_last_values():
    assert curves.moving_average([4.0, 2.0, 6.0, 1.0], width=2) == [4.0, 3.0, 4.0, 3.5]


# Doctor and style -----------------------------------------------------------------------------------------------------


def test_doctor_prints_one_line_with_a_fix_per_problem(monkeypatch, capsys):
    from rl_pictures import doctor

    monkeypatch.setattr(doctor, "MODULES", {"box2d_that_is_not_there": ("LunarLander", "box2d")})
    monkeypatch.setattr(robot, "working_backend", lambda: None)
    assert rl_gui.doctor() is False
    problems = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PROBLEM")]
    assert len(problems) == 2
    assert "pip install box2d" in problems[0]
    assert "sketches" in problems[1] and "restart the kernel" in problems[1]


def test_the_colours_of_figures_stand_out_from_white_and_are_not_alone():
    colours = figures.LINES["color"]
    assert all(_contrast(colour) >= 3.0 for colour in colours)
    assert len({str(dashes) for dashes in figures.LINES["linestyle"]}) == len(colours)


def _contrast(colour):
    """The contrast ratio against white of WCAG 2.2, 1.4.3."""
    rgb = matplotlib.colors.to_rgb(colour)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_text_of_figures_has_a_contrast_of_at_least_4_5():
    for name in ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"):
        assert _contrast(figures.STYLE[name]) >= 4.5, name


def test_matplotlib_knows_every_setting_of_the_style():
    with matplotlib.style.context(figures.STYLE):
        assert matplotlib.rcParams["figure.facecolor"] == "white"


def test_a_figure_to_explore_is_drawn_once_where_there_are_no_sliders(unwatched):
    drawn = []
    rl_gui.explore(lambda **numbers: drawn.append(numbers), step=(0.0, 4.0, 2.0), theta=(-6.0, 6.0, 0.0))
    assert drawn == [{"step": 2.0, "theta": 0.0}]


def test_learning_curves_are_a_small_picture_with_one_panel_per_metric():
    steps = list(range(2000))
    history = {name: (steps, [float(i % 7) for i in steps]) for name in [*curves.TITLES, "loss"]}
    draw = curves.Curves(2000)
    markup = draw(history)
    assert len(markup) < 60_000
    assert "loss: last value" in markup and "return: last value" in markup
    image = Image.open(io.BytesIO(base64.b64decode(markup.split("base64,")[1].split('"')[0])))
    assert image.size == (3 * curves.PANEL[0], 2 * curves.PANEL[1])
    assert min(image.convert("RGB").getpixel((2, 2))) >= 250
    assert draw(history) == markup


@pytest.mark.parametrize(("steps", "text"), [(0, "0"), (500, "500"), (150_000, "150k"), (2_500_000, "2.5M")])
def test_steps_on_an_axis_are_short(steps, text):
    assert curves.short(steps) == text
