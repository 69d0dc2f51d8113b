"""The main job, whole: `make demo` in a folder of its own, and what it must refuse."""

import csv
import dataclasses

import pytest

from grading import batch, demo, gradebook


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return out, demo.run(out)


def rows(out):
    with open(out / "grades.csv", newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_every_expectation_about_the_class_holds(graded):
    assert graded[1] == 0


def test_there_is_a_submission_for_every_mistake_and_every_way_to_break(graded):
    names = rows(graded[0]).keys()
    assert sum(name.startswith("mistake-") for name in names) >= 25
    assert {"full-solution", "untouched-release", "warns-on-stderr", "loops-for-ever", "exhausts-memory", "exits-the-process",
            "broken-json", "doubled-check-cell", "deleted-check-cell", "patches-the-checks"} <= names


def test_grades_csv_has_the_columns_of_the_contract(graded):
    table = rows(graded[0])
    columns = ["student", "assignment", "status", "score", "max_score", "compute_advantages", "compute_loss"]
    assert list(table["full-solution"])[: len(columns)] == columns
    assert (table["full-solution"]["score"], table["untouched-release"]["score"]) == ("10.0", "0.0")
    assert table["loops-for-ever"]["compute_loss"] == "4.0"


def test_every_student_has_feedback_that_names_the_mistake(graded):
    out = graded[0]
    for name in rows(out):
        assert (out / "feedback" / f"{name}.html").exists(), name
    page = (out / "feedback" / "mistake-sum_not_cut.html").read_text(encoding="utf-8")
    assert "across an episode&#x27;s end" in page or "across an episode's end" in page
    assert "not written yet" in (out / "feedback" / "untouched-release.html").read_text(encoding="utf-8")


def test_the_gradebook_agrees_with_grades_csv(graded):
    out = graded[0]
    book = gradebook.scores(out, demo.ASSIGNMENT)
    assert {name: float(row["score"]) for name, row in rows(out).items()} == book


def test_the_demo_notices_a_grade_that_is_not_as_expected(graded):
    verdict = gradebook.load_verdict(graded[0] / "course" / "verdicts", "full-solution")
    assert demo.judge_the_judge(verdict, demo.Expectation(), {"full-solution": 10.0}) == ""
    assert "status ok, expected timeout" in demo.judge_the_judge(verdict, demo.Expectation("timeout"), {"full-solution": 10.0})
    assert "compute_loss has 4 of 4" in demo.judge_the_judge(
        verdict, demo.Expectation(lost=("compute_loss",)), {"full-solution": 10.0})
    assert "gradebook.db says 9" in demo.judge_the_judge(verdict, demo.Expectation(), {"full-solution": 9.0})
    named = dataclasses.replace(verdict, pieces={"compute_loss": dataclasses.replace(
        verdict.pieces["compute_loss"], mistakes=["not_clipped"])})
    assert "named ['not_clipped']" in demo.judge_the_judge(named, demo.Expectation(), {"full-solution": 10.0})


@pytest.mark.parametrize("make, words", [
    (lambda folder: folder / "nowhere", "is not a folder"),
    (lambda folder: folder, "holds no student's folder"),
])
def test_a_folder_without_students_is_one_clear_line(tmp_path, make, words):
    with pytest.raises(batch.BadInput, match=words):
        batch.grade(make(tmp_path), demo.ASSIGNMENT, tmp_path / "out")
