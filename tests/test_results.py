"""A graded class in the forms that other systems import."""

import csv
import json

import pytest
from classroom import ASSIGNMENT, FIRST, FULL, SECOND, submission

from grading import __main__ as command
from grading import batch, class_report, pool, results
from grading.judge import PieceVerdict, Verdict


def verdict(student, status="ok", mistakes=(), **lost):
    pieces = {name: PieceVerdict(points, lost.get(name, points), f"report of {name}", "<b>", list(mistakes))
              for name, points in FULL.items()}
    return Verdict(student, ASSIGNMENT, status, pieces)


@pytest.fixture
def out(tmp_path):
    verdicts = [verdict("ada"), verdict("bob, jr.", "timeout", **{FIRST: 0.0}),
                pool.infrastructure("cyd", ASSIGNMENT, "our fault")]
    batch.write_results(tmp_path, ASSIGNMENT, verdicts, [submission(v.student) for v in verdicts])
    return tmp_path


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_canvas_gets_its_five_columns_and_the_line_of_maxima(out):
    [path] = results.export(out, "canvas")
    rows = table(path)
    assert list(rows[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", ASSIGNMENT]
    assert rows[0]["Student"].strip() == "Points Possible" and rows[0][ASSIGNMENT] == "10.0"
    assert {row["SIS Login ID"]: row[ASSIGNMENT] for row in rows[1:]} == {"ada": "10.0", "bob, jr.": "4.0", "cyd": ""}


def test_canvas_students_are_matched_with_the_roster(out, tmp_path):
    roster = tmp_path / "roster.csv"
    roster.write_text("\ufeffStudent,ID,SIS User ID,SIS Login ID,Section," + f"{ASSIGNMENT} (77)\n"
                      "Points Possible,,,,,10\nLovelace Ada,11,,ada,A,\nNobody,12,,nobody,A,3\n", encoding="utf-8")
    rows = table(results.export(out, "canvas", roster)[0])
    assert [(row["ID"], row[f"{ASSIGNMENT} (77)"]) for row in rows[1:]] == [("11", "10.0"), ("12", "")]


def test_a_file_that_is_no_roster_is_refused(out, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no gradebook exported from Canvas"):
        results.export(out, "canvas", tmp_path / "x.csv")


def test_moodle_gets_username_score_and_feedback(out):
    rows = table(results.export(out, "moodle")[0])
    assert [(row["username"], row[ASSIGNMENT]) for row in rows] == [("ada", "10.0"), ("bob, jr.", "4.0"), ("cyd", "")]
    assert rows[1][f"{ASSIGNMENT} (feedback)"] == f"timeout; {FIRST} 0.0, {SECOND} 4.0"


def test_gradescope_gets_a_file_per_student_and_no_score_where_none_is_known(out):
    given = {path.parent.name: json.loads(path.read_text()) for path in results.export(out, "gradescope")}
    assert given["ada"]["score"] == 10.0 and [test["max_score"] for test in given["ada"]["tests"]] == [6.0, 4.0]
    assert "score" not in given["cyd"]


def test_the_summary_has_a_line_for_every_student(out):
    lines = results.summary(results.read(out)).splitlines()
    assert len(lines) == 4 and lines[1].split() == ["ada", "ok", "10.0/10.0", "6.0", "4.0"] and "?/10.0" in lines[3]


def test_the_commands_say_what_is_missing(tmp_path, capsys):
    assert command.main(["export", str(tmp_path), "--to", "canvas"]) == 2
    assert command.main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("run `python -m grading grade` first") == 2


def test_the_class_report_counts_mistakes_and_warns_without_a_sandbox():
    verdicts = [verdict("ada"), verdict("<b>eve", mistakes=["sum_not_cut"], **{FIRST: 0.0})]
    page = class_report.page(ASSIGNMENT, verdicts, [submission("ada"), submission("<b>eve")], batch._released(ASSIGNMENT), True)
    assert "sum not cut" in page and "Graded without a sandbox" in page and "<b>eve" not in page and "&lt;b&gt;eve" in page
