"""A class of submissions: found, judged, written as grades.csv, gradebook.db, feedback and a class report."""

import contextlib
import csv
import functools
import io
import os
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbgrader.utils import parse_utc

from grading import bubblewrap, class_report, feedback, gradebook, intake, journal, notebooks, pool
from grading.judge import INFRASTRUCTURE, Budget, Judge
from grading.sandbox import Sandbox

SECRET_FILE = notebooks.ROOT / ".course_secret"
UNSAFE = "none"  # what the last column of grades.csv says where there was no sandbox


class BadInput(ValueError):
    """The command cannot start; the message names what is wrong and the way out."""


def grade(folder, assignment, out, workers=None, progress=None, unsafe=False, full=False, cluster=None):
    """Grades FOLDER/STUDENT/ASSIGNMENT.ipynb of every student into OUT; returns the list of Verdict, by student.

    workers    processes, each with a sandbox of its own; None: one per core
    progress   called with (done, total, verdict) after each submission
    unsafe     no sandbox, process limits only: grades.csv says so
    full       run answers in a Jupyter kernel in the sandbox
    cluster    address of a Dask scheduler whose workers judge
    raises     BadInput
    """
    folder, out = Path(folder), Path(out)
    release = _released(assignment)
    students = find(folder, out)
    if not unsafe and not cluster and (why := bubblewrap.missing()):
        raise BadInput(f"no sandbox, so nothing is graded: {why}. `python -m grading doctor` says more; "
                       "--unsafe-no-sandbox grades without, which only a class that you trust deserves")
    secret = course_secret()
    out.mkdir(parents=True, exist_ok=True)
    with _only_one(out):
        submissions, when = [], {}
        for name in students:
            student = printable(name)
            submissions.append(_taken(folder / name / f"{assignment}.ipynb", student, release))
            when |= _timestamp(folder / name, student)
        version = journal.version(assignment, secret, Budget(), unsafe, full)
        job = pool.Job(assignment, secret, version, unsafe=unsafe, full=full)
        verdicts = judge_all(submissions, job, out, workers, progress, cluster)
        write_results(out, assignment, verdicts, submissions, when, unsafe)
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


def judge_all(submissions, job, out, workers=None, progress=None, cluster=None):
    """A Verdict for each submission, in their order. What the journal in OUT has already is not judged again."""
    kept = journal.Journal(out / "journal.jsonl", job.version)
    verdicts = {s.student: verdict for s in submissions if (verdict := kept.find(s))}
    waiting = [s for s in submissions if s.student not in verdicts]
    if waiting:
        workers = max(1, workers or os.cpu_count() or 1)
        stream = pool.cluster(waiting, job, cluster) if cluster else pool.local(waiting, job, workers)
        for submission, verdict in stream:
            kept.add(submission, verdict)
            verdicts[submission.student] = verdict
            if progress:
                progress(len(verdicts), len(submissions), verdict)
    return [verdicts[s.student] for s in submissions]


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
        with contextlib.suppress(FileExistsError), \
                open(os.open(SECRET_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
    return SECRET_FILE.read_text().strip().encode()


def write_results(out, assignment, verdicts, submissions, timestamps=None, unsafe=False):
    """grades.csv, gradebook.db, course/, feedback/ and class.html in OUT."""
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
    (out / "class.html").write_text(class_report.page(assignment, verdicts, submissions, release, unsafe), encoding="utf-8")
    fresh = out / "grades.csv.new"
    fresh.write_text(grades_csv(assignment, verdicts, unsafe), encoding="utf-8")
    fresh.replace(out / "grades.csv")  # the last step: a run that was killed leaves no half of it


def grades_csv(assignment, verdicts, unsafe=False):
    """One row per student: student, assignment, status, score, max_score, then the score of each piece.

    unsafe   a last column says that there was no sandbox
    """
    pieces = list(notebooks.points(_released(assignment)))
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(["student", "assignment", "status", "score", "max_score", *pieces, *(["sandbox"] if unsafe else [])])
    for v in verdicts:
        unknown = v.status == INFRASTRUCTURE
        table.writerow([v.student, assignment, v.status, "" if unknown else v.score, v.max_score,
                        *("" if unknown else v.pieces[piece].score for piece in pieces), *([UNSAFE] if unsafe else [])])
    return buffer.getvalue()


def printable(name):
    """A folder's name as text that every file format takes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


class Progress:
    """One line that counts submissions, with the rate and the time left; plain lines where nobody watches."""

    def __init__(self):
        self._started, self._judged = time.monotonic(), 0

    def __call__(self, done, total, verdict):
        self._judged += 1
        seconds = time.monotonic() - self._started
        left = seconds / self._judged * (total - done)
        line = (f"{done}/{total} submissions, {self._judged / seconds * 60:.0f} a minute, {left:.0f} s left: "
                f"{verdict.student} {verdict.status}")
        if sys.stdout.isatty():
            print(f"\r\033[K{line[:110]}", end="\n" if done == total else "", flush=True)
        elif done == total or done % max(1, total // 10) == 0:
            print(line, flush=True)


@contextlib.contextmanager
def _only_one(out):
    """Two runs into one folder would mix their results. The lock ends with the process, however that ends."""
    with open(out / ".lock", "w") as file:
        try:
            import fcntl
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows has no such lock
            pass
        except OSError:
            raise BadInput(f"another run is grading into {out}: wait for it, or give another --out") from None
        yield


def _taken(path, student, release):
    try:
        return intake.read(path, student, release)
    except Exception as error:
        # What the intake did not foresee is our fault: this one waits for a human, the others are graded.
        return intake.Submission(student, INFRASTRUCTURE, notes=(f"not read: {type(error).__name__}: {error}",))


def _timestamp(folder, student):
    """{student: when} where the submission came with nbgrader's timestamp.txt."""
    with contextlib.suppress(OSError, ValueError, OverflowError):
        text = (folder / "timestamp.txt").read_text(encoding="utf-8")[:100].strip()
        parse_utc(text)  # what nbgrader cannot read it would refuse the whole submission for
        return {student: text}
    return {}


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
