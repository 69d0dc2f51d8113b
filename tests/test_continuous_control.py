"""04_continuous_control: independent witnesses for the expected numbers, all mistakes, and other right ways to write it."""

import math

import pytest
import torch
from robot_alternatives import ALTERNATIVES, gae_double_sum

import rl_tests
from grading import solutions
from grading.build import expect, stub
from grading.cases import VISIBLE_SEED, cases_of
from grading.mistakes import mistakes_of, version
from rl_checks import engine

NAME = "04_continuous_control"
PIECES = rl_tests.observers_of(NAME)
FACES = {"GaussianPolicy": rl_tests.test_gaussian_policy, "RunningNorm": rl_tests.test_running_norm,
         "RewardScaler": rl_tests.test_reward_scaler, "bootstrap_truncations": rl_tests.test_bootstrap_truncations,
         "gae": rl_tests.test_gae, "ppo_update": rl_tests.test_ppo_update, "collect": rl_tests.test_collect}


@pytest.fixture(scope="module")
def robots():
    return solutions.load(NAME)


def questions(piece, seed=VISIBLE_SEED, with_mistakes=False):
    return expect(NAME, PIECES[piece], cases_of(NAME, piece, seed), with_mistakes)


def by_hand(piece):
    return next(case for case in questions(piece) if case.name.startswith("by hand"))


# Witnesses ------------------------------------------------------------------------------------------------------------

def test_log_prob_and_entropy_worked_out_with_a_pencil():
    """mu = (0, 1), sigma = (1, 1/2), a = (1, 1): z = (1, 0); log(2 pi) / 2 = 0.918939.

    log pi = (-1/2 - 0 - 0.918939) + (0 + 0.693147 - 0.918939);   H = (0 + 1.418939) + (-0.693147 + 1.418939)
    """
    expected = by_hand("GaussianPolicy").expected
    half = 0.5 * math.log(2 * math.pi)
    assert expected["log_prob"].item() == pytest.approx(-0.5 - half + math.log(2) - half, abs=1e-6)
    assert expected["entropy"].item() == pytest.approx(1 + 2 * half - math.log(2), abs=1e-6)


def test_running_statistics_worked_out_with_a_pencil():
    """0, 2, 4: mean 2, variance (4 + 0 + 4) / 3. x = 6 is 4 above the mean; -100 is clipped to -10."""
    expected = by_hand("RunningNorm").expected
    assert expected["mean after batch 1"].item() == 2
    assert expected["var after batch 1"].item() == pytest.approx(8 / 3)
    assert expected["normalised"].flatten().tolist() == pytest.approx([0, 4 / math.sqrt(8 / 3), -10])


def test_scaled_rewards_worked_out_with_a_pencil():
    """gamma = 1/2, rewards 0, 4, 1, an end at once. R: 0; then 0 + 4 = 4; then 2 + 1 = 3.

    var(0, 4) = 4, so 4 becomes 4 / 2 = 2. var(0, 4, 3) = (0 + 16 + 9) / 3 - (7/3)^2 = 26/9, so 1 becomes 3 / sqrt(26).
    """
    scaled = by_hand("RewardScaler").expected["scaled rewards"].flatten().tolist()
    assert scaled == pytest.approx([0, 2, 3 / math.sqrt(26)], abs=1e-6)


def test_next_values_worked_out_with_a_pencil():
    assert by_hand("bootstrap_truncations").expected["next_values"].flatten().tolist() == [6, 7, 2]


def test_advantages_worked_out_with_a_pencil():
    """gamma = 1/2, lambda = 1/4, cut at t = 1: delta = (1 + 3 - 5, 0 + 3.5 - 6, 2 + 1 - 1) = (-1, -2.5, 2).

    A_2 = 2, A_1 = -2.5 (nothing flows over the cut), A_0 = -1 - 2.5 / 8 = -1.3125; returns = A + (5, 6, 1)
    """
    expected = by_hand("gae").expected
    assert expected["advantages"].flatten().tolist() == [-1.3125, -2.5, 2]
    assert expected["returns"].flatten().tolist() == [3.6875, 3.5, 3]


@pytest.mark.parametrize("seed", [VISIBLE_SEED, 1, 2])
def test_expected_advantages_are_those_of_the_paper(seed):
    for case in questions("gae", seed):
        names = ("rewards", "values", "next_values", "terminated", "truncated", "gamma", "lam")
        advantages, returns = gae_double_sum(*(case.inputs[name] for name in names))
        torch.testing.assert_close(case.expected["advantages"], advantages, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(case.expected["returns"], returns, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [VISIBLE_SEED, 1])
def test_the_first_step_of_an_update_is_the_gradient_of_the_paper(seed):
    """One epoch over the whole batch by plain gradient descent, against the losses written row by row in float64.

    Repeating all rows changes no mean; the standard deviation becomes that of the population.
    """
    for case in questions("ppo_update", seed):
        x = {name: v.double() if isinstance(v, torch.Tensor) else v for name, v in case.inputs.items()}
        if x["epochs"] != 1 or x["minibatch_size"]:
            continue
        W, log_std, w = (x[n].clone().requires_grad_() for n in ("policy_weight", "log_std", "critic_weight"))
        A = (x["advantages"] - x["advantages"].mean()) / x["advantages"].std(correction=0)
        loss = -x["entropy_coef"] * (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum()
        for b in range(len(A)):
            z = (x["actions"][b] - W @ x["obs"][b]) / log_std.exp()
            log_prob = (-0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)).sum()
            ratio = (log_prob - x["log_probs"][b]).exp()
            clipped = ratio.clamp(1 - x["clip"], 1 + x["clip"])
            error = (w[0] @ x["obs"][b] - x["returns"][b]) ** 2
            loss = loss + (x["value_coef"] * error - torch.min(ratio * A[b], clipped * A[b])) / len(A)
        grads = torch.autograd.grad(loss, (W, log_std, w))
        norm = torch.sqrt(sum(g.square().sum() for g in grads))
        shrink = min(1.0, x["max_grad_norm"] / norm.item())
        # The critic's parameter group has half of the learning rate.
        for name, grad, rate in (("policy", grads[0], 1), ("log_std", grads[1], 1), ("critic", grads[2], 0.5)):
            torch.testing.assert_close(case.expected[f"step of {name} / learning rate"], -rate * shrink * grad,
                                       rtol=1e-3, atol=1e-3)


# Mistakes -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", [VISIBLE_SEED, "fresh"])
@pytest.mark.parametrize("piece", PIECES)
def test_every_mistake_is_caught_and_named(robots, piece, seed):
    cases, missed = questions(piece, seed, with_mistakes=True), {}
    for key, mistake in mistakes_of(NAME, piece).items():
        findings, names, _ = engine.check(PIECES[piece], version(PIECES[piece], robots[piece], mistake.wrong), cases)
        if all(finding.status == engine.PASSED for finding in findings) or names != [key]:
            missed[key] = names
    assert missed == {}
    assert len(mistakes_of(NAME, piece)) >= 6


@pytest.mark.parametrize("seed", ["e", "f"])
@pytest.mark.parametrize("piece", PIECES)
def test_every_mistake_is_caught_by_other_questions(robots, piece, seed):
    cases = questions(piece, seed)
    for key, mistake in mistakes_of(NAME, piece).items():
        findings, _, _ = engine.check(PIECES[piece], version(PIECES[piece], robots[piece], mistake.wrong), cases)
        assert any(finding.status != engine.PASSED for finding in findings), key


# Right ways -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("piece, right", [(piece, right) for piece, ways in ALTERNATIVES.items() for right in ways],
                         ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_other_right_ways_pass(piece, right):
    for seed in (VISIBLE_SEED, "c", "d"):
        findings, _, _ = engine.check(PIECES[piece], right, questions(piece, seed))
        assert [(f.case.name, f.error, [d.message for d in f.differences])
                for f in findings if f.status != engine.PASSED] == []


def test_the_extension_is_not_asked_of_those_who_left_it_out():
    cases = questions("ppo_update")
    for right, asked in zip(ALTERNATIVES["ppo_update"], (True, False, True)):
        findings, _, _ = engine.check(PIECES["ppo_update"], right, cases)
        assert any("extension" in finding.case.name for finding in findings) == asked


@pytest.mark.parametrize("piece", PIECES)
def test_the_stub_is_not_written_yet(robots, piece):
    from grading import notebooks

    cell = next(c for c in notebooks.read(notebooks.solution_path(NAME)).cells if notebooks.grade_id(c) == piece)
    namespace = dict(robots)
    exec(stub(cell.source, piece), namespace)
    findings, _, _ = engine.check(PIECES[piece], namespace[piece], questions(piece))
    assert {finding.status for finding in findings} == {engine.NOT_WRITTEN}


@pytest.mark.parametrize("piece", PIECES)
def test_a_thing_of_the_wrong_type_fails_with_words(piece):
    for thing in (None, 3, torch.zeros(2)):
        findings, _, _ = engine.check(PIECES[piece], thing, questions(piece))
        assert all(finding.status in (engine.FAILED, engine.RAISED) and finding.error for finding in findings)


@pytest.mark.parametrize("piece", PIECES)
def test_the_check_of_the_notebook_passes_the_solution(robots, piece, capsys):
    assert FACES[piece](robots[piece]).passed
    assert "checks pass" in capsys.readouterr().out
