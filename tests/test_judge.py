"""The judge: each way in which a submission can go wrong costs its own piece, and nothing else."""

import atexit
import functools

import pytest
from classroom import ASSIGNMENT, FIRST, FULL, SECOND, SECRET, answers, judge, sandbox, scores, submission

from grading import intake
from grading.judge import CRASHED, INFRASTRUCTURE, MEMORY, OK, TIMEOUT, Budget, Judge
from grading.sandbox import Sandbox, SandboxError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def after(code):
    """The solution of the first piece with code behind it."""
    return {FIRST: answers()[FIRST] + "\n\n" + code}


def inside(code, piece=SECOND):
    """The solution of a piece with a line at the start of its body."""
    return {piece: answers()[piece].replace("### BEGIN SOLUTION", code + "\n    ### BEGIN SOLUTION")}


def test_the_solution_gets_every_point():
    verdict = judge().judge(submission())
    assert verdict.status == OK and scores(verdict) == FULL and not verdict.notes


def test_the_same_submission_gets_the_same_questions_and_another_gets_others():
    questions = [[c.inputs["rewards"] for c in judge().questions(s, FIRST)]
                 for s in (submission(), submission(), submission(**after("x = 1")))]
    same, others = [[a.shape == b.shape and bool((a == b).all()) for a, b in zip(questions[0], q)] for q in questions[1:]]
    assert all(same) and not all(others)


def test_another_secret_asks_other_questions():
    other = Judge(ASSIGNMENT, b"another secret", sandbox())
    pairs = zip(judge().questions(submission(), FIRST), other.questions(submission(), FIRST))
    assert any(a.inputs["rewards"].tolist() != b.inputs["rewards"].tolist() for a, b in pairs)


@pytest.mark.parametrize("status", [intake.MISSING, intake.UNREADABLE])
def test_a_file_that_is_not_there_or_not_readable_is_not_run(status):
    verdict = judge().judge(intake.Submission("s", status, notes=("why",)))
    assert verdict.status == status and verdict.score == 0 and verdict.notes == ["why"]


@pytest.mark.parametrize("code", ["while True:\n    pass", "import time\ntime.sleep(1e6)",
                                  "import signal\nsignal.pthread_sigmask(0, range(1, 32))\nwhile True:\n    pass"])
def test_a_cell_that_does_not_end_costs_its_own_piece(code):
    verdict = judge().judge(submission(**after(code)))
    assert verdict.status == TIMEOUT and scores(verdict) == {FIRST: 0, SECOND: 4}
    assert "did not end within 3 s" in verdict.pieces[FIRST].text


def test_a_call_that_does_not_end_costs_its_own_piece():
    verdict = judge().judge(submission(**inside("while True: pass")))
    assert verdict.status == TIMEOUT and scores(verdict) == {FIRST: 6, SECOND: 0}


def test_two_loops_end_within_the_total_budget():
    verdict = judge().judge(submission(**dict.fromkeys(answers(), "while True:\n    pass")))
    assert verdict.status == TIMEOUT and verdict.score == 0 and verdict.seconds < 12


@pytest.mark.parametrize("code", ["import os; os._exit(0)", "import os; os.abort()", "import ctypes; ctypes.string_at(0)",
                                  "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_process_that_ends_costs_the_piece_that_ended_it(code):
    verdict = judge().judge(submission(**inside(code)))
    assert verdict.status == CRASHED and scores(verdict) == {FIRST: 6, SECOND: 0}


@pytest.mark.parametrize("code", ["raise SystemExit", "exit()", "import sys; sys.exit(3)", "raise KeyboardInterrupt"])
def test_an_exit_that_python_can_catch_costs_at_most_its_piece(code):
    verdict = judge().judge(submission(**after(code)))
    assert scores(verdict)[SECOND] == 4


@pytest.mark.parametrize("code", ["x = bytearray(2**33)", "x = [bytearray(2**26) for _ in range(200)]",
                                  "import torch; x = torch.ones(2**33)"])
def test_memory_beyond_the_limit_is_a_status_of_its_own(code):
    verdict = judge(8.0, 20.0).judge(submission(**inside(code)))  # pages are slow to come by on a busy machine
    assert verdict.status == MEMORY and scores(verdict) == {FIRST: 6, SECOND: 0}


def test_endless_recursion_costs_its_piece():
    again = "return self.compute_loss(states, actions, advantages, critic_targets, log_probs_old)"
    verdict = judge().judge(submission(**inside(again)))
    assert scores(verdict) == {FIRST: 6, SECOND: 0}


def test_warnings_prints_and_progress_bars_cost_nothing():
    noise = "import sys, warnings; print('x' * 10**6); print('y' * 10**6, file=sys.stderr); warnings.warn('w')"
    assert scores(judge().judge(submission(**inside(noise)))) == FULL


def test_magics_shell_commands_and_display_do_not_break_a_cell():
    code = "%matplotlib inline\n!ls\nget_ipython().run_line_magic('x', '')\n"
    verdict = judge().judge(submission(**{FIRST: code + "display(1)\nx = input('?')\n" + answers()[FIRST]}))
    assert scores(verdict) == FULL


def test_a_syntax_error_is_told_and_costs_its_piece():
    verdict = judge().judge(submission(**{FIRST: "def compute_advantages(:"}))
    assert verdict.status == OK and scores(verdict) == {FIRST: 0, SECOND: 4} and "SyntaxError" in verdict.pieces[FIRST].text


def test_a_helper_in_a_cell_of_ones_own_is_explained():
    given = submission(**inside("helper()"))
    given = intake.Submission("s", intake.OK, given.answers, given.digest, (), frozenset({"helper"}))
    assert "You define helper in a cell of your own" in judge().judge(given).pieces[SECOND].text


@pytest.mark.parametrize("code", [
    "import torch.distributions as d; d.Categorical(probs=torch.ones(2)).sample()", "import torch.optim; torch.optim.Adam",
    "import numpy.random as r; r.default_rng(0).normal()", "import dataclasses, collections, itertools, functools",
    "import statistics, fractions, scipy.signal", "import torch.nn.functional as F; F.softmax(torch.ones(2), 0)",
    "import gymnasium; gymnasium.make('CartPole-v1').reset(seed=1)", "import matplotlib.pyplot as plt; plt.plot([1, 2])",
    "import tempfile; tempfile.TemporaryFile().write(b'1')", "open('mine.txt', 'w').write('1')"])
def test_what_students_import_late_works(code):
    verdict = judge().judge(submission(**after("import torch\n" + code)))
    assert scores(verdict) == FULL, verdict.pieces[FIRST].text


class Broken:
    def child(self, full=False):
        raise SandboxError("no process to be had")


def test_a_fault_of_the_sandbox_is_never_a_zero():
    verdict = Judge(ASSIGNMENT, SECRET, Broken(), Budget()).judge(submission())
    assert verdict.status == INFRASTRUCTURE and verdict.score is None and "no process" in verdict.notes[0]


def test_one_students_leftovers_do_not_reach_the_next():
    spoil = "import torch, rl_tests, builtins\ntorch.zeros_like = None\nbuiltins.len = None\nopen('left.txt', 'w').write('x')"
    judge().judge(submission(**after(spoil)))
    look = "import os\nassert not os.path.exists('left.txt') and torch.zeros_like and len('x')\n"
    assert scores(judge().judge(submission(**{FIRST: "import torch\n" + look + answers()[FIRST]}))) == FULL


@functools.cache
def full_judge():
    box = Sandbox(unsafe=not sandbox().confined, full=True).__enter__()
    atexit.register(box.__exit__)
    return Judge(ASSIGNMENT, SECRET, box, Budget(8.0, 20.0))


@pytest.mark.parametrize("changed", [
    {}, after("raise ValueError('x')"), {FIRST: "def compute_advantages(:"}, inside("return None"),
    inside("import os; os._exit(0)"), after("raise SystemExit"), inside("x = input('?'); print(x); display(x)")], ids=str)
def test_a_kernel_gives_the_grades_of_the_fast_way(changed):
    fast, full = judge(8.0, 20.0).judge(submission(**changed)), full_judge().judge(submission(**changed))
    assert (full.status, scores(full)) == (fast.status, scores(fast)), (full.notes, full.pieces[FIRST].text)


@pytest.mark.parametrize("code", ["%%time\n", "files = !ls\n", "%%capture out\n"])
def test_an_answer_that_needs_a_kernel_gets_one(code):
    assert scores(judge(8.0, 20.0).judge(submission(**{FIRST: code + answers()[FIRST]}))) == FULL
