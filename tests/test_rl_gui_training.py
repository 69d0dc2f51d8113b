"""The view of a training run: its status line, its curves, its cost."""

import base64
import io
import time

import pytest
from painted import seconds_of
from PIL import Image

import rl_gui
from rl_pictures import curves, progress


def test_reporting_progress_costs_microseconds(watched):
    told = rl_gui.training(10**9)
    told(1, episode_return=1.0)
    assert min(seconds_of(lambda: told(2, episode_return=1.0, kl=0.01), 500) for _ in range(5)) <= 2e-5


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
    assert 6 <= len(watched) <= 12
    assert 1 <= len(drawn) <= 2


def test_the_last_state_says_it_all(watched):
    with rl_gui.training(1000, "Lander") as told:
        for step in range(0, 1001, 100):
            told(step, episode_return=step, kl=0.02, explained_variance=0.5)
    markup, text = watched[-1]
    assert text.startswith("Lander: 1,000 of 1,000 steps (100%) · return 500 · KL divergence 0.02")
    assert "done in" in text and "steps/s" in text
    assert "data:image/png;base64," in markup and "alt=" in markup


def test_metrics_keep_their_order_whichever_came_first(watched):
    told = rl_gui.training(10)
    told(1, loss=2.0, kl=0.5)
    told(2, episode_return=7.0)
    status = told.status()
    assert status.index("return 7") < status.index("KL divergence 0.5") < status.index("loss 2")


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
