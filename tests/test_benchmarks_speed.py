"""benchmarks.speed: turns, ratios, what is kept of a killed call, and a page for whatever is there. Nothing is timed."""

import json

import pytest

from benchmarks import contenders, recipes, speed, speed_page, train


def run(cpu_us, wall_us=1.0):
    return {"cpu_us": cpu_us, "wall_us": wall_us, "steps": 100}


MEASURED = {
    "environments/Ant-v5/ours": [run(100.0), run(200.0), run(50.0)],
    "environments/Ant-v5/SyncVectorEnv": [run(150.0), run(400.0), run(55.0)],
    "environments/Ant-v5/envpool": [{"skipped": "envpool is not installed"}],
}


def test_ratios_are_taken_within_a_repeat():
    """150 / 100 = 1.5, 400 / 200 = 2, 55 / 50 = 1.1: the median is 1.5. The medians alone would give 150 / 100 = 1.5 too,
    but a machine that is twice as slow in one repeat would spoil them."""
    row = speed.summary(MEASURED)["environments"]["Ant-v5"]["SyncVectorEnv"]
    assert row["cpu_us"] == {"median": 150.0, "lowest": 55.0, "highest": 400.0, "times_ours": 1.5}
    assert row["repeats"] == 3


def test_a_peer_that_is_not_installed_is_told_and_not_counted():
    assert speed.summary(MEASURED)["environments"]["Ant-v5"]["envpool"] == {"skipped": "envpool is not installed"}
    if not contenders.importlib.util.find_spec("envpool"):
        assert "not installed" in contenders.measure("environments", "Ant-v5", "envpool", True)["skipped"]


def options(out, *arguments):
    return speed._parser().parse_args(["--out", str(out), *arguments])


def test_contenders_take_turns_and_a_killed_call_goes_on(tmp_path, monkeypatch):
    seen = []

    def fake(key, short):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(key[2])
        return run(1.0)

    monkeypatch.setattr(speed, "one", fake)
    monkeypatch.setattr(contenders, "PLAN", {"environments": {"Ant-v5": ("a", "ours")}})
    with pytest.raises(KeyboardInterrupt):
        speed.bench(options(tmp_path / "speed.json", "--repeats", "2"))
    assert seen == ["a", "ours", "a"]
    monkeypatch.setattr(speed, "one", lambda key, short: seen.append(key[2]) or run(2.0))
    speed.bench(options(tmp_path / "speed.json", "--repeats", "2"))
    assert seen == ["a", "ours", "a", "ours"]
    kept = json.loads((tmp_path / "speed.json").read_text())
    assert [r["cpu_us"] for r in kept["measurements"]["environments/Ant-v5/ours"]] == [1.0, 2.0]


def test_a_short_measurement_of_our_environments_works():
    measured = contenders.measure("environments", "CartPole-v1", "ours", True)
    assert measured["cpu_us"] > 0 and measured["steps"] == 10 * contenders.NUM_ENVS


def test_the_page_names_numbers_ranges_and_what_was_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(speed_page, "PAGE", tmp_path / "speed.md")
    monkeypatch.setattr(speed_page, "PICTURES", tmp_path / "pictures")
    monkeypatch.setattr(speed_page, "ROOT", tmp_path)
    record = recipes.record_of([10.0, 20.0, 30.0], 1000, 0.2, 0.3, None)
    (tmp_path / "results").mkdir()
    record |= {"run": "Ant 3M", "seed": 1, "device": "cpu", "evaluation_mean_at": {"1000000": 5.0},
               "curve": [[500, None], [1000, 7.0]]}
    (tmp_path / "results" / "04_continuous_control.json").write_text(
        json.dumps({"what": "train", "commit": "abc", "records": [record]}))
    speed_page.write({**train.describe_machine(), "summary": speed.summary(MEASURED)})
    page = (tmp_path / "speed.md").read_text()
    assert "| Ant-v5 | SyncVectorEnv | 150 (55 – 400) | 1.5 |" in page
    assert "envpool is not installed" in page
    assert "| Ant 3M | 1 | 20 (9 – 31) | 5 at 1.0M | 0 | 200 | cpu |" in page
    assert "Nothing on this page ran on a GPU" in page
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"speed_environments.svg", "speed_learning.svg"}


def test_runs_go_to_a_dask_cluster_where_one_is_named():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster, \
            train.executor(jobs=1, cluster=cluster.scheduler_address) as pool:
        assert pool.submit(pow, 2, 5).result(timeout=30) == 32
