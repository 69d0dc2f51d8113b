"""What a killed run has finished: one line per submission, so that the next run goes on where it stopped.

A record is found again only if the student, the file's bytes and everything that could change the verdict are the same:
the grader, the questions, the solution, torch, the course secret. So a regrade does only what changed.
"""

import hashlib
import hmac
import json
from dataclasses import asdict

import torch

from grading import notebooks
from grading.gradebook import verdict_from
from grading.judge import INFRASTRUCTURE

# All that a verdict depends on, besides the submission.
SOURCES = ("grading/*.py", "grading/cases/*.py", "grading/mistakes/*.py", "rl_checks/*.py", "rl_tests.py", "rl_envs.py",
           "probe_envs.py")
# ... and what in grading/ only shows verdicts, or moves them around.
INDIFFERENT = {"__main__", "batch", "class_report", "demo", "doctor", "export", "feedback", "gradebook", "journal", "pool"}


class Journal:
    """Verdicts in the file OUT/journal.jsonl."""

    def __init__(self, path, version):
        self._path, self._version = path, version
        self._verdicts = {}
        whole = 0
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break  # the run was killed while it wrote this line
                whole += len(line)
                self._read(line)
            with open(path, "r+b") as file:
                file.truncate(whole)

    def find(self, submission):
        """The Verdict on this very submission, None where there is none yet."""
        return self._verdicts.get(self._key(submission))

    def add(self, submission, verdict):
        """Keeps a verdict, except where a fault of ours prevented one: the next run tries again."""
        if verdict.status == INFRASTRUCTURE:
            return
        record = {"key": self._key(submission), "verdict": asdict(verdict)}
        with open(self._path, "ab") as file:
            file.write(json.dumps(record).encode() + b"\n")

    def _read(self, line):
        try:
            record = json.loads(line)
            self._verdicts[record["key"]] = verdict_from(record["verdict"])
        except (ValueError, KeyError, TypeError):
            return  # a record of another version of this program: it is judged again

    def _key(self, submission):
        parts = [self._version, submission.student, submission.status, submission.digest, *submission.notes]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def version(assignment, secret, *settings):
    """A digest of everything that a verdict depends on, besides the submission."""
    digest = hashlib.sha256(f"{torch.__version__} {settings}".encode())
    files = [path for pattern in SOURCES for path in notebooks.ROOT.glob(pattern) if path.stem not in INDIFFERENT]
    for path in sorted([*files, notebooks.solution_path(assignment), notebooks.RELEASES / f"{assignment}.ipynb"]):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return hmac.new(secret, digest.digest(), hashlib.sha256).hexdigest()
