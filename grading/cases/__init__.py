"""Questions about pieces: the same functions make the visible cases (fixed seed) and the grader's fresh ones.

Every number is a multiple of a quarter or another small power of two, exact in float32, so that a right answer differs
from ours by rounding only. All parameters of a case are distinct (gamma != lam, T != N): equal ones make mistakes
look alike. random.Random and not torch: its sequence is the same on every version and machine.
"""

import importlib
import random

import torch

VISIBLE_SEED = 20261101


class Draw:
    """A seeded source of numbers that are exact in binary."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def quarters(self, shape, low=-2.0, high=2.0):
        """float32 tensor of quarters in [low, high]."""
        return self._fill(shape, lambda: self._random.randint(round(low * 4), round(high * 4)) / 4, torch.float32)

    def bits(self, shape, p=0.5):
        """float32 tensor of zeros and ones, ones with probability p."""
        return self._fill(shape, lambda: float(self._random.random() < p), torch.float32)

    def integers(self, shape, low, high):
        """int64 tensor of integers in [low, high)."""
        return self._fill(shape, lambda: self._random.randrange(low, high), torch.int64)

    def choice(self, options):
        """One of the options."""
        return self._random.choice(options)

    def distinct(self, options, k):
        """k different ones of the options, in random order."""
        return self._random.sample(options, k)

    def _fill(self, shape, one, dtype):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        count = 1
        for size in shape:
            count *= size
        return torch.tensor([one() for _ in range(count)], dtype=dtype).reshape(shape)


def cases_of(assignment, piece, seed=VISIBLE_SEED):
    """The cases of a piece, without expectations, drawn from `seed` (an int or a str)."""
    module = importlib.import_module("grading.cases." + assignment.partition("_")[2])
    return getattr(module, piece)(Draw(f"{assignment}/{piece}/{seed}"))
