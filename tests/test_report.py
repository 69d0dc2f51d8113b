"""rl_checks/report.py and microscope.py: what a student sees."""

import re

import pytest
import torch

import rl_tests
from grading import solutions
from grading.mistakes import mistakes_of, version

PIECES = rl_tests.observers_of("02_lunar_lander")


def failed(piece, key):
    PPO = solutions.load("02_lunar_lander")["PPO"]
    wrong = version(PIECES[piece], PPO, mistakes_of("02_lunar_lander", piece)[key].wrong)
    with pytest.raises(rl_tests.CheckFailed) as caught:
        rl_tests.test_ppo(wrong, only=piece)
    return caught.value


def test_a_failing_report_says_what_where_by_how_much_and_the_likely_mistake(capsys):
    text = str(failed("compute_advantages", "sum_not_cut"))
    assert "FAIL  episodes end inside" in text
    assert re.search(r"advantages\[t=\d+, env=\d+\] = -?[\d.]+, expected -?[\d.]+ \(\d+ of 18 entries are wrong\)", text)
    assert "the largest wrong t" in text
    assert re.search(r"> +t=\d+ .*[+-]\d", text)  # the row where it starts, with its difference
    assert mistakes_of("02_lunar_lander", "compute_advantages")["sum_not_cut"].pointer in text
    assert "PASS" not in text
    assert "PASS" in capsys.readouterr().out  # the report that is shown has everything


def test_the_fault_is_pointed_at_where_it_starts():
    report = failed("compute_advantages", "terminal_state_bootstrapped").report
    row = next(row for row in report.rows if row.title == "by hand: 3 steps, 2 environments")
    # The only end of that case: the first step of environment 1.
    assert row.summary.startswith("advantages[t=0, env=1]")
    assert "(t=0, env=1)" in row.blocks[1].text


def test_hints_stand_once_and_go_up_to_the_strength_that_was_built():
    mistake = mistakes_of("02_lunar_lander", "compute_advantages")["lambda_missing"]
    text = str(failed("compute_advantages", "lambda_missing"))
    assert text.count(mistake.nudge) == text.count(mistake.pointer) == 1
    assert mistake.answer not in text


def test_the_html_survives_an_untrusted_notebook():
    html = failed("compute_advantages", "leaks_between_environments").report.as_html()
    assert not re.search(r"<style|<script|<svg|var\(|class=", html)
    assert len(html) < 25_000
    assert html.count("<details") == html.count("</details>")


def test_what_a_student_writes_is_escaped():
    class PPO:
        def __init__(self, *_):
            raise ValueError("<script>alert(1)</script>")
    with pytest.raises(rl_tests.CheckFailed) as caught:
        rl_tests.test_ppo(PPO)
    html = caught.value.report.as_html()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_every_badge_is_readable_by_contrast_and_says_its_status_in_words():
    from rl_checks.report import BADGES, QUIET

    def luminance(colour):
        channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    for label, paper, ink in BADGES.values():
        assert contrast(paper, ink) >= 4.5, label
        assert re.search("[A-Z]{3}", label)
    assert contrast(QUIET.removeprefix("color:"), "#eeeeee") >= 4.5


def test_one_error_in_every_case_is_said_once():
    class PPO:
        def __init__(self, *_):
            raise ValueError("no")
    with pytest.raises(rl_tests.CheckFailed) as caught:
        rl_tests.test_ppo(PPO, only="compute_loss")
    assert len(caught.value.report.rows) == 1
    assert "7 more" in caught.value.report.rows[0].title


def test_a_nan_is_shown_with_its_place():
    PPO = solutions.load("02_lunar_lander")["PPO"]

    class Wrong(PPO):
        def compute_advantages(self, states, rewards, next_states, terminations, truncations=None):
            advantages, targets = super().compute_advantages(states, rewards, next_states, terminations, truncations)
            return advantages / torch.where(torch.arange(len(advantages)) == 0, 0.0, 1.0), targets
    with pytest.raises(rl_tests.CheckFailed, match=r"advantages\[t=0, env=0\] = -?(inf|nan)"):
        rl_tests.test_ppo(Wrong, only="compute_advantages")


def test_the_traceback_in_a_notebook_is_short():
    error = failed("compute_loss", "not_clipped")
    lines = error._render_traceback_()
    assert len(lines) < 10
    assert "compute_loss" in lines[0]
