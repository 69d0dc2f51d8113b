"""The training loop of 03_ppo_details: the reference on the ladder of probes, and faults planted in it."""

import hashlib
import json
import statistics
import time
from pathlib import Path

from benchmarks.ppo_faults import FAULTS, broken
from grading import solutions
from rl_checks import engine, probes
from rl_checks.recorder import listening

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "build" / "checks"
# A few updates of CartPole: its observations are all different, so the flight recorder sees most there. With unscaled
# rewards gradients are long enough to be clipped.
FLIGHT = {"env_id": "CartPole-v1", "total_timesteps": 4096, "num_envs": 8, "num_steps": 64, "num_minibatches": 2,
          "learning_rate": 1e-3, "reward_scale": 1.0, "log_dir": ""}


def ladder(options):
    """The reference climbs every rung, with many seeds; also how far its answers lie from the thresholds."""
    train_ppo = solutions.load("03_ppo_details")["train_ppo"]
    failed, seconds, seen = [], [], {}
    for seed in range(1, options.ladder_seeds + 1):
        started = time.process_time()
        climbs = probes.ladder(train_ppo, continuous=True, seed=seed)
        seconds.append(time.process_time() - started)
        for climb in climbs:
            if climb.status != engine.PASSED:
                failed.append({"seed": seed, "probe": climb.rung.probe, "seen": [s for s, ok in climb.seen if not ok],
                               "recorder": [finding.key for finding in climb.findings], "error": climb.error})
            for sentence, _ in climb.seen:
                what, number = sentence.split(" = ")[:2]
                if not number.startswith("("):
                    seen.setdefault(f"{climb.rung.probe}: {what}", []).append(number)
    margins = {what: _margin(numbers) for what, numbers in seen.items()}
    return {"seeds": options.ladder_seeds, "failed": failed, "seconds_each": round(statistics.mean(seconds), 1),
            "most_seconds": round(max(seconds), 1), "margins": margins}


def _margin(numbers):
    """From "0.998, known 1.000 ± 0.1" for every seed: mean, spread, and spreads between the mean and the threshold."""
    values = [float(number.split(",")[0]) for number in numbers]
    known, tolerance = (float(part) for part in numbers[0].split("known ")[1].split(" ± "))
    mean, spread = statistics.mean(values), statistics.pstdev(values)
    return {"known": known, "tolerance": tolerance, "mean": round(mean, 4), "spread": round(spread, 5),
            "worst": round(max(values, key=lambda v: abs(v - known)), 4),
            "spreads_to_threshold": round((tolerance - abs(mean - known)) / max(spread, 1e-6), 1)}


def loop(options):
    """Every planted fault: found by the flight recorder within 8 updates of CartPole, or by which probe?

    It takes a while, so what is known already is kept in build/ and not tried again until something changes.
    """
    notes = NOTES / f"loop-{_state()}.json"
    rows = json.loads(notes.read_text()) if notes.exists() else {}
    for name in FAULTS:
        if name not in rows:
            started = time.process_time()
            by, message = find(broken(name))
            rows[name] = {"by": by, "message": message, "cpu_seconds": round(time.process_time() - started, 1)}
            NOTES.mkdir(parents=True, exist_ok=True)
            notes.write_text(json.dumps(rows))
    return {"faults": rows, "found": sum(row["by"] != "" for row in rows.values()), "planted": len(rows)}


def _state():
    """Changes with everything that the outcome depends on."""
    paths = [ROOT / "solutions" / "03_ppo_details.ipynb", ROOT / "probe_envs.py", Path(__file__), *(
        ROOT / folder / name for folder, name in (("rl_checks", "probes.py"), ("rl_checks", "recorder.py"),
                                                  ("benchmarks", "ppo_faults.py")))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def find(train_ppo):
    """(who found the fault, what was said); ("", "") if nobody did."""
    PPOArgs = probes.settings_of(train_ppo)
    with listening() as findings:
        _, trouble = engine.attempt(lambda: train_ppo(PPOArgs(**FLIGHT)))
    if trouble:
        return "raised", trouble.error
    if findings:
        return "recorder", f"{findings[0].seen} ({findings[0].cause})"
    for rung in probes.LADDER:
        climb = probes.climb(train_ppo, rung)
        if climb.status != engine.PASSED:
            numbers = "; ".join(sentence for sentence, ok in climb.seen if not ok)
            return rung.probe, numbers or climb.error or "; ".join(finding.seen for finding in climb.findings)
    return "", ""
