"""benchmarks.train: what is written, what is kept of a killed run, what a goal means. Nothing is trained to the end."""

import json

import pytest

from benchmarks import recipes, train
from benchmarks.recipes import Recipe

NAME = "02_lunar_lander"


def record(run, seed, mean=280.0, cpu_seconds=30.0):
    made = recipes.record_of([mean - 10, mean, mean + 10], 300_000, cpu_seconds, cpu_seconds, (100_000, 10.0))
    return {"run": run, "seed": seed, **made}


def test_a_record_holds_the_mean_and_its_95_percent_interval():
    # Returns 10, 20, 30: mean 20, standard deviation 10, standard error 10 / sqrt 3 = 5.77, times 1.96 = 11.3.
    evaluation = recipes.record_of([10, 20, 30], 1000, 0.1, 0.2, None)["evaluation"]
    assert evaluation["mean"] == 20.0
    assert evaluation["interval_95"] == [8.7, 31.3]


def test_a_record_counts_microseconds_a_step():
    assert recipes.record_of([1, 2], 500_000, 50.0, 60.0, None)["cpu_us_per_step"] == 100.0


def test_a_goal_counts_the_seeds_that_reach_it():
    recipe = Recipe(runs={}, goals={"300k": {"mean": 250, "cpu_seconds": 36}}, solved=200.0)
    records = [record("300k", 1), record("300k", 2, mean=249.0), record("300k", 3, cpu_seconds=37.0), record("500k", 1)]
    goal = train.summary(recipe, records)["goals"]["300k"]
    assert (goal["seeds"], goal["seeds_with_mean"], goal["seeds_in_time"]) == (3, 2, 2)
    assert (goal["lowest_mean"], goal["most_cpu_seconds"]) == (249.0, 37.0)


def test_a_run_without_records_has_no_goal_line():
    assert train.summary(train.RECIPES[NAME], [])["goals"] == {}


@pytest.fixture
def killed(tmp_path):
    """The file that a call leaves which was killed after one of its runs."""
    out = tmp_path / "results.json"
    about = train.describe(NAME, short=True)
    train.write(out, {**about, "complete": False, "records": [record("500k", 1), record("500k", 9)]})
    return out, about


def test_finished_runs_of_a_killed_call_are_kept(killed):
    out, about = killed
    kept = train.finished_records(out, about, [("500k", 1), ("300k", 1)])
    assert [(r["run"], r["seed"]) for r in kept] == [("500k", 1)]


def test_records_of_another_program_are_not_kept(killed):
    out, about = killed
    assert train.finished_records(out, {**about, "program_sha256": "another"}, [("500k", 1)]) == []


def test_a_complete_file_is_measured_anew(killed):
    out, about = killed
    train.write(out, {**json.loads(out.read_text(encoding="utf-8")), "complete": True})
    assert train.finished_records(out, about, [("500k", 1)]) == []


def test_a_broken_file_is_measured_anew(killed):
    out, about = killed
    out.write_text("{", encoding="utf-8")
    assert train.finished_records(out, about, [("500k", 1)]) == []


def test_every_recipe_has_its_notebook_and_goals_of_its_own_runs():
    for name, recipe in train.RECIPES.items():
        assert (train.ROOT / "solutions" / f"{name}.ipynb").exists()
        assert set(recipe.goals) <= set(recipe.runs)


def test_an_unknown_assignment_is_named_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        train.main(["05_nothing"])
    message = capsys.readouterr().err
    assert "05_nothing" in message and NAME in message


def test_a_short_run_goes_from_the_notebook_to_the_file(tmp_path, monkeypatch):
    recipe = train.RECIPES[NAME]
    monkeypatch.setitem(train.RECIPES, NAME, Recipe({"300k": recipe.runs["300k"]}, recipe.goals, recipe.solved))
    results = train.bench(NAME, seeds=1, first_seed=3, jobs=1, short=True, out=tmp_path / "results.json")
    assert results["complete"]
    assert [(r["run"], r["seed"], r["steps"]) for r in results["records"]] == [("300k", 3, 8192)]
    assert results["records"][0]["cpu_seconds"] > 0
    assert len(results["records"][0]["evaluation"]["returns"]) == 2
