"""How fast a class is graded, beside stock `nbgrader autograde` on the same submissions, in the same run.

    python -m benchmarks.grading [--assignment NAME] [--submissions N] [--stock M] [--repeats R]

Both get what they need ready-made: N submissions, of which each third is right, wrong in one piece, and untouched in
one. Ours writes gradebook and feedback too; stock nbgrader runs `autograde` alone, with its own executor, as it comes.
"""

import argparse
import copy
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import torch

from grading import batch, build, notebooks
from grading.gradebook import course_config

RESULTS = notebooks.ROOT / "results" / "grading.json"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assignment", default="03_ppo_details")
    parser.add_argument("--submissions", type=int, default=100, help="for ours (default: %(default)s)")
    parser.add_argument("--stock", type=int, default=3, help="submissions for stock nbgrader (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2, help="of both, taking turns (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args(argv)
    rounds = []
    with tempfile.TemporaryDirectory(prefix="ppo-benchmark-") as folder:
        make_class(Path(folder) / "class", arguments.assignment, arguments.submissions)
        for i in range(arguments.repeats):
            ours = run_ours(Path(folder), arguments.assignment, arguments.workers)
            stock = run_stock(Path(folder), arguments.assignment, arguments.stock)
            rounds.append({"ours": ours, "stock": stock, "ratio": round(ours["per_minute"] / stock["per_minute"], 1)})
            print(f"round {i + 1}: {json.dumps(rounds[-1])}", flush=True)
    result = {
        "command": "python -m benchmarks.grading " + " ".join(sys.argv[1:]), "assignment": arguments.assignment,
        "workers": arguments.workers, "cores": os.cpu_count(), "python": platform.python_version(),
        "torch": torch.__version__, "nbgrader": "0.9.6", "machine": platform.machine(),
        "rounds": rounds, "ratio": min(r["ratio"] for r in rounds)}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"at least {result['ratio']} times stock nbgrader: {RESULTS}")


def make_class(folder, assignment, count):
    """Submissions that differ from each other: right, wrong in one piece, untouched in one."""
    solution = notebooks.read(notebooks.solution_path(assignment))
    pieces = [cell for cell in solution.cells if notebooks.is_answer(cell)]
    for i in range(count):
        notebook = copy.deepcopy(solution)
        changed = pieces[i // 3 % len(pieces)].id
        for cell in notebook.cells:
            if cell.id == changed and i % 3:
                stub = build.stub(cell.source, notebooks.grade_id(cell))
                cell.source = stub if i % 3 == 2 else stub.replace("raise NotImplementedError", "return str")
            if notebooks.is_answer(cell):
                cell.source += f"\n# submission {i}"
        path = folder / f"s{i:04d}" / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(notebook, path)


def run_ours(folder, assignment, workers):
    """Seconds for the whole class, from nothing to grades.csv, gradebook and feedback."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    verdicts = batch.grade(folder / "class", assignment, out, workers)
    seconds = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(v.status == "ok" for v in verdicts), {v.status for v in verdicts}
    return {"submissions": len(verdicts), "seconds": round(seconds, 1), "per_minute": round(len(verdicts) / seconds * 60, 1),
            "largest_process_mib": round(used.ru_maxrss / 1024),
            "workers_cpu_s": round(used.ru_utime - before.ru_utime + used.ru_stime - before.ru_stime, 1)}


def run_stock(folder, assignment, count):
    """Seconds of `nbgrader autograde` for the first submissions; its release has the same cells and visible checks."""
    course = folder / "stock"
    shutil.rmtree(course, ignore_errors=True)
    out = folder / "out"
    course.mkdir()
    source = course / "source" / assignment
    source.mkdir(parents=True)
    shutil.copy(notebooks.RELEASES / f"{assignment}.ipynb", source)
    for helper in build.HELPERS:
        path = notebooks.ROOT / helper
        if path.is_dir():
            shutil.copytree(path, source / helper, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.exists():
            shutil.copy(path, source)
    for student in sorted(path.name for path in (folder / "class").iterdir())[:count]:
        shutil.copytree(folder / "class" / student, course / "submitted" / student / assignment)
    config = course_config(out, assignment)
    (course / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.GenerateAssignment.preprocessors = {list(config.GenerateAssignment.preprocessors)!r}\n"
        "c.ExecutePreprocessor.timeout = 600\nc.Execute.timeout = 600\n", encoding="utf-8")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "RL_KIT_SHORT": "1"}

    def nbgrader(*command):
        subprocess.run([sys.executable, "-m", "nbgrader", *command], cwd=course, env=environment, check=True,
                       capture_output=True)
    nbgrader("generate_assignment", assignment)
    started = time.monotonic()
    nbgrader("autograde", assignment)
    seconds = time.monotonic() - started
    return {"submissions": count, "seconds": round(seconds, 1), "per_minute": round(count / seconds * 60, 1)}


if __name__ == "__main__":
    main()
