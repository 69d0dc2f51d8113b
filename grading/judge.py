"""The judge: asks fresh questions about a submission and compares the answers, outside of the student's process.

Questions are drawn from HMAC(course secret, submission hash, piece): different for everyone, the same on a regrade.
Only inputs are sent; what is expected is computed here, from the solution, and never leaves this process.
"""

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass, field

from grading import intake, notebooks, suspects, wire
from grading.build import expect
from grading.cases import cases_of
from grading.mistakes import mistakes_of
from grading.sandbox import ChildDied, SandboxError, TimedOut
from rl_checks import engine
from rl_checks.report import Report, Row, rows_of
from rl_tests import observers_of

OK, TIMEOUT, MEMORY, CRASHED, INFRASTRUCTURE = "ok", "timeout", "memory", "crashed", "infrastructure"
# Cell magics run the cell's own code, %run and assignments from magics define things: only a kernel does that.
NEEDS_KERNEL = re.compile(r"^\s*%%\w|^\s*%run\b|^\s*[\w, ]+=\s*[%!]\w|^(async with|async for|await|\w+ *= *await)\b",
                          re.MULTILINE)
OUT_OF_MEMORY = re.compile(r"^MemoryError|can't allocate memory|Unable to allocate|std::bad_alloc")


@dataclass(frozen=True)
class Budget:
    """Wall-clock seconds. One endless loop costs one step; the rest of the submission is still graded."""

    step_s: float = 8.0  # one cell, or one question
    total_s: float = 18.0  # everything of one submission


@dataclass
class PieceVerdict:
    """How one piece was judged: the report as text and HTML, and the keys of the mistakes that it names."""

    points: float
    score: float
    text: str
    html: str
    mistakes: list = field(default_factory=list)


@dataclass
class Verdict:
    """How one submission was judged. score is None where a fault of ours kept it from being judged."""

    student: str
    assignment: str
    status: str
    pieces: dict  # {piece: PieceVerdict}
    notes: list = field(default_factory=list)
    seconds: float = 0.0

    @property
    def score(self):
        return None if self.status == INFRASTRUCTURE else float(sum(piece.score for piece in self.pieces.values()))

    @property
    def max_score(self):
        return float(sum(piece.points for piece in self.pieces.values()))


class Judge:
    """Judges the submissions of one assignment."""

    def __init__(self, assignment, secret, sandbox, budget=None, strength="pointer"):
        self.assignment = assignment
        self.release = notebooks.read(notebooks.RELEASES / f"{assignment}.ipynb")
        self.points = notebooks.points(self.release)
        self.observers = observers_of(assignment)
        self._secret, self._sandbox, self._budget, self._strength = secret, sandbox, budget or Budget(), strength

    def judge(self, submission):
        """The Verdict on a Submission. A fault of the sandbox is a verdict too: infrastructure."""
        started = time.monotonic()
        if submission.status != intake.OK:
            return self._nothing(submission, submission.status, submission.notes[0])
        try:
            trial = _Trial(self, submission, started + self._budget.total_s)
            verdict = trial.run()
        except SandboxError as error:
            verdict = self._nothing(submission, INFRASTRUCTURE, f"not judged: {error}")
        verdict.seconds = round(time.monotonic() - started, 3)
        return verdict

    def questions(self, submission, piece):
        """The fresh cases of a piece, with what the solution gives."""
        key = f"{submission.digest}/{self.assignment}/{piece}".encode()
        seed = hmac.new(self._secret, key, hashlib.sha256).hexdigest()
        return expect(self.assignment, self.observers[piece], cases_of(self.assignment, piece, seed), with_mistakes=False)

    def verdict_on(self, piece, seen, cell_error):
        """A PieceVerdict from [(case, observation)]: all points, or none with the report that says why."""
        findings, mistakes = engine.conclude(self.observers[piece], seen)
        if any(finding.differences for finding in findings):  # only then is it worth asking every known mistake
            seen = suspects.with_mistakes(self.assignment, self.observers[piece], seen, findings)
            findings, mistakes = engine.conclude(self.observers[piece], seen)
        hints = {key: mistake.hints(self._strength) for key, mistake in mistakes_of(self.assignment, piece).items()}
        rows = rows_of(findings, mistakes, hints)
        if cell_error and any(finding.status != engine.PASSED for finding in findings):
            rows = [cell_error, *(row for row in rows if row.status != engine.NOT_WRITTEN)]
        return self.verdict(piece, rows, mistakes)

    def verdict(self, piece, rows, mistakes=()):
        """A PieceVerdict with all points if every row passed, else 0."""
        report, points = Report(piece, rows), float(self.points[piece])
        return PieceVerdict(points, points if report.passed else 0.0, report.as_text(), report.as_html(), list(mistakes))

    def _nothing(self, submission, status, why):
        row = Row(engine.NOT_WRITTEN, "nothing to judge", why)
        pieces = {name: self.verdict(name, [row]) for name in self.points}
        return Verdict(submission.student, self.assignment, status, pieces, [why])


class _Trial:
    """One submission in front of the judge. A cell or question that hangs or kills the process costs its own piece;
    a new process without it goes on with the others."""

    def __init__(self, judge, submission, deadline):
        self.judge, self.submission, self.deadline = judge, submission, deadline
        self.step_s = judge._budget.step_s
        self.cells = [(cell.id, cell.source, notebooks.grade_id(cell) if notebooks.is_answer(cell) else "")
                      for cell in notebooks.definitions(intake.rebuild(judge.release, submission))]
        self.full = any(NEEDS_KERNEL.search(answer) for answer in submission.answers.values())
        self.verdicts, self.cell_errors, self.left_out = {}, {}, set()
        self.status = OK
        self.notes = list(submission.notes)

    def run(self):
        waiting = list(self.judge.points)
        while waiting:
            before = len(waiting), len(self.left_out)
            opening = time.monotonic()
            with self.judge._sandbox.child(self.full) as child:
                self.deadline += time.monotonic() - opening  # the student has the whole budget
                self._attempt(child, waiting)
            waiting = [piece for piece in waiting if piece not in self.verdicts]
            if waiting and (time.monotonic() > self.deadline or (len(waiting), len(self.left_out)) == before):
                self._give_up(waiting, "the time for the whole submission was used up by other cells")
                break
        pieces = {piece: self.verdicts[piece] for piece in self.judge.points}
        return Verdict(self.submission.student, self.judge.assignment, self.status, pieces, self.notes)

    def _attempt(self, child, waiting):
        cell = piece = ""
        try:
            child.send({"assignment": self.judge.assignment,
                        "cells": [[cell_id, source] for cell_id, source, _ in self.cells if cell_id not in self.left_out]})
            for cell, _, _ in self.cells:
                if cell not in self.left_out:
                    self._run_cell(child, cell)
            cell = ""
            for piece in waiting:
                self.verdicts[piece] = self._question(child, piece)
        except TimedOut:
            self._trouble(cell, piece, waiting, TIMEOUT, f"did not end within {self.step_s:g} s")
        except ChildDied as error:
            self._trouble(cell, piece, waiting, CRASHED, f"ended the process ({error})")
        except wire.Refused as error:
            self._trouble(cell, piece, waiting, CRASHED, f"answered in a form that is not allowed ({error})")

    def _run_cell(self, child, cell):
        self._receive(child, lambda m: m.get("at") == cell)
        message = self._receive(child, lambda m: m.get("ran") == cell)
        error = wire.text(message.get("error", ""))
        if OUT_OF_MEMORY.search(error):
            self._worse(MEMORY)
        if error:
            self.cell_errors[cell] = Row(engine.RAISED, f"the cell {cell}", f"raised {error}{self._advice(error)}")

    def _question(self, child, piece):
        seen = []
        for case in self.judge.questions(self.submission, piece):
            nonce = secrets.token_hex(16)
            child.send({"nonce": nonce, "piece": piece, "inputs": wire.pack(case.inputs)}, self._left())
            message = self._receive(child, lambda m, nonce=nonce: m.get("nonce") == nonce)
            observation = self._observation(message)
            if observation is None and case.optional:
                continue
            if observation is not None and OUT_OF_MEMORY.search(observation.error):
                return self.judge.verdict_on(piece, [(case, observation)], self.cell_errors.get(piece))
            seen.append((case, observation or engine.Observation(engine.RAISED, error="the question was not answered")))
        return self.judge.verdict_on(piece, seen, self.cell_errors.get(piece))

    def _observation(self, message):
        """The answer of the child as an Observation, checked like any hostile input; None for "skipped"."""
        status = message.get("status")
        if status == "skipped":
            return None
        if status == engine.PASSED:
            quantities = wire.unpack(message.get("quantities"))
            if not isinstance(quantities, dict):
                raise wire.Refused("quantities without names")
            return engine.Observation(status, quantities)
        if status not in (engine.FAILED, engine.RAISED, engine.NOT_WRITTEN):
            raise wire.Refused("an unknown status")
        error = wire.text(message.get("error", ""))
        if OUT_OF_MEMORY.search(error):
            self._worse(MEMORY)
        return engine.Observation(status, error=error + self._advice(error), place=wire.text(message.get("place", "")))

    def _advice(self, error):
        """Names that only a cell of the student's own defines: the commonest surprise."""
        match = re.match(r"NameError: name '(\w+)' is not defined", error)
        if match and match[1] in self.submission.own_names:
            return f". You define {match[1]} in a cell of your own; only answer cells are graded, so move it there"
        return ""

    def _receive(self, child, expected):
        message = child.receive(self._left())
        if "broken" in message:
            raise ChildDied(wire.text(message["broken"]))
        if not expected(message):
            raise wire.Refused("a message out of turn")
        return message

    def _left(self):
        return max(0.01, min(self.step_s, self.deadline - time.monotonic()))

    def _trouble(self, cell, piece, waiting, status, what):
        """A cell or a question did not come back: it costs the piece that it belongs to, the rest is tried again."""
        self._worse(status)
        owner = next((answer for cell_id, _, answer in self.cells if cell_id == cell), "") if cell else piece
        where = f"the cell {cell}" if cell else f"calling {piece}"
        self.notes.append(f"{where} {what}")
        row = Row(engine.RAISED, where, what)
        if cell:
            self.left_out.add(cell)
        if owner in self.judge.points:
            self.verdicts[owner] = self.judge.verdict(owner, [row])
        elif not owner:  # a cell of ours failed, which only something that an answer did to the process explains
            self._give_up(waiting, f"{where} {what}")

    def _give_up(self, waiting, why):
        for piece in waiting:
            row = Row(engine.RAISED, piece, f"not judged: {why}")
            self.verdicts.setdefault(piece, self.judge.verdict(piece, [row]))

    def _worse(self, status):
        order = (OK, MEMORY, TIMEOUT, CRASHED)
        self.status = max(self.status, status, key=order.index)
