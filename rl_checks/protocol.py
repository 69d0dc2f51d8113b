"""run_tests and check_torch_tensor: checks that an instructor writes in a cell, as a generator."""

import functools
import time

import torch

from rl_checks import engine
from rl_checks.engine import FAILED, NOT_WRITTEN, PASSED, RAISED
from rl_checks.report import CheckFailed, Paragraph, Report, Row


def run_tests(generator):
    """Runs the checks that a generator yields, shows the report and returns it.

    The generator yields   a str: a section begins with this title
                           (ok, message): a check; ok is a bool or a 0-d tensor, message says what is wrong if not ok
                           None: a case ends; sections count their cases
    A check's outcome is sent back, so `ok = yield condition, message` is a bool.

    raises   CheckFailed   a check failed, the student's code raised, or it is not written yet
             TypeError     the generator yielded something else
    """
    if not hasattr(generator, "send"):
        raise TypeError(f"run_tests wants a generator, as in run_tests(test_ppo()); it got {engine.describe(generator)}")
    started = time.perf_counter()
    sections = [_Section("checks")]
    answer = None
    trouble = None
    while True:
        item, trouble = engine.attempt(functools.partial(_next, generator, answer))
        if trouble or item is _END:
            break
        answer = None
        if isinstance(item, str):
            sections.append(_Section(item))
        elif item is None:
            sections[-1].cases += 1
        else:
            answer = sections[-1].take(item)
    if trouble:
        sections[-1].trouble = trouble
    rows = [section.row() for section in sections if section.begun]
    if not rows:
        raise TypeError("run_tests got a generator that yields no check")
    report = Report(getattr(generator, "__name__", "checks"), rows, time.perf_counter() - started)
    report.show()
    if not report.passed:
        raise CheckFailed(report)
    return report


def check_torch_tensor(x, name, shape=None, dtype=None):
    """Checks of one tensor, to be used as `ok = yield from check_torch_tensor(x, "x", (3, 4), torch.float32)`.

    shape    tuple of int or None (any size), or an int for one dimension; None: not checked
    dtype    torch.dtype; None: not checked
    yields   (ok, message) in the order type, shape, dtype, up to the first that fails
    returns  True if x is a tensor of that shape and dtype
    """
    if not (yield isinstance(x, torch.Tensor), f"{name} is {engine.describe(x)}, expected a torch.Tensor"):
        return False
    if shape is not None:
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)
        fits = len(wanted) == x.dim() and all(w is None or int(w) == s for w, s in zip(wanted, x.shape))
        if not (yield fits, f"{name} has shape {tuple(x.shape)}, expected {wanted}"):
            return False
    return dtype is None or (yield x.dtype == dtype, f"{name} has dtype {x.dtype}, expected {dtype}")


_END = object()


class _Section:
    """The checks between one title and the next."""

    def __init__(self, title):
        self.title = title
        self.checks = self.cases = 0
        self.failures = []
        self.trouble = None
        self.begun = title != "checks"  # the unnamed first section counts only if something happens in it

    def take(self, item):
        if not (isinstance(item, tuple) and len(item) == 2):
            raise TypeError(f"a check is a pair (ok, message); section {self.title!r} yielded {engine.describe(item)}")
        ok, message = item
        if isinstance(ok, torch.Tensor) and ok.numel() != 1:
            raise TypeError(f"ok must be a bool or a 0-d tensor; section {self.title!r} yielded {engine.describe(ok)}: "
                            f"say .all() or .any() ({message})")
        self.begun = True
        self.checks += 1
        if not ok:
            self.failures.append((self.cases, str(message)))
        return bool(ok)

    def row(self):
        counted = f"{self.cases} case{'s' * (self.cases != 1)}" if self.cases else f"{self.checks} checks"
        if self.trouble and self.trouble.status == NOT_WRITTEN:
            return Row(NOT_WRITTEN, self.title, self.trouble.error or "not written yet")
        if self.trouble:
            place = (Paragraph(f"in {self.trouble.place}", code=True),) if self.trouble.place else ()
            return Row(RAISED, self.title, f"your code raised {self.trouble.error}", place)
        if not self.failures:
            return Row(PASSED, self.title, counted)
        messages = [f"case {case + 1}: {message}" if self.cases > 1 else message for case, message in self.failures]
        more = [f"… and {len(messages) - 5} more"] if len(messages) > 5 else []
        return Row(FAILED, self.title, messages[0], tuple(Paragraph(message) for message in messages[1:5] + more))


def _next(generator, answer):
    try:
        return generator.send(answer)
    except StopIteration:
        return _END
