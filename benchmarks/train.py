"""Trains what a solution notebook defines, with several seeds, and writes results/NAME.json.

    python -m benchmarks.train 02_lunar_lander --seeds 5

Every run has a process of its own and one torch thread, so that CPU-seconds can be compared. Each record is written as
soon as its run ends: the same command goes on where a killed one stopped. What is run, and the goals: recipes.py.
"""

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.recipes import RECIPES
from grading import notebooks

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("torch", "gymnasium", "numpy", "box2d", "mujoco")


def main(arguments=None):
    options = _parser().parse_args(arguments)
    out = options.out or ROOT / "results" / f"{options.name}.json"
    bench(options.name, options.seeds, options.first_seed, options.jobs, options.short, out, options.cluster)
    print(f"written: {out}")


def bench(name, seeds, first_seed, jobs, short, out, cluster=None):
    """Runs what is missing in `out` and writes it after every run. Returns the results, a dict."""
    recipe = RECIPES[name]
    about = describe(name, short)
    plan = [(label, seed) for seed in range(first_seed, first_seed + seeds) for label in recipe.runs]
    records = finished_records(out, about, plan)
    if records:
        print(f"{len(records)} of {len(plan)} runs are there already")
    with executor(jobs, cluster) as pool:
        missing = [key for key in plan if key not in {(record["run"], record["seed"]) for record in records}]
        running = {pool.submit(one_run, name, label, seed, short): (label, seed) for label, seed in missing}
        for future in as_completed(running):
            label, seed = running[future]
            record = {"run": label, "seed": seed, **future.result()}
            records = sorted([*records, record], key=lambda r: plan.index((r["run"], r["seed"])))
            write(out, {**about, "complete": len(records) == len(plan), **summary(recipe, records)})
            print(line(record), flush=True)
    return json.loads(Path(out).read_text(encoding="utf-8"))


@contextlib.contextmanager
def executor(jobs, cluster):
    """Where the runs go: `jobs` processes of this machine, or the workers of a Dask cluster ("tcp://host:8786")."""
    if cluster is None:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
            yield pool
        return
    try:
        from distributed import Client
    except ImportError:
        raise SystemExit("--cluster needs Dask: pip install -e '.[cluster]'") from None
    with Client(cluster) as client:
        yield client.get_executor(pure=False)


def one_run(name, label, seed, short):
    """One training run, in a process of its own."""
    import torch

    from grading import solutions

    torch.set_num_threads(1)
    return RECIPES[name].runs[label](solutions.load(name), seed, short)


def describe(name, short):
    """Which program was measured, and on what."""
    notebook = notebooks.read(notebooks.solution_path(name))
    program = "\n".join(cell.source for cell in notebooks.definitions(notebook))  # prose may change, this may not
    return {
        "what": f"python -m benchmarks.train {name}" + (" --short" if short else ""),
        "program_sha256": hashlib.sha256(program.encode()).hexdigest(),
        **describe_machine(),
        "torch_threads": 1,
    }


def describe_machine(packages=PACKAGES):
    """The commit, the versions and the machine."""
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "versions": {"python": platform.python_version(), **_versions(packages)},
        "machine": {"system": platform.system(), "processor": _processor(), "cores": os.cpu_count()},
    }


def finished_records(out, about, plan):
    """The records of an earlier, unfinished call on the same notebook with the same versions."""
    try:
        earlier = json.loads(Path(out).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    same = all(earlier.get(key) == about[key] for key in ("what", "program_sha256", "versions", "machine"))
    if earlier.get("complete", True) or not same:
        return []
    return [record for record in earlier["records"] if (record["run"], record["seed"]) in plan]


def summary(recipe, records):
    """For every goal: how many seeds reach it, and the worst of them; then the records themselves."""
    goals = {}
    for label, goal in recipe.goals.items():
        runs = [record for record in records if record["run"] == label]
        if not runs:
            continue
        means, seconds = [r["evaluation"]["mean"] for r in runs], [r["cpu_seconds"] for r in runs]
        goals[label] = {
            "goal": goal,
            "seeds": len(runs),
            "seeds_with_mean": sum(mean >= goal["mean"] for mean in means),
            "seeds_in_time": sum(second <= goal["cpu_seconds"] for second in seconds),
            "lowest_mean": min(means),
            "most_cpu_seconds": max(seconds),
        }
    return {"solved_at_return": recipe.solved, "goals": goals, "records": records}


def line(record):
    """A record as a line for people."""
    evaluation, solved = record["evaluation"], record["first_solved"]
    mean, (low, high) = evaluation["mean"], evaluation["interval_95"]
    end = f"solved after {solved['steps']:,} steps, {solved['cpu_seconds']:.0f} CPU-s" if solved else "not solved"
    return (f"{record['run']:13} seed {record['seed']:<3} mean {mean:7.1f} [{low:.0f}, {high:.0f}]"
            f"   {record['cpu_seconds']:6.1f} CPU-s, {record['cpu_us_per_step']:.0f} us a step   {end}")


def write(out, results):
    """All or nothing: a call that is killed while it writes leaves the earlier file."""
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_suffix(".part")
    fresh.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    fresh.replace(out)


def _git(*arguments):
    """What git answers; "unknown" outside a repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _versions(packages):
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _processor():
    """The processor's name, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    for row in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        if row.startswith("model name"):
            return row.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _parser():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=sorted(RECIPES), help="the assignment")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (default 5)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them (default 1)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (default 1)")
    parser.add_argument("--cluster", help="tcp://HOST:PORT of a Dask scheduler; its workers have this folder installed, "
                                          "and one thread each (dask worker --nthreads 1), so that CPU time can be compared")
    parser.add_argument("--short", action="store_true", help="a rehearsal of a few steps")
    parser.add_argument("--out", type=Path, help="the file to write (default results/NAME.json)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
