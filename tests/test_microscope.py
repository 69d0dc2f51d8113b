"""rl_checks/microscope.py: where in a rollout the numbers go wrong."""

import pytest
import torch

from grading.build import expect
from grading.cases import cases_of
from grading.mistakes import mistakes_of
from rl_checks import engine, microscope
from rl_checks.report import Map, Paragraph, Table, rows_of
from rl_tests import observers_of

PIECE = observers_of("03_ppo_details")["compute_advantages"]


def flags(text):
    """"..x/x.." -> [T, N] bool, environments separated by /"""
    return torch.tensor([[letter == "x" for letter in line] for line in text.split("/")]).T


@pytest.mark.parametrize("wrong, ends, words", [
    ("....x/.....", ".x.../.x..x", "next_value"),
    ("..xxx/.....", ".x.../.x..x", "next_value"),
    ("...../..xxx", ".x.../.x..x", "next_done"),
    ("xx.../xx...", ".x.../.x..x", "where an episode ends"),
    ("x.xx./x.xx.", ".x.../.x..x", "weight of the next advantage"),
    ("..x../..x..", ".x.../.x..x", "flags are one step off"),
    (".x.x./x..x.", ".x.../....x", ""),
])
def test_the_places_of_the_errors_tell_which_part_makes_them(wrong, ends, words):
    sentence = microscope.pattern(flags(wrong), flags(ends))
    assert words in sentence and bool(sentence) == bool(words)


@pytest.fixture(scope="module")
def cases():
    return {case.name: case for case in expect("03_ppo_details", PIECE, cases_of("03_ppo_details", "compute_advantages"))}


def blocks_of(key, case):
    wrong = mistakes_of("03_ppo_details", "compute_advantages")[key].wrong
    findings, _, _ = engine.check(PIECE, wrong, [case])
    return microscope.blocks(findings[0], Paragraph, Table, Map)


def test_it_points_at_the_largest_wrong_t(cases):
    case = cases["episodes end inside"]
    wrong = mistakes_of("03_ppo_details", "compute_advantages")["sum_not_cut"].wrong
    findings, _, _ = engine.check(PIECE, wrong, [case])
    largest = int(findings[0].differences[0].wrong.nonzero()[:, 0].max())
    text, table, sentence, error_map = microscope.blocks(findings[0], Paragraph, Table, Map)
    assert f"largest wrong t: (t={largest}, env=" in text.text
    assert table.rows[table.bold][0] == f"t={largest}" and "where an episode ends" in sentence.text
    assert error_map.focus[0] == largest


def test_the_line_shows_the_rollout_and_both_advantages(cases):
    table = blocks_of("dones_one_step_late", cases["episodes end inside"])[1]
    assert table.header[1:] == ("r", "V", "done", "delta", "expected", "yours", "difference", "episode")
    case = cases["episodes end inside"]
    env = int(table.header[0].split()[1])
    for row in table.rows:
        t = int(row[0][2:])
        assert float(row[1]) == case.inputs["rewards"][t, env] and float(row[2]) == case.inputs["values"][t, env]
        assert float(row[5]) == pytest.approx(float(case.expected["advantages"][t, env]), rel=1e-4)


def test_the_map_marks_ends_and_shades_only_what_is_wrong(cases):
    case = cases["episodes end inside"]
    error_map = blocks_of("sum_not_cut", case)[-1]
    ended = torch.cat([case.inputs["dones"][1:], case.inputs["next_done"][None]]).bool()
    for env, (marks, shades) in enumerate(zip(error_map.marks, error_map.shades)):
        assert [mark == "|" for mark in marks] == ended[:, env].tolist()
        assert all(0 <= shade <= 1 for shade in shades)
    assert any(shade == 0 for shades in error_map.shades for shade in shades)


def test_of_several_environments_the_worst_is_shown():
    wrong = flags("...x/...x/....")
    expected, got = torch.zeros(4, 3), torch.zeros(4, 3)
    got[3, 0], got[3, 1] = 1.0, -5.0
    assert microscope._worst(wrong, expected, got, backwards=True) == (3, 1)


def test_nan_and_a_long_rollout_do_not_break_the_report():
    T, N = 96, 8
    inputs = {"next_value": torch.ones(1, N), "next_done": torch.zeros(N), "rewards": torch.ones(T, N),
              "values": torch.ones(T, N), "dones": torch.zeros(T, N), "gamma": 0.5, "gae_lambda": 0.75}
    case = engine.Case("long", inputs, {"advantages": torch.ones(T, N), "inputs changed": ""})
    findings, names, _ = engine.check(PIECE, lambda *given: torch.full((T, N), torch.nan), [case])
    rows = rows_of(findings, names, {})
    assert len(rows[0].blocks) >= 2 and not any(isinstance(block, Map) for block in rows[0].blocks)
