"""How a piece is checked: look at it on every case, compare named quantities, name the likely mistake.

Piece     what a student writes, with its observer: (student's object, inputs) -> {quantity: value}
Case      a name, inputs, the expected quantities, and what each known mistake would give
Finding   what one case showed: passed, failed, raised, or not written yet
check     all of it, for one piece

An observer only looks. What is expected comes from reference.json for a student, and from the solution, in another
process, for the grader; both are compared by the code in this file.
"""

import contextlib
import copy
import linecache
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

PASSED, FAILED, RAISED, NOT_WRITTEN = "passed", "failed", "raised", "not written yet"

TOLERANCE = 1e-5  # relative and absolute; every case is of order 1 and exact in binary, so this is roomy
SAME_MISTAKE = 1e-4  # a known mistake's numbers are frozen to 6 digits


class WrongKind(Exception):
    """An observer met something it cannot look at; the message says what it is and what was expected."""


@dataclass(frozen=True)
class Piece:
    """One thing that a student writes.

    name        the same in the notebook, in reference.json and in the gradebook
    target      what the notebook calls the object that the observer looks at; "" for the piece's own name
    observe     (object, inputs) -> {quantity: tensor | bool | int | float | str | None}
    derive      (raw observation, inputs) -> quantities; for the grader this half runs where no student code does,
                so flags that are the same for every question ("shuffled: True") cannot simply be sent
    words       {quantity: how to call it in a message}
    axes        {quantity: names of its dimensions}, for "advantages[t=2, env=1]"
    grid        (quantity, tensor, inputs) -> [T, N] view of a rollout quantity, or None
    context     inputs -> {column: [T, N] tensor} shown beside a wrong rollout quantity ("ends" marks episode ends)
    backwards   the recursion runs from the last step to the first: the fault is at the LARGEST wrong t
    """

    name: str
    observe: Callable
    target: str = ""
    derive: Callable | None = None
    words: dict = field(default_factory=dict)
    axes: dict = field(default_factory=dict)
    grid: Callable | None = None
    context: Callable | None = None
    backwards: bool = False
    tolerance: float = TOLERANCE


@dataclass(frozen=True)
class Case:
    """One question about a piece. `mistakes` holds only the quantities in which a mistake differs from `expected`."""

    name: str
    inputs: dict
    expected: dict = field(default_factory=dict)
    mistakes: dict = field(default_factory=dict)
    optional: bool = False  # skipped where the observer says that the student's version does not take part


@dataclass(frozen=True)
class Observation:
    """What came back from one look: quantities, or the reason why there are none."""

    status: str
    quantities: dict = field(default_factory=dict)
    error: str = ""
    place: str = ""


@dataclass(frozen=True)
class Difference:
    """One quantity that is not as expected. `wrong` marks the entries; None where values were not compared."""

    quantity: str
    kind: str  # type, shape, dtype, finite, value: the order in which they are compared
    message: str
    expected: object = None
    got: object = None
    wrong: torch.Tensor | None = None


@dataclass(frozen=True)
class Finding:
    """What one case showed."""

    piece: Piece
    case: Case
    status: str
    differences: tuple = ()
    error: str = ""
    place: str = ""


class Skip(Exception):
    """Raised by an observer: this case asks for an optional extra that the student's version does not have."""


def look(piece, target, inputs):
    """Runs the observer on a copy of the inputs. Never raises for what the student's code does."""
    inputs = copy.deepcopy(inputs)
    # The same random numbers in every case and for everyone, and the notebook's own are left where they were.
    # Straight on the generator: torch.manual_seed also formats a stack for CUDA, which takes longer than most cases.
    state = torch.default_generator.get_state()
    torch.default_generator.manual_seed(0)
    try:
        quantities, trouble = attempt(lambda: piece.observe(target, inputs))
    finally:
        torch.default_generator.set_state(state)
    return trouble or Observation(PASSED, quantities)


def attempt(function):
    """(what function() returns, None), or (None, the Observation that tells what went wrong in it)."""
    # Warnings and prints to stderr are no mistakes, and stock nbgrader gives 0 to a cell that wrote there.
    with warnings.catch_warnings(), contextlib.redirect_stderr(sys.stdout):
        warnings.simplefilter("ignore")
        try:
            return function(), None
        except Skip:
            raise
        except WrongKind as error:
            return None, Observation(FAILED, error=str(error))
        except (Exception, SystemExit) as error:
            return None, _trouble(error)


def compare(piece, case, observation):
    """The finding for one case: compared in the order type, shape, dtype, finite, value."""
    if observation.status != PASSED:
        return Finding(piece, case, observation.status, error=observation.error, place=observation.place)
    quantities = observation.quantities
    differences = []
    for quantity, expected in case.expected.items():
        if quantity not in quantities:
            differences.append(Difference(quantity, "type", f"{quantity} is missing"))
            continue
        difference = _difference(piece, case.inputs, quantity, expected, quantities[quantity])
        if difference:
            differences.append(difference)
    return Finding(piece, case, FAILED if differences else PASSED, tuple(differences))


def check(piece, target, cases):
    """Looks at `target` on every case. Returns (findings, keys of the likely mistakes, seconds)."""
    started = time.perf_counter()
    seen = []
    for case in cases:
        try:
            seen.append((case, look(piece, target, case.inputs)))
        except Skip:
            continue
    findings, names = conclude(piece, seen)
    return findings, names, time.perf_counter() - started


def conclude(piece, seen):
    """Findings and likely mistakes from [(case, observation)]; the grader enters here with answers it was sent."""
    answers = []
    for case, observation in seen:
        if observation.status == PASSED and piece.derive:
            observation = derived(piece, case, observation)
        answers.append((case, observation))
    findings = [compare(piece, case, observation) for case, observation in answers]
    return findings, diagnose(piece, answers, findings)


def derived(piece, case, observation):
    """The observation with what piece.derive makes of its raw quantities."""
    try:
        return Observation(PASSED, piece.derive(observation.quantities, case.inputs))
    except WrongKind as error:
        return Observation(FAILED, error=str(error))


def diagnose(piece, seen, findings):
    """Keys of the known mistakes that explain what was seen, best first; empty where nothing fits.

    A mistake is named if every quantity of every case, right or wrong, is what that mistake gives. Where no single
    one fits, as when a student made two, a mistake is still named if it explains wrong NUMBERS and would spoil
    nothing that is right: equal flags alone ("no gradient") prove too little.
    """
    wrong = {(i, d.quantity) for i, finding in enumerate(findings) for d in finding.differences}
    if not wrong:
        return []
    answered = [(i, case, observation.quantities) for i, (case, observation) in enumerate(seen)
                if observation.status == PASSED]
    explained = {}
    for key in dict.fromkeys(key for _, case, _ in answered for key in case.mistakes):
        predicted = {(i, quantity): theirs for i, case, _ in answered
                     for quantity, theirs in case.mistakes.get(key, {}).items()}
        hits = {(i, quantity) for (i, quantity), theirs in predicted.items()
                if _same(seen[i][1].quantities.get(quantity), theirs)}
        if hits == wrong == predicted.keys():
            return [key]
        numbers = {i for i, quantity in hits if _is_evidence(seen[i][1].quantities[quantity])}
        if predicted.keys() <= wrong:
            explained[key] = (len(numbers), len(hits))
    ranked = sorted(explained, key=explained.get, reverse=True)
    # One case can be a coincidence of two mistakes; agreement in two is not.
    return [key for key in ranked[:1] if explained[key][0] >= 2]


def expect_tensors(value, function, names):
    """`value` as the tuple of tensors that `function` promises, or WrongKind with what it is instead."""
    promise = f"{function} must return {'a tuple of ' if len(names) > 1 else ''}" \
              f"{', '.join(names)} ({'torch tensors' if len(names) > 1 else 'a torch tensor'})"
    if len(names) == 1:
        value = (value,)
    if not isinstance(value, (tuple, list)):
        raise WrongKind(f"{promise}; it returned {describe(value)}")
    if len(value) != len(names):
        raise WrongKind(f"{promise}; it returned {len(value)} values")
    for name, item in zip(names, value):
        if not isinstance(item, torch.Tensor):
            raise WrongKind(f"{promise}; {name} is {describe(item)}")
    return tuple(value)


def describe(value):
    """A value in a few words: "None", "a numpy.ndarray of shape (3,)", "the class Agent"."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value)
    name = kind.__name__ if kind.__module__ in ("builtins", "torch") else f"{kind.__module__}.{kind.__name__}"
    article = "an" if name[0].lower() in "aeiou" else "a"
    shape = getattr(value, "shape", None)
    return f"{article} {name}" + (f" of shape {tuple(shape)}" if isinstance(shape, tuple) else "")


def changed_inputs(before, after):
    """Names of the tensors in `after` that are no longer what they were in `before`, "" if none: a raw quantity."""
    return ", ".join(name for name, x in before.items()
                     if isinstance(x, torch.Tensor) and not torch.equal(x, after[name]))


def _trouble(error):
    """An exception out of the student's code, told by the student's own last line, not by ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if "site-packages" not in frame.filename and "/lib/python" not in frame.filename]
    last = (own or frames or [None])[-1]
    line = (last.line or linecache.getline(last.filename, last.lineno)).strip() if last else ""
    message = str(error).strip()
    # torch raises NotImplementedError too, for an operation that a dtype lacks: only a `raise` line is a stub.
    if isinstance(error, NotImplementedError) and (line.startswith("raise") or "not written" in message or not message):
        return Observation(NOT_WRITTEN, error=message)
    place = f"{last.name}, line {last.lineno}: {line}" if last else ""
    first = message.splitlines()[0] if message else ""
    return Observation(RAISED, error=f"{type(error).__name__}: {first}" if first else type(error).__name__, place=place)


_OURS = str(Path(__file__).parent), str(Path(__file__).parent.parent / "rl_tests.py")


def _is_ours(filename):
    return filename.startswith(_OURS)


def _difference(piece, inputs, quantity, expected, got):
    word = piece.words.get(quantity, quantity)
    if not isinstance(expected, torch.Tensor):
        if isinstance(expected, float) and isinstance(got, (int, float)) and not isinstance(got, bool):
            if abs(got - expected) <= piece.tolerance * max(1.0, abs(expected)):
                return None
        elif type(got) is type(expected) and got == expected:
            return None
        return Difference(quantity, "value", _scalar_message(word, expected, got), expected, got)
    if not isinstance(got, torch.Tensor):
        message = f"{word} is {describe(got)}, expected a torch.Tensor of shape {tuple(expected.shape)}"
        return Difference(quantity, "type", message, expected, got)
    got = got.detach().cpu()
    if got.shape != expected.shape:
        message = f"{word} has shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
        return Difference(quantity, "shape", message, expected, got)
    if got.dtype != expected.dtype:
        message = f"{word} has dtype {got.dtype}, expected {expected.dtype}"
        return Difference(quantity, "dtype", message, expected, got)
    wrong = ~torch.isfinite(got)
    kind = "finite"
    if not wrong.any():
        kind = "value"
        wrong = ~torch.isclose(got.double(), expected.double(), rtol=piece.tolerance, atol=piece.tolerance)
    if not wrong.any():
        return None
    message = _value_message(piece, inputs, quantity, word, expected, got, wrong)
    return Difference(quantity, kind, message, expected, got, wrong)


def _scalar_message(word, expected, got):
    if expected == "" and isinstance(got, str):  # flags that list offenders: "inputs changed: rewards"
        return f"{word}: {got}"
    return f"{word} is {got!r}, expected {expected!r}"


def _value_message(piece, inputs, quantity, word, expected, got, wrong):
    """ "advantages[t=2, env=1] = 1.08, expected 1.09 (3 of 12 entries are wrong)" """
    names = piece.axes.get(quantity, "ijkl"[: wrong.dim()])
    if piece.grid and (rollout := piece.grid(quantity, wrong, inputs)) is not None:
        names, wrong = ("t", "env"), rollout
        expected, got = (piece.grid(quantity, x, inputs) for x in (expected, got))
    where = locate(wrong, piece.backwards)
    place = "[" + ", ".join(f"{name}={i}" for name, i in zip(names, where)) + "]" if where else ""
    message = f"{word}{place} = {number(got[where])}, expected {number(expected[where])}"
    if wrong.numel() > 1:
        message += f" ({int(wrong.sum())} of {wrong.numel()} entries are wrong)"
    return message


def locate(wrong, backwards=False):
    """Index of the wrong entry to show: the first, or the first of the last row that has one.

    wrong      bool tensor that marks the wrong entries, time along dimension 0
    backwards  the recursion runs from the last step to the first, so an error starts at the LARGEST wrong t
    """
    places = wrong.nonzero()
    if backwards and wrong.dim():
        places = places[places[:, 0] == places[:, 0].max()]
    return tuple(int(i) for i in places[0])


def number(x):
    """A number as messages print it: 1.08, -0.333333, nan."""
    x = x.item() if isinstance(x, torch.Tensor) else x
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def _same(got, theirs):
    """Is a student's quantity what a known mistake gives?"""
    if isinstance(theirs, torch.Tensor) and isinstance(got, torch.Tensor):
        got = got.detach().cpu()
        return got.shape == theirs.shape and torch.allclose(
            got.double(), theirs.double(), rtol=SAME_MISTAKE, atol=SAME_MISTAKE, equal_nan=True)
    if isinstance(theirs, float) and isinstance(got, float):
        return abs(theirs - got) <= SAME_MISTAKE * max(1.0, abs(theirs))
    return type(got) is type(theirs) and got == theirs


def _is_evidence(value):
    """Could this value hardly be hit by chance? Flags, zeros and ones could."""
    if isinstance(value, torch.Tensor):
        return value.dtype.is_floating_point and len(value.detach().reshape(-1).unique()) > 1
    return isinstance(value, float) and value not in (0.0, 1.0)
