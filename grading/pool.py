"""Many submissions at once: worker processes on this machine, or on a Dask cluster. Each has a judge and a sandbox."""

import collections
import concurrent.futures
import html
import multiprocessing
import os
import tempfile
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from grading import journal, notebooks
from grading.judge import INFRASTRUCTURE, Budget, Judge, PieceVerdict, Verdict
from grading.sandbox import Sandbox, SandboxError

MAX_DEATHS = 3  # of a worker that had nothing but this one submission


@dataclass(frozen=True)
class Job:
    """What a worker needs to know about the batch. version: a worker of another version must not judge."""

    assignment: str
    secret: bytes
    version: str
    budget: Budget = field(default_factory=Budget)
    unsafe: bool = False
    full: bool = False


def infrastructure(student, assignment, why):
    """The verdict where a fault of ours kept a submission from being judged: no score at all."""
    points = notebooks.points(notebooks.read(notebooks.RELEASES / f"{assignment}.ipynb"))
    pieces = {name: PieceVerdict(float(value), 0.0, why, html.escape(why)) for name, value in points.items()}
    return Verdict(student, assignment, INFRASTRUCTURE, pieces, [why])


def local(submissions, job, workers):
    """Yields (submission, verdict) as they come, from `workers` processes.

    A worker that dies costs nobody a grade: whoever was being judged is tried again alone, so that one submission
    which brings the judge down cannot take others with it.
    """
    waiting, suspects = collections.deque(submissions), collections.deque()
    with tempfile.TemporaryDirectory(prefix="ppo-grading-", ignore_cleanup_errors=True) as home:
        while waiting:
            suspects.extend((yield from _round(waiting, job, min(workers, len(waiting)), home)))
            while suspects:
                yield from _alone(suspects.popleft(), job, home)


def cluster(submissions, job, address):
    """Yields (submission, verdict) as they come, from the workers of the Dask scheduler at `address`."""
    from distributed import Client, as_completed
    with Client(address) as client:
        futures = {client.submit(judge_one, job, s, pure=False): s for s in submissions}
        for future in as_completed(futures):
            submission = futures[future]
            if future.status == "finished":
                yield submission, future.result()
            else:
                why = f"its worker did not come back ({type(future.exception()).__name__})"
                yield submission, infrastructure(submission.student, job.assignment, why)


def judge_one(job, submission):
    """Judges one submission in this process; its sandbox stays open for the next one. One at a time."""
    with _lock:
        if _mine.get("job") != job:
            _close()
            try:
                _open(job)
            except (SandboxError, ValueError, OSError) as error:
                return infrastructure(submission.student, job.assignment, f"not judged: {error}")
        try:
            return _mine["judge"].judge(submission)
        except Exception as error:
            # A fault in the grader itself must cost neither this student a grade nor the others theirs.
            _close()
            why = f"not judged: the grader failed ({type(error).__name__}: {error})"
            return infrastructure(submission.student, job.assignment, why)


def _round(waiting, job, workers, home):
    """Judges until nothing waits, or a worker dies; returns whom the dead worker may have had."""
    running = {}
    pool = concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (home, os.getpid()))
    with pool:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    running[pool.submit(judge_one, job, waiting[0])] = waiting[0]
                    waiting.popleft()
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    verdict = future.result()
                    yield running.pop(future), verdict
        except BrokenProcessPool:
            return list(running.values())
    return []


def _alone(submission, job, home):
    for _ in range(MAX_DEATHS):
        one = collections.deque([submission])
        if not (yield from _round(one, job, 1, home)):
            return
    why = f"the grader's own process died {MAX_DEATHS} times over it"
    yield submission, infrastructure(submission.student, job.assignment, why)


_mine = {}
_lock = threading.Lock()  # a Dask worker may have several threads


def _open(job):
    import torch
    torch.set_num_threads(1)
    if journal.version(job.assignment, job.secret, job.budget, job.unsafe, job.full) != job.version:
        raise SandboxError("this worker has another version of the course or of torch than the one that collects grades")
    _mine["sandbox"] = Sandbox(unsafe=job.unsafe, full=job.full).__enter__()
    _mine["judge"] = Judge(job.assignment, job.secret, _mine["sandbox"], job.budget)
    _mine["job"] = job


def _close():
    if _mine:
        _mine["sandbox"].__exit__()
        _mine.clear()


def _start(home, parent):
    tempfile.tempdir = home  # the parent cleans up after a worker that was killed
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent):
    """A worker whose parent was killed would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
