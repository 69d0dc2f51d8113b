"""rl_gui without a browser: what is shown, when, and that nothing is drawn where nobody watches."""

import time

import gymnasium as gym
import matplotlib.style
import numpy as np
import pytest
from painted import PaintedEnv, seconds_of

import rl_gui
from rl_pictures import figures, live, robot, screen

# Where nobody watches -------------------------------------------------------------------------------------------------


def test_unwatched_rendering_draws_nothing_and_takes_at_most_5_us(unwatched, capfd):
    env = PaintedEnv()
    render = rl_gui.create_renderer(env)
    best = min(seconds_of(lambda: render("some text"), 2000) for _ in range(5))
    assert best <= 5e-6
    assert env.drawn == 0
    assert capfd.readouterr() == ("", "")


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
    seconds = seconds_of(render, 20)
    assert 0.009 <= seconds <= 0.02
    assert env.drawn >= 10


def test_late_frames_are_dropped_and_the_loop_keeps_its_pace(watched):
    env = PaintedEnv(seconds=0.03)
    render = rl_gui.create_renderer(env, fps=100)
    seconds = seconds_of(render, 60)
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
