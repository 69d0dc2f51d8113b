"""The gradebook that we write is the one that nbgrader's own Autograde would have written."""

import shutil
import sqlite3

import pytest
from classroom import ASSIGNMENT, FIRST, FULL, answers, release, submission

from grading import batch, gradebook, intake, notebooks, pool
from grading.judge import PieceVerdict, Verdict


def verdict(student, **lost):
    pieces = {name: PieceVerdict(points, lost.get(name, points), f"the report of {name}", f"<b>{name}</b>")
              for name, points in FULL.items()}
    return Verdict(student, ASSIGNMENT, "ok", pieces)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    out = tmp_path_factory.mktemp("graded")
    stub = next(cell.source for cell in release().cells if notebooks.grade_id(cell) == FIRST)
    submissions = [submission("ada"), submission("bob", **{FIRST: stub}), submission("späte Ähre"), submission("dan")]
    verdicts = [verdict("ada"), verdict("bob", **{FIRST: 0.0}), verdict("späte Ähre", **{FIRST: 2.5}),
                pool.infrastructure("dan", ASSIGNMENT, "our fault")]
    batch.write_results(out, ASSIGNMENT, verdicts, submissions, {"ada": "2026-11-20 10:00:00 UTC"})
    return out


def rows(out):
    """What the tables say, without the random ids."""
    with sqlite3.connect(out / "gradebook.db") as db:
        grades = db.execute("""
            select sa.student_id, sa.timestamp, bc.name, g.auto_score, g.manual_score, g.needs_manual_grade,
                   sn.late_submission_penalty
            from grade g join submitted_notebook sn on g.notebook_id = sn.id
            join submitted_assignment sa on sn.assignment_id = sa.id join base_cell bc on g.cell_id = bc.id order by 1, 3""")
        comments = db.execute("""
            select sa.student_id, bc.name, c.auto_comment from comment c join submitted_notebook sn on c.notebook_id = sn.id
            join submitted_assignment sa on sn.assignment_id = sa.id join base_cell bc on c.cell_id = bc.id order by 1, 2""")
        return grades.fetchall(), comments.fetchall()


def autograded(out):
    paths = sorted((out / "course" / "autograded").rglob("*.ipynb"))
    return {path.relative_to(out).as_posix(): notebooks.read(path) for path in paths}


def test_our_rows_and_notebooks_are_those_of_nbgraders_autograde(out, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(out, twin)
    shutil.rmtree(twin / "course" / "autograded")
    with sqlite3.connect(twin / "gradebook.db") as db:
        db.execute("update grade set auto_score = null, needs_manual_grade = 1")
        db.execute("update comment set auto_comment = 'x'")
    gradebook.autograde(twin, ASSIGNMENT)
    assert rows(twin) == rows(out)
    ours, theirs = autograded(out), autograded(twin)
    assert ours.keys() == theirs.keys() and len(ours) == 3
    for path in ours:
        assert ours[path]["cells"] == theirs[path]["cells"]


def test_an_infrastructure_fault_is_not_in_the_gradebook(out):
    assert gradebook.scores(out, ASSIGNMENT) == {"ada": 10.0, "bob": 4.0, "späte Ähre": 6.5}


def test_an_untouched_answer_is_commented_as_no_response(out):
    assert ("bob", FIRST, "No response.") in rows(out)[1] and ("ada", FIRST, None) in rows(out)[1]


def test_a_manual_grade_survives_a_regrade(out, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(out, twin)
    with sqlite3.connect(twin / "gradebook.db") as db:
        db.execute("update grade set manual_score = 3.5 where auto_score = 2.5")
    batch.write_results(twin, ASSIGNMENT, [verdict("späte Ähre", **{FIRST: 2.5})], [submission("späte Ähre")])
    assert gradebook.scores(twin, ASSIGNMENT)["späte Ähre"] == 7.5


def test_the_feedback_escapes_what_students_write(tmp_path):
    evil = "</pre><script>alert(1)</script>"
    given = intake.Submission("eve<script>", intake.OK, answers() | {FIRST: evil}, "0")
    batch.write_results(tmp_path, ASSIGNMENT, [verdict("eve<script>")], [given])
    page = (tmp_path / "feedback" / "eve<script>.html").read_text()
    assert "<script" not in page and "10 of 10 points" in page and "default-src 'none'" in page


def test_the_feedback_of_a_fault_of_ours_shows_no_score(out):
    page = (out / "feedback" / "dan.html").read_text()
    assert "no score yet" in page and "our fault" in page and "0 of" not in page


def test_a_gradebook_of_another_version_is_refused_with_a_way_out(out, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(out, twin)
    with sqlite3.connect(twin / "gradebook.db") as db:
        db.execute("update source_cell set name = 'an_older_cell' where rowid = 1")
    with pytest.raises(ValueError, match="move it away"):
        batch.write_results(twin, ASSIGNMENT, [verdict("ada")], [submission("ada")])
