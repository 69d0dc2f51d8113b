"""What the tests of grading share: submissions made from the solution, and one sandbox for all test modules."""

import atexit
import functools
import hashlib
import json
import os
from pathlib import Path

import nbformat
import pytest

from grading import bubblewrap, intake, notebooks
from grading.judge import Budget, Judge
from grading.sandbox import Sandbox

ASSIGNMENT = "02_lunar_lander"
SECRET = b"a secret of the tests"
FIRST, SECOND = "compute_advantages", "compute_loss"


@functools.cache
def release():
    return notebooks.read(notebooks.RELEASES / f"{ASSIGNMENT}.ipynb")


@functools.cache
def answers():
    """{piece: source} of the solution."""
    solution = notebooks.read(notebooks.solution_path(ASSIGNMENT))
    return {notebooks.grade_id(cell): cell.source for cell in solution.cells if notebooks.is_answer(cell)}


def notebook(**changed):
    """The released notebook with the solution's answers, or the given ones in their place."""
    copy = nbformat.from_dict(json.loads(nbformat.writes(release())))
    for cell in copy.cells:
        if notebooks.is_answer(cell):
            cell.source = changed.get(notebooks.grade_id(cell), answers()[notebooks.grade_id(cell)])
    return copy


def hand_in(folder, student, nb):
    """Writes FOLDER/STUDENT/ASSIGNMENT.ipynb from a notebook, a str or bytes; returns the path."""
    path = Path(folder) / student / f"{ASSIGNMENT}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = nb if isinstance(nb, bytes) else (nb if isinstance(nb, str) else nbformat.writes(nb)).encode()
    path.write_bytes(data)
    return path


def submission(student="s", **changed):
    """A Submission with the solution's answers, or the given ones in their place."""
    given = answers() | changed
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
    return intake.Submission(student, intake.OK, given, digest)


@functools.cache
def sandbox():
    """The sandbox that all test modules share."""
    opened = Sandbox(unsafe=bool(WHY_UNCONFINED)).__enter__()  # where bubblewrap is missing, tests that need it skip
    atexit.register(opened.__exit__)
    return opened


@functools.cache
def judge(step_s=3.0, total_s=9.0):
    return Judge(ASSIGNMENT, SECRET, sandbox(), Budget(step_s, total_s))


def scores(verdict):
    return {name: piece.score for name, piece in verdict.pieces.items()}


FULL = {FIRST: 6.0, SECOND: 4.0}
WHY_UNCONFINED = bubblewrap.missing()
if WHY_UNCONFINED and os.environ.get("CI"):
    raise RuntimeError(f"the tests of grading need a sandbox: {WHY_UNCONFINED}")
confined = pytest.mark.skipif(bool(WHY_UNCONFINED), reason=WHY_UNCONFINED or "bubblewrap works")
