"""What a killed run has finished: one line per submission, so that the next run goes on where it stopped.

A record is found again only if the student, the file's bytes and everything that could change the verdict are the same:
the grader, the questions, the solution, torch, the course secret. So a regrade does only what changed.
"""

import ast
import hashlib
import hmac
import json
from dataclasses import asdict

import torch

from grading import notebooks
from grading.gradebook import verdict_from
from grading.judge import INFRASTRUCTURE


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
    for path in [*_sources(assignment), notebooks.solution_path(assignment), notebooks.RELEASES / f"{assignment}.ipynb"]:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return hmac.new(secret, digest.digest(), hashlib.sha256).hexdigest()


def _sources(assignment):
    """The modules that take part in judging an assignment: the judge's, what runs inside, and all that they import."""
    room = assignment.partition("_")[2]
    waiting = ["grading.judge", "grading.inside", "grading.namespaces", f"grading.cases.{room}", f"grading.mistakes.{room}",
               f"rl_checks.{room}"]
    found = {}
    while waiting:
        name = waiting.pop()
        path = notebooks.ROOT / (name.replace(".", "/") + ".py")
        if name in found or not path.is_file():
            continue  # of others, or a name out of a module, or a package, whose parts count one by one
        found[name] = path
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    packages = [notebooks.ROOT / name / "__init__.py" for name in ("grading/cases", "grading/mistakes", "rl_checks")]
    return sorted([*found.values(), *packages])
