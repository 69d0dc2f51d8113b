"""A class of submissions: found, judged by a pool of workers, written as grades.csv, gradebook.db and feedback."""

import contextlib
import csv
import functools
import html
import io
import multiprocessing
import os
import secrets
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import nbformat

from grading import intake, notebooks
from grading.judge import INFRASTRUCTURE, Judge, PieceVerdict, Verdict
from grading.sandbox import Sandbox, SandboxError

SECRET_FILE = notebooks.ROOT / ".course_secret"


class BadInput(ValueError):
    """The command cannot start; the message names what is wrong and the way out."""


def grade(folder, assignment, out, workers=None, progress=None):
    """Grades FOLDER/STUDENT/ASSIGNMENT.ipynb of every student into OUT; returns the list of Verdict, by student.

    workers    processes, each with a sandbox of its own; None: one per core
    progress   called with (done, total, verdict) after each submission
    raises     BadInput
    """
    folder, out = Path(folder), Path(out)
    release = _released(assignment)
    students = find(folder, out)
    secret = course_secret()
    out.mkdir(parents=True, exist_ok=True)
    submissions = {name: intake.read(folder / name / f"{assignment}.ipynb", printable(name), release) for name in students}
    verdicts = judge_all(list(submissions.values()), assignment, secret, workers, progress)
    write_results(out, assignment, verdicts, list(submissions.values()))
    return verdicts


def find(folder, out=None):
    """Names of the students' folders. raises BadInput where there are none."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder: give the one that holds a folder for each student")
    names = sorted(path.name for path in folder.iterdir()
                   if path.is_dir() and not path.name.startswith(".") and path.resolve() != (out and out.resolve()))
    if not names:
        raise BadInput(f"{folder} holds no student's folder: put each submission into {folder}/STUDENT/ASSIGNMENT.ipynb")
    return names


def judge_all(submissions, assignment, secret, workers=None, progress=None):
    """A Verdict for each submission, in their order. A worker that dies costs nobody a grade."""
    workers = max(1, min(workers or os.cpu_count() or 1, len(submissions)))
    verdicts, attempts = {}, {s.student: 0 for s in submissions}
    with tempfile.TemporaryDirectory(prefix="ppo-grading-") as home:
        while waiting := [s for s in submissions if s.student not in verdicts]:
            pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker,
                                       (assignment, secret, home))
            with pool:
                futures = {pool.submit(_work, s): s for s in waiting}
                with contextlib.suppress(BrokenProcessPool):
                    for future in as_completed(futures):
                        verdicts[futures[future].student] = verdict = future.result()
                        if progress:
                            progress(len(verdicts), len(submissions), verdict)
            for s in submissions:
                attempts[s.student] += s.student not in verdicts
                if s.student not in verdicts and attempts[s.student] >= 3:
                    verdicts[s.student] = infrastructure(s.student, assignment, "the grader's own process died three times")
    return [verdicts[s.student] for s in submissions]


def infrastructure(student, assignment, why):
    """The verdict where a fault of ours kept a submission from being judged: no score at all."""
    points = notebooks.points(_released(assignment))
    pieces = {name: PieceVerdict(float(value), 0.0, why, html.escape(why)) for name, value in points.items()}
    return Verdict(student, assignment, INFRASTRUCTURE, pieces, [why])


def judge_notebook(assignment, student, nb):
    """Judges one notebook that is in memory already, in a sandbox that stays open for the next one."""
    data = nbformat.writes(nb).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{assignment}.ipynb"
        path.write_bytes(data)
        submission = intake.read(path, student, _released(assignment))
    return _standing_judge(assignment).judge(submission)


def course_secret():
    """The key of the questions: from PPO_COURSE_SECRET, or from a file that is made at first use and stays here."""
    if value := os.environ.get("PPO_COURSE_SECRET"):
        return value.encode()
    if not SECRET_FILE.exists():
        with open(os.open(SECRET_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
    return SECRET_FILE.read_text().strip().encode()


def write_results(out, assignment, verdicts, submissions, timestamps=None):
    """grades.csv, gradebook.db, course/ and feedback/ in OUT."""
    from grading import feedback, gradebook
    release = _released(assignment)
    judged = [v for v in verdicts if v.status != INFRASTRUCTURE]
    rebuilt = {s.student: intake.rebuild(release, s) for s in submissions}
    failed = gradebook.write(out, assignment, judged, rebuilt, timestamps)
    shutil.rmtree(out / "feedback", ignore_errors=True)
    (out / "feedback").mkdir()
    for verdict, submission in zip(verdicts, submissions):
        if verdict.student in failed:
            verdict.status = INFRASTRUCTURE
            verdict.notes.append(failed[verdict.student])
        page = feedback.page(verdict, submission.answers)
        (out / "feedback" / f"{verdict.student}.html").write_text(page, encoding="utf-8")
    (out / "grades.csv").write_text(grades_csv(assignment, verdicts), encoding="utf-8")


def grades_csv(assignment, verdicts):
    """One row per student: student, assignment, status, score, max_score, then the score of each piece."""
    pieces = list(notebooks.points(_released(assignment)))
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(["student", "assignment", "status", "score", "max_score", *pieces])
    for v in verdicts:
        unknown = v.status == INFRASTRUCTURE
        table.writerow([v.student, assignment, v.status, "" if unknown else v.score, v.max_score,
                        *("" if unknown else v.pieces[piece].score for piece in pieces)])
    return buffer.getvalue()


def printable(name):
    """A folder's name as text that every file format takes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


class Progress:
    """One line that counts submissions, with the rate and the time left; plain lines where nobody watches."""

    def __init__(self):
        self._started = time.monotonic()

    def __call__(self, done, total, verdict):
        seconds = time.monotonic() - self._started
        left = seconds / done * (total - done)
        line = (f"{done}/{total} submissions, {done / seconds * 60:.0f} a minute, {left:.0f} s left: "
                f"{verdict.student} {verdict.status}")
        if sys.stdout.isatty():
            print(f"\r\033[K{line[:110]}", end="\n" if done == total else "", flush=True)
        elif done == total or done % max(1, total // 10) == 0:
            print(line, flush=True)


_worker = {}


def _start_worker(assignment, secret, home):
    import torch
    torch.set_num_threads(1)
    _worker["assignment"] = assignment
    tempfile.tempdir = home  # the parent cleans up after a worker that was killed
    try:
        _worker["sandbox"] = sandbox = Sandbox().__enter__()
        _worker["judge"] = Judge(assignment, secret, sandbox)
    except SandboxError as error:
        _worker["error"] = str(error)


def _work(submission):
    if "judge" not in _worker:
        return infrastructure(submission.student, _worker["assignment"], _worker["error"])
    return _worker["judge"].judge(submission)


@functools.cache
def _standing_judge(assignment):
    return Judge(assignment, course_secret(), Sandbox().__enter__())


@functools.cache
def _released(assignment):
    notebooks.solution_path(assignment)  # raises for an unknown assignment
    path = notebooks.RELEASES / f"{assignment}.ipynb"
    if not path.exists():
        raise BadInput(f"notebooks/{assignment}.ipynb is missing: run `python -m grading build`")
    return notebooks.read(path)
