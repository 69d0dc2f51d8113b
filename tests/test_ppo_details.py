"""03_ppo_details: the checks of its pieces are right, sharp and quick.

Independent witnesses: a case worked with a pencil, slow definitions in float64, and right versions written in other ways.
"""

import math
import time

import pytest
import torch
from torch import nn
from torch.distributions import Categorical

from benchmarks.ppo_alternatives import ALTERNATIVES
from grading import notebooks, solutions
from grading.build import expect, stub
from grading.cases import VISIBLE_SEED, cases_of
from grading.mistakes import STRENGTHS, mistakes_of, version
from rl_checks import engine
from rl_checks.report import Report, rows_of
from rl_tests import observers_of

NAME = "03_ppo_details"
PIECES = list(observers_of(NAME))
SEEDS = (VISIBLE_SEED, 1)


@pytest.fixture(scope="module")
def details():
    return solutions.load(NAME)


@pytest.fixture(scope="module")
def frozen(details):
    """{(piece, seed): cases with what the solution and every mistake give}"""
    return {(name, seed): expect(NAME, observers_of(NAME)[name], cases_of(NAME, name, seed))
            for name in PIECES for seed in SEEDS}


def solution(details, name):
    piece = observers_of(NAME)[name]
    return piece, details[piece.target or piece.name]


def checked(piece, target, cases):
    findings, names, seconds = engine.check(piece, target, cases)
    return all(finding.status == engine.PASSED for finding in findings), names, seconds, findings


@pytest.mark.parametrize("name", PIECES)
def test_the_solution_passes_and_quickly(details, frozen, name):
    piece, target = solution(details, name)
    for seed in SEEDS:
        passed, names, seconds, findings = checked(piece, target, frozen[name, seed])
        assert passed and not names, findings
        assert seconds < 1.0  # 0.3 s on an idle machine; benchmarks/checks.py measures it


@pytest.mark.parametrize("name", PIECES)
def test_every_mistake_is_caught_and_named(details, frozen, name):
    piece, target = solution(details, name)
    missed = []
    for seed in SEEDS:
        for key, mistake in mistakes_of(NAME, name).items():
            passed, names, _, _ = checked(piece, version(piece, target, mistake.wrong), frozen[name, seed])
            if passed or names != [key]:
                missed.append((seed, key, "passed" if passed else names))
    assert not missed


@pytest.mark.parametrize("name", PIECES)
def test_every_right_version_is_accepted(frozen, name):
    piece = observers_of(NAME)[name]
    for alternative in ALTERNATIVES.get(name, []):
        for seed in SEEDS:
            passed, _, _, findings = checked(piece, alternative, frozen[name, seed])
            assert passed, (alternative.__name__, [(f.case.name, f.error, [d.message for d in f.differences])
                                                   for f in findings if f.status != engine.PASSED])


def test_there_are_enough_of_both_and_every_hint_has_three_strengths():
    mistakes = [mistake for name in PIECES for mistake in mistakes_of(NAME, name).values()]
    assert len(mistakes) >= 150 and sum(map(len, ALTERNATIVES.values())) >= 40
    for mistake in mistakes:
        texts = mistake.hints("answer")
        assert len(texts) == len(set(texts)) == len(STRENGTHS) and all(5 < len(text) < 300 for text in texts), mistake.key


@pytest.mark.parametrize("name", PIECES)
def test_the_stub_is_not_written_and_not_wrong(frozen, name):
    notebook = notebooks.read(notebooks.solution_path(NAME))
    space = dict(solutions.load(NAME))
    cell = next(cell for cell in notebook.cells if notebooks.is_answer(cell) and notebooks.grade_id(cell) == name)
    exec(stub(cell.source, name), space)
    piece = observers_of(NAME)[name]
    findings, names, _ = engine.check(piece, space[piece.target or piece.name], frozen[name, VISIBLE_SEED])
    assert {finding.status for finding in findings} == {engine.NOT_WRITTEN} and not names


def test_a_report_is_small(details, frozen):
    for name in PIECES:
        piece, target = solution(details, name)
        hints = {key: mistake.hints("answer") for key, mistake in mistakes_of(NAME, name).items()}
        for mistake in mistakes_of(NAME, name).values():
            findings, names, _ = engine.check(piece, version(piece, target, mistake.wrong), frozen[name, VISIBLE_SEED])
            report = Report(name, rows_of(findings, names, hints))
            assert len(report.as_html().encode()) <= 25_000 and len(report.as_text().encode()) <= 25_000, mistake.key


NUMERIC = ["compute_advantages", "calc_policy_loss", "calc_value_function_loss", "calc_entropy_loss", "calc_old_approx_kl",
           "calc_approx_kl", "calc_clipfrac", "calc_explained_variance", "calc_entropy"]


@pytest.mark.parametrize("name", NUMERIC)
def test_random_wrong_answers_get_no_name(details, frozen, name):
    """What is wrong in a way that nobody has thought of must not be given a name."""
    piece, target = solution(details, name)
    generator = torch.Generator().manual_seed(3)
    for _ in range(40):
        def noise(*arguments):
            right = target(*arguments)
            if not isinstance(right, torch.Tensor):
                return float(torch.randn((), generator=generator))
            return right * float(torch.randn((), generator=generator)) + torch.randn(right.shape, generator=generator)
        passed, names, _, _ = checked(piece, noise, frozen[name, VISIBLE_SEED])
        assert not passed and names == []


def test_advantages_worked_with_a_pencil(details, frozen):
    """gamma = 1/2, lambda = 1/4, so gamma * lambda = 1/8. Environment 0 has its second episode begin at t = 2.

    env 0   t=2  delta = 2 + 1/2 * 4 - 4 = 0              A = 0
            t=1  ended: delta = 0 - 2 = -2                A = -2          (step 2 is another episode)
            t=0  delta = 1 + 1/2 * 2 - 1 = 1              A = 1 - 2/8 = 0.75
    env 1   t=2  ended (next_done): delta = 1 - 3 = -2    A = -2
            t=1  delta = 2 + 1/2 * 3 - 1 = 2.5            A = 2.5 - 2/8 = 2.25
            t=0  delta = 1 + 1/2 * 1 - 2 = -0.5           A = -0.5 + 2.25/8 = -0.21875
    """
    case = frozen["compute_advantages", VISIBLE_SEED][0]
    expected = torch.tensor([[0.75, -0.21875], [-2.0, 2.25], [0.0, -2.0]])
    assert torch.equal(case.expected["advantages"], expected)


def test_advantages_equal_the_sum_of_the_paper_in_float64(details):
    generator = torch.Generator().manual_seed(5)
    T, N, gamma, lam = 7, 3, 0.9, 0.7
    rewards, values = torch.randn(2, T, N, generator=generator).double()
    dones = (torch.rand(T + 1, N, generator=generator) < 0.3).double()
    next_value = torch.randn(1, N, generator=generator).double()
    found = details["compute_advantages"](
        next_value.float(), dones[T].float(), rewards.float(), values.float(), dones[:T].float(), torch.device("cpu"),
        gamma, lam)
    following = torch.cat([values, next_value])
    for n in range(N):
        for t in range(T):
            total, weight = 0.0, 1.0
            for k in range(t, T):
                total += weight * (rewards[k, n] + gamma * (1 - dones[k + 1, n]) * following[k + 1, n] - values[k, n])
                weight *= gamma * lam * (1 - dones[k + 1, n])
            assert found[t, n].item() == pytest.approx(float(total), abs=1e-5)


def test_the_policy_loss_row_by_row(details):
    """Advantages (1, -1, 1, -1) are normalised to +-sqrt(3)/2; ratios 1.5, 1.5, 0.5, 0.5 and clip 0.25."""
    advantages, ratios = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.tensor([1.5, 1.5, 0.5, 0.5])
    probs = Categorical(logits=torch.zeros(4, 2))
    old = math.log(0.5) - ratios.log()
    loss = details["calc_policy_loss"](probs, torch.zeros(4, dtype=torch.long), advantages, old, 0.25)
    a = 1 / (2 / math.sqrt(3))
    assert loss.item() == pytest.approx(-(1.25 * a - 1.5 * a + 0.5 * a - 0.75 * a) / 4, abs=1e-6)


def test_the_value_loss_by_hand(details):
    critic = nn.Linear(1, 1)
    nn.init.ones_(critic.weight)
    nn.init.zeros_(critic.bias)
    loss = details["calc_value_function_loss"](critic, torch.tensor([[1.0], [3.0]]), torch.tensor([2.0, 1.0]), 0.5)
    assert loss.item() == pytest.approx(0.5 * 0.5 * (1 + 4) / 2)


def test_the_entropy_loss_of_a_fair_coin_is_minus_ln_2(details):
    assert details["calc_entropy_loss"](Categorical(logits=torch.zeros(5, 2)), 1.0).item() == pytest.approx(-math.log(2))


def test_the_better_kl_estimate_is_unbiased_and_not_negative(details):
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])
    kl = float((p * (p / q).log()).sum())
    sample = torch.multinomial(p, 200_000, replacement=True, generator=torch.Generator().manual_seed(1))
    new, old = q.log()[sample], p.log()[sample]
    assert details["calc_approx_kl"](new, old) == pytest.approx(kl, abs=3e-3)
    assert details["calc_old_approx_kl"](new, old) == pytest.approx(kl, abs=6e-3)
    assert details["calc_approx_kl"](new[:1], old[:1]) >= 0


def test_the_check_of_every_piece_together_takes_less_than_three_seconds(details, frozen):
    started = time.process_time()
    for name in PIECES:
        piece, target = solution(details, name)
        engine.check(piece, target, frozen[name, VISIBLE_SEED])
    assert time.process_time() - started < 3


def test_a_broken_piece_does_not_spoil_the_check_of_another(details):
    """learning_phase and make_minibatches are looked at with stand-ins for what they call."""
    space = dict(solutions.load(NAME))
    notebook = notebooks.read(notebooks.solution_path(NAME))
    for cell in notebook.cells:
        if notebooks.is_answer(cell) and notebooks.grade_id(cell) in ("make_minibatches", "learning_phase", "make_optimizer"):
            exec(cell.source, space)

    def broken(*arguments):
        raise ValueError("another piece is broken")
    for name in ("compute_advantages", "minibatch_indexes", "calc_policy_loss", "calc_value_function_loss",
                 "calc_entropy_loss", "PPOScheduler"):
        space[name] = broken
    for name in ("make_minibatches", "learning_phase", "make_optimizer"):
        piece = observers_of(NAME)[name]
        if name == "learning_phase":
            space["make_minibatches"] = broken
        passed, _, _, findings = checked(piece, space[name], expect(NAME, piece, cases_of(NAME, name), with_mistakes=False))
        assert passed, findings
        assert space["compute_advantages"] is broken  # what stood in is gone again
