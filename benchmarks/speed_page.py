"""Writes docs/speed.md and its plots out of results/speed.json and results/04_continuous_control.json."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURES = ROOT / "docs" / "speed.md", ROOT / "docs" / "pictures"
# Published PPO numbers, each by its authors' own way of evaluating.
PUBLISHED = (
    ("Stable-Baselines3, rl-zoo", "Ant", 1_000_000, 1327),
    ("CleanRL", "Ant-v4", 1_000_000, 1824),
    ("Tianshou", "Ant", 3_000_000, 4079),
    ("rl_games with envpool", "Ant-v5", 8_600_000, 4429),
)


def write(results):
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = [head(results)]
    for kind, title in (("environments", "Environments"), ("training", "Training")):
        if results["summary"].get(kind):
            plot(results["summary"][kind], PICTURES / f"speed_{kind}.svg")
            parts.append(section(results["summary"][kind], kind, title))
    training = ROOT / "results" / "04_continuous_control.json"
    if training.exists():
        parts.append(learning(json.loads(training.read_text(encoding="utf-8"))))
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def head(results):
    machine, versions = results["machine"], results["versions"]
    return f"""# How fast it is

Written by `python -m benchmarks.speed` out of `results/speed.json`; commit `{results["commit"]}`.

{machine["cores"]} cores, {machine["processor"]}, {machine["system"]};
{", ".join(f"{name} {version}" for name, version in versions.items())}.

**CPU-us** is the CPU time of all threads and processes per step of one environment, in microseconds: it hardly depends on what
else the machine does. **Wall-us** is the time that passes, and does. Medians, and in brackets the lowest and the highest of
the repeats; contenders take turns. **x ours** above 1: slower than ours, the median of the ratios within each repeat."""


def section(table, kind, title):
    notes = {"environments": "16 environments, 2 threads where threads are used, random actions. `one environment` and "
                             "`limit: mj_step` use one thread; the limit is MuJoCo's two calls and nothing else.",
             "training": "The solution notebooks' own `train()` with their settings, against Stable-Baselines3 PPO with the "
                         "rl-zoo settings (`benchmarks/contenders.py`); no GPU; the first rollout and update are not counted."}
    lines = [f"## {title}", "", notes[kind], "", f"![CPU time per step](pictures/speed_{kind}.svg)", "",
             "| environment | who | CPU-us | x ours | wall-us | x ours | repeats |", "|---|---|---:|---:|---:|---:|---:|"]
    for env_id, rows in table.items():
        for name, row in rows.items():
            if "skipped" in row:
                lines.append(f"| {env_id} | {name} | {row['skipped']} | | | | |")
                continue
            cells = [f"{cell(row[q])} | {row[q]['times_ours']}" for q in ("cpu_us", "wall_us")]
            lines.append(f"| {env_id} | {name} | {' | '.join(cells)} | {row['repeats']} |")
    return "\n".join(lines)


def cell(numbers):
    digits = 0 if numbers["median"] >= 100 else 1 if numbers["median"] >= 10 else 2
    return "{:.{d}f} ({:.{d}f} – {:.{d}f})".format(numbers["median"], numbers["lowest"], numbers["highest"], d=digits)


def learning(results):
    """What the full runs reach."""
    curves(results["records"], PICTURES / "speed_learning.svg")
    lines = ["## What is learned", "", f"`{results['what']}`, commit `{results['commit']}`. 100 episodes without dice on seeds "
             "that training never saw, mean and 95 % interval; CPU time of the training, without evaluations.", "",
             "![Returns while training](pictures/speed_learning.svg)", "",
             "| run | seed | return | earlier | CPU-s | CPU-us a step | device |", "|---|---:|---:|---|---:|---:|---|"]
    for record in results["records"]:
        low, high = record["evaluation"]["interval_95"]
        earlier = ", ".join(f"{mean:,.0f} at {int(steps) / 1e6:.1f}M" for steps, mean in record["evaluation_mean_at"].items())
        reached = f"{record['evaluation']['mean']:,.0f} ({low:,.0f} – {high:,.0f})"
        lines.append(f"| {record['run']} | {record['seed']} | {reached} | {earlier} "
                     f"| {record['cpu_seconds']:,.0f} | {record['cpu_us_per_step']:.0f} | {record['device']} |")
    lines += ["", "Published, each evaluated in its authors' own way:", "",
              "| who | environment | steps | return |", "|---|---|---:|---:|"]
    lines += [f"| {who} | {env_id} | {steps / 1e6:.1f}M | {mean:,} |" for who, env_id, steps, mean in PUBLISHED]
    if all(record["device"] == "cpu" for record in results["records"]):
        lines += ["", "Nothing on this page ran on a GPU. The code chooses one where there is one; that has not been tried."]
    return "\n".join(lines)


def plot(table, path):
    """Bars of CPU time per step, one panel for each environment."""
    figure, axes = _figure(len(table), 2.4)
    for ax, (env_id, rows) in zip(axes, table.items()):
        rows = {name: row for name, row in rows.items() if "skipped" not in row}
        medians = [row["cpu_us"]["median"] for row in rows.values()]
        ranges = [[m - row["cpu_us"]["lowest"], row["cpu_us"]["highest"] - m] for m, row in zip(medians, rows.values())]
        colours = ["#d95f02" if name == "ours" else "#9aa5b1" for name in rows]
        ax.barh(list(rows), medians, xerr=list(zip(*ranges)), color=colours, ecolor="#444")
        ax.invert_yaxis()
        ax.set_title(env_id)
        ax.set_xlabel("CPU-us per step")
    _save(figure, path)


def curves(records, path):
    names = list(dict.fromkeys(record["run"] for record in records))
    figure, axes = _figure(len(names), 3.0)
    for ax, name in zip(axes, names):
        for record in records:
            if record["run"] == name:
                steps, returns = zip(*[(s / 1e6, r) for s, r in record["curve"] if r is not None])
                ax.plot(steps, returns, label=f"seed {record['seed']}", linewidth=1)
        ax.set_title(name)
        ax.set_xlabel("million steps")
        ax.set_ylabel("mean return of 100 episodes")
        ax.legend()
    _save(figure, path)


def _figure(panels, height):
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "speed"  # the same bytes for the same numbers
    import matplotlib.pyplot as plt

    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, height * rows), squeeze=False, layout="constrained")
    for ax in axes.flat[panels:]:
        ax.axis("off")
    return figure, axes.flat


def _save(figure, path):
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
