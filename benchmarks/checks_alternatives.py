"""Right versions of pieces, from wherever they are kept: {name: object} for one piece."""

import importlib.util
from pathlib import Path

from benchmarks.ppo_alternatives import ALTERNATIVES
from grading.mistakes import version

TESTS = Path(__file__).resolve().parent.parent / "tests"
LUNAR = {"compute_advantages": "ADVANTAGES", "compute_loss": "LOSSES"}


def alternatives_of(assignment, piece, solution):
    """The right versions of a piece that the tests and benchmarks know, ready for its observer."""
    if assignment == "03_ppo_details":
        return {right.__name__: right for right in ALTERNATIVES.get(piece.name, [])}
    if assignment == "02_lunar_lander" and piece.name in LUNAR:
        rights = getattr(_module("lunar_alternatives"), LUNAR[piece.name])
        return {right.__name__: version(piece, solution, right) for right in rights}
    return {}


def _module(name):
    spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
