"""results/checks.json as a page, docs/checks.md, and as a line for the terminal."""

HEAD = """# How good are the checks?

Written by `python -m benchmarks.checks` from `results/checks.json`; do not edit. A *wrong version* is a mistake that
students make, planted by us. *Caught*: the check does not pass. *Named*: the report names this mistake and no other.
"""


def page(results):
    """The text of docs/checks.md."""
    parts = [HEAD]
    for name, writer in (("pieces", _pieces), ("ladder", _ladder), ("loop", _loop), ("graded", _graded), ("times", _times)):
        if name in results:
            parts.append(writer(results[name]))
    if "pieces" in results:
        parts.append(_every_mistake(results["pieces"]))
    return "\n".join(parts)


def summary(part, result):
    """One line."""
    if part == "pieces":
        wrong, right = result["wrong"], result["right"]
        return (f"{_total(wrong, 'caught')} of {_total(wrong, 'runs')} runs of {len(wrong)} wrong versions caught, "
                f"{_total(wrong, 'named')} named; {_total(right, 'rejected')} of {_total(right, 'runs')} runs of {len(right)} "
                f"right versions rejected; {result['random']['named']} of {result['random']['tried']} random answers named")
    if part == "ladder":
        return f"{len(result['failed'])} failures in {result['seeds']} ladders, {result['seconds_each']} CPU-s each"
    if part == "loop":
        return f"{result['found']} of {result['planted']} faults found"
    if part == "graded":
        return (f"solution {result['solution']:g} of {result['max_score']:g}, release {result['release']:g}, "
                f"{len(result['not_as_expected'])} of {result['submissions']} submissions not as expected")
    return (f"slowest check {max(result['check_seconds'].values())} s, import {result['import_seconds']} s, "
            f"largest report {result['largest_report']['bytes']} bytes")


def _total(rows, key):
    return sum(row[key] for row in rows.values())


def _pieces(result):
    lines = ["## Pieces\n", f"{summary('pieces', result)}. {result['seeds']} seeds, the visible cases among them.\n",
             "| piece | wrong versions | caught | named | right versions | rejected |", "|---|---:|---:|---:|---:|---:|"]
    names = dict.fromkeys(key.rsplit("/", 1)[0] for key in [*result["wrong"], *result["right"]])
    for name in names:
        wrong, right = ({key: row for key, row in result[kind].items() if key.rsplit("/", 1)[0] == name}
                        for kind in ("wrong", "right"))
        lines.append(f"| {name} | {len(wrong)} | {_share(wrong, 'caught')} | {_share(wrong, 'named')} | {len(right)} | "
                     f"{_total(right, 'rejected')} |")
    return "\n".join(lines) + "\n"


def _share(rows, key):
    return f"{100 * _total(rows, key) / _total(rows, 'runs'):.1f} %" if rows else ""


def _ladder(result):
    lines = ["## The ladder of probes\n", f"The reference: {summary('ladder', result)}.\n",
             "| what | known | tolerance | mean | spread over seeds | worst | spreads to the threshold |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for what, row in result["margins"].items():
        lines.append(f"| {what} | {row['known']:g} | {row['tolerance']:g} | {row['mean']} | {row['spread']} | {row['worst']} | "
                     f"{row['spreads_to_threshold']} |")
    lines += [f"- seed {row['seed']}, {row['probe']}: {'; '.join(row['seen'] + row['recorder'])}{row['error']}"
              for row in result["failed"]]
    return "\n".join(lines) + "\n"


def _loop(result):
    lines = ["## Faults in the training loop\n",
             f"{summary('loop', result)}: by the flight recorder within 8 updates of CartPole, or else by the first probe "
             "that fails.\n", "| fault | found by | what is said |", "|---|---|---|"]
    lines += [f"| {name} | {row['by'] or '**not found**'} | {_cell(row['message'])} |"
              for name, row in result["faults"].items()]
    return "\n".join(lines) + "\n"


def _graded(result):
    lines = ["## Through the grader\n", f"{summary('graded', result)}"
             f"{'' if result['sandbox'] else ' (without a sandbox: this machine allows none)'}. Expected: all points for the "
             "solution, none for the release, and exactly its piece lost for every edit of the solution.\n"]
    lines += [f"- {row['student']}: {row['status']}, lost {', '.join(row['lost']) or 'nothing'}"
              for row in result["not_as_expected"]]
    return "\n".join(lines) + "\n"


def _times(result):
    lines = ["## Times\n", f"{summary('times', result)}. CPU-seconds, best of three, one thread.\n",
             "| notebook | all its checks | slowest check |", "|---|---:|---:|"]
    for name, seconds in result["notebook_seconds"].items():
        slowest = max(s for key, s in result["check_seconds"].items() if key.startswith(name))
        lines.append(f"| {name} | {seconds} s | {slowest} s |")
    return "\n".join(lines) + "\n"


def _every_mistake(result):
    lines = ["## Every wrong version\n", "| wrong version | caught | named | by the message |", "|---|---:|---:|---|"]
    lines += [f"| {key} | {row['caught']}/{row['runs']} | {row['named']}/{row['runs']} | {_cell(row['message'])} |"
              for key, row in result["wrong"].items()]
    return "\n".join(lines) + "\n"


def _cell(text):
    return text.replace("|", "\\|").replace("\n", " ")[:160]
