"""Known mistakes: wrong versions of every piece, with the hints that a tutor would give.

Only the numbers that a mistake gives, and its hints, reach students; never its code.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

STRENGTHS = ("nudge", "pointer", "answer")


@dataclass(frozen=True)
class Mistake:
    """A wrong version of a piece, and three hints: a question, where to look, nearly what to write."""

    key: str
    wrong: Callable
    nudge: str
    pointer: str
    answer: str

    def hints(self, strength="pointer"):
        """The hints up to `strength`, weakest first."""
        if strength not in STRENGTHS:
            raise ValueError(f"hint strength {strength!r}: choose one of {', '.join(STRENGTHS)}")
        return [getattr(self, name) for name in STRENGTHS[: STRENGTHS.index(strength) + 1]]


class Book(dict):
    """{piece: {key: Mistake}} of one notebook."""

    def add(self, piece, *, nudge, pointer, answer):
        """Decorator over a wrong version of `piece`; the function's name is the mistake's key."""
        def register(wrong):
            mine = self.setdefault(piece, {})
            if wrong.__name__ in mine:
                raise ValueError(f"two mistakes of {piece} are called {wrong.__name__}")
            mine[wrong.__name__] = Mistake(wrong.__name__, wrong, nudge, pointer, answer)
            return wrong
        return register


def mistakes_of(assignment, piece):
    """{key: Mistake} for a piece of an assignment."""
    module = importlib.import_module("grading.mistakes." + assignment.partition("_")[2])
    return module.MISTAKES.get(piece, {})


def version(piece, solution, wrong):
    """`wrong` in the place where the piece's observer looks: itself, or the solution's class with that method."""
    if piece.target and piece.target != piece.name and not isinstance(wrong, type):
        return type(solution.__name__, (solution,), {piece.name: wrong})
    return wrong
