"""How fast are the environments and the training, beside what people would take instead?

    pip install -e '.[bench]'                    the peers: Stable-Baselines3, envpool
    python -m benchmarks.speed                   writes results/speed.json, docs/speed.md and its plots
    python -m benchmarks.speed --only Ant-v5     one environment
    python -m benchmarks.speed --page            the page and the plots again, from the results that are there

Every measurement has a process of its own, all contenders take turns within a repeat, and every number is kept: a
killed call goes on where it stopped. What is measured, and how: contenders.py.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks import contenders, speed_page
from benchmarks.train import describe_machine, write

PACKAGES = ("torch", "gymnasium", "numpy", "box2d", "mujoco", "stable-baselines3", "envpool")
OUT = Path(__file__).resolve().parent.parent / "results" / "speed.json"


def main(arguments=None):
    options = _parser().parse_args(arguments)
    if not options.page:
        bench(options)
    speed_page.write(json.loads(options.out.read_text(encoding="utf-8")))
    return 0


def bench(options):
    """Measures what is missing in options.out, in turns."""
    about = {"what": "python -m benchmarks.speed" + (" --short" if options.short else ""), **describe_machine(PACKAGES)}
    measured = earlier(options.out, about)
    plan = [(kind, env_id, name) for kind, table in contenders.PLAN.items() for env_id, names in table.items() for name in names
            if not options.only or env_id in options.only]
    for repeat in range(options.repeats):
        for key in plan:
            runs = measured.setdefault("/".join(key), [])
            if len(runs) > repeat:
                continue
            runs.append(one(key, options.short))
            print(f"repeat {repeat + 1}: {' '.join(key)}: {runs[-1]}", flush=True)
            write(options.out, {**about, "summary": summary(measured), "measurements": measured})


def one(key, short):
    """One measurement, in a fresh process: {"cpu_us", "wall_us", "steps"} per environment step, or {"skipped": why}."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(contenders.measure, *key, short).result()


def earlier(out, about):
    """The measurements of an earlier call on the same machine with the same versions."""
    try:
        results = json.loads(Path(out).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    same = all(results.get(key) == about[key] for key in ("what", "versions", "machine"))
    return results["measurements"] if same else {}


def summary(measured):
    """{kind: {environment: {contender: {median, lowest, highest of cpu_us and wall_us, and how many times ours}}}}

    times_ours   median of the ratios within each repeat: contender / ours, so above 1 is slower than ours
    """
    table = {}
    for key, runs in measured.items():
        kind, env_id, name = key.split("/")
        ours = measured.get(f"{kind}/{env_id}/ours", [])
        row = table.setdefault(kind, {}).setdefault(env_id, {}).setdefault(name, {})
        done = [run for run in runs if "skipped" not in run]
        if not done:
            row["skipped"] = runs[-1]["skipped"] if runs else "not measured"
            continue
        for quantity in ("cpu_us", "wall_us"):
            values = [run[quantity] for run in done]
            ratios = [run[quantity] / own[quantity] for run, own in zip(runs, ours) if "skipped" not in run]
            row[quantity] = {"median": round(statistics.median(values), 2), "lowest": min(values), "highest": max(values),
                             "times_ours": round(statistics.median(ratios), 2) if ratios else None}
        row["repeats"] = len(done)
    return table


def _parser():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="how often each contender is measured (default 5)")
    parser.add_argument("--only", action="append", help="this environment only; may be given several times")
    parser.add_argument("--short", action="store_true", help="a rehearsal of a few steps")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the page and the plots again")
    parser.add_argument("--out", type=Path, default=OUT, help="the file to write (default results/speed.json)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
