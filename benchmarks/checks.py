"""How good are the checks? Wrong versions caught and named, right ones accepted, faults in the training loop found.

    python -m benchmarks.checks                  writes results/checks.json and docs/checks.md
    python -m benchmarks.checks --only pieces,times --seeds 3

Parts: pieces (every known mistake and every right version, with many seeds), times, graded (through `grading grade`),
ladder (the reference climbs the probes) and loop (planted faults). Each writes its share of the results as it ends.
"""

import argparse
import json
import platform
import random
import subprocess
import sys
import time
from pathlib import Path

import torch

from benchmarks import checks_graded, checks_loop, checks_page
from benchmarks.checks_alternatives import alternatives_of
from grading import notebooks, solutions
from grading.build import expect
from grading.cases import VISIBLE_SEED, cases_of
from grading.mistakes import mistakes_of, version
from rl_checks import engine
from rl_checks.report import Report, rows_of
from rl_tests import observers_of

ROOT = Path(__file__).resolve().parent.parent
OUT, PAGE = ROOT / "results" / "checks.json", ROOT / "docs" / "checks.md"


def main(arguments=None):
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    wanted = options.only.split(",")
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for part in PARTS:
        if part not in wanted:
            continue
        started = time.process_time()
        results[part] = PARTS[part](options) | {"cpu_seconds": round(time.process_time() - started, 1)}
        results["machine"] = {"python": platform.python_version(), "torch": torch.__version__, "system": platform.system()}
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(checks_page.page(results), encoding="utf-8")
        print(f"{part}: {checks_page.summary(part, results[part])}", flush=True)


def pieces(options):
    """Every mistake and every right version of every piece, on the visible cases and on fresh ones."""
    seeds = [VISIBLE_SEED, *range(1, options.seeds)]
    mistakes, rights = {}, {}
    for assignment in notebooks.assignments():
        for name, piece in observers_of(assignment).items():
            solution = solutions.load(assignment)[piece.target or piece.name]
            for seed in seeds:
                cases = expect(assignment, piece, cases_of(assignment, name, seed))
                tried = {("right", "the solution"): solution}
                tried |= {("wrong", key): version(piece, solution, mistake.wrong)
                          for key, mistake in mistakes_of(assignment, name).items()}
                tried |= {("right", key): right for key, right in alternatives_of(assignment, piece, solution).items()}
                for (kind, key), target in tried.items():
                    findings, names, _ = engine.check(piece, target, cases)
                    passed = all(finding.status == engine.PASSED for finding in findings)
                    table = mistakes if kind == "wrong" else rights
                    row = table.setdefault(f"{assignment}/{name}/{key}", {"runs": 0, "caught": 0, "named": 0, "message": ""})
                    row["runs"] += 1
                    row["caught"] += not passed
                    row["named"] += names == [key]
                    row["message"] = row["message"] or _message(findings)
    for row in rights.values():
        row["rejected"] = row.pop("caught")
        row["misnamed"] = row.pop("named")
    return {"seeds": len(seeds), "wrong": mistakes, "right": rights, "random": randoms(options.randoms)}


def _message(findings):
    """The first thing that the report says."""
    finding = next((f for f in findings if f.status != engine.PASSED), None)
    if finding is None:
        return ""
    return finding.error or finding.differences[0].message


def randoms(count):
    """Wrong numbers that nobody thought of: how many of them are given a name?"""
    dice = random.Random(7)
    generator = torch.Generator().manual_seed(7)
    every = [(assignment, name) for assignment in notebooks.assignments() for name in observers_of(assignment)]
    full, named, tried = {}, 0, 0
    while tried < count:
        assignment, name = dice.choice(every)
        piece = observers_of(assignment)[name]
        if (assignment, name) not in full:
            full[assignment, name] = expect(assignment, piece, cases_of(assignment, name))
        cases = full[assignment, name]
        quantities = [q for q, x in cases[0].expected.items() if _is_number(x)]
        if not quantities:
            full[assignment, name] = cases
            every.remove((assignment, name))  # words only: nothing to randomise
            continue
        chosen = dice.sample(quantities, dice.randint(1, len(quantities)))
        answers = [(case, engine.Observation(engine.PASSED, {
            q: _noise(x, generator) if q in chosen and _is_number(x) else x for q, x in case.expected.items()}))
            for case in cases]
        findings = [engine.compare(piece, case, observation) for case, observation in answers]
        tried += 1
        named += bool(engine.diagnose(piece, answers, findings))
    return {"tried": tried, "named": named}


def _is_number(x):
    return isinstance(x, float) or (isinstance(x, torch.Tensor) and x.dtype.is_floating_point and x.numel() > 0)


def _noise(x, generator):
    if isinstance(x, float):
        return x + float(torch.randn((), generator=generator))
    return (x + torch.randn(x.shape, generator=generator)).to(x.dtype)


def times(options):
    """CPU-seconds of each check, of importing rl_tests, and the largest report."""
    seconds, largest = {}, ("", 0)
    for assignment in notebooks.assignments():
        for name, piece in observers_of(assignment).items():
            solution = solutions.load(assignment)[piece.target or piece.name]
            cases = expect(assignment, piece, cases_of(assignment, name))
            hints = {key: mistake.hints("answer") for key, mistake in mistakes_of(assignment, name).items()}
            best = min(_clocked(piece, solution, cases) for _ in range(3))
            seconds[f"{assignment}/{name}"] = round(best, 4)
            for key, mistake in mistakes_of(assignment, name).items():
                findings, names, _ = engine.check(piece, version(piece, solution, mistake.wrong), cases)
                size = len(Report(name, rows_of(findings, names, hints)).as_html().encode())
                largest = max(largest, (f"{assignment}/{name}/{key}", size), key=lambda pair: pair[1])
    notebook = {a: round(sum(s for key, s in seconds.items() if key.startswith(a)), 3) for a in notebooks.assignments()}
    return {"check_seconds": seconds, "notebook_seconds": notebook, "import_seconds": _import_seconds(),
            "largest_report": {"of": largest[0], "bytes": largest[1]}}


def _clocked(piece, solution, cases):
    started = time.process_time()
    engine.check(piece, solution, cases)
    return time.process_time() - started


def _import_seconds():
    """What `import rl_tests` adds to `import torch`: the best of three."""
    code = "import time, torch; t = time.perf_counter(); import rl_tests; print(time.perf_counter() - t)"
    runs = [float(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
            for _ in range(3)]
    return round(min(runs), 3)


PARTS = {"pieces": pieces, "times": times, "graded": checks_graded.graded, "ladder": checks_loop.ladder,
         "loop": checks_loop.loop}


def _parser():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas (default: all)")
    parser.add_argument("--seeds", type=int, default=20, help="of the cases (default: %(default)s)")
    parser.add_argument("--ladder-seeds", type=int, default=20, help="of the reference on the probes (default: %(default)s)")
    parser.add_argument("--randoms", type=int, default=1000, help="random wrong answers (default: %(default)s)")
    return parser


if __name__ == "__main__":
    main()
