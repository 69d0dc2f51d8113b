"""Checks of your work: each test_* function looks at what you wrote and tells what is right, what is wrong and where.

    rl_tests.test_compute_advantages(compute_advantages)

shows a report, returns it, and raises CheckFailed unless everything passes. The cases and the expected numbers are in
reference.json, which the authors generate; `python -m grading` asks other questions of the same kind.

For checks that an instructor writes in a cell: run_tests and check_torch_tensor.
"""

import functools
import importlib
import json
import time
from dataclasses import replace
from pathlib import Path

from rl_checks import engine
from rl_checks.engine import Case
from rl_checks.protocol import check_torch_tensor, run_tests
from rl_checks.report import CheckFailed, Report, merged, rows_of
from rl_checks.values import decode

__all__ = ["CheckFailed", "Report", "check_torch_tensor", "run_tests"]

REFERENCE = Path(__file__).resolve().parent / "reference.json"


def test_ppo(PPO, only=None):
    """02: the class PPO. only: "compute_advantages" or "compute_loss" for that piece alone."""
    pieces = ("networks", "compute_advantages", "compute_loss")
    if only is not None and only not in pieces:
        raise ValueError(f"only={only!r}: test_ppo knows {', '.join(pieces)}")
    return _check("02_lunar_lander", [only] if only else pieces, PPO, f"PPO.{only}" if only else "PPO")


def _check(assignment, pieces, target, title):
    """Checks `target` as each of the pieces, shows the report and returns it, or raises CheckFailed."""
    observers = observers_of(assignment)
    rows, started = [], time.perf_counter()
    for name in pieces:
        cases, hints = visible_cases(assignment, name)
        findings, names, _ = engine.check(observers[name], target, cases)
        told = rows_of(findings, names, hints)
        rows += told if len(pieces) == 1 else [replace(row, title=f"{name}: {row.title}") for row in told]
    report = Report(title, merged(rows), time.perf_counter() - started)
    report.show()
    if not report.passed:
        raise CheckFailed(report)
    return report


def observers_of(assignment):
    """{piece name: Piece} of an assignment: 02_lunar_lander -> rl_checks.lunar_lander.PIECES."""
    return importlib.import_module("rl_checks." + assignment.partition("_")[2]).PIECES


def visible_cases(assignment, piece):
    """(list of Case, {mistake: hints from nudge to strongest}) out of reference.json."""
    entry = _reference().get(assignment, {}).get(piece)
    if entry is None:
        raise LookupError(f"reference.json has no cases for {assignment}/{piece}: take it again from the course's files")
    cases = []
    for case in entry["cases"]:
        mistakes = {key: _record(given) for key, given in case["mistakes"].items()}
        cases.append(Case(case["name"], _record(case["inputs"]), _record(case["expected"]), mistakes))
    return cases, entry["hints"]


def _record(quantities):
    return {name: decode(value) for name, value in quantities.items()}


@functools.cache
def _reference():
    try:
        return json.loads(REFERENCE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{REFERENCE.name} must lie beside rl_tests.py: take it again from the course's files, "
                                f"or run `python -m grading build`") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{REFERENCE.name} is damaged ({error}): take it again from the course's files") from None
