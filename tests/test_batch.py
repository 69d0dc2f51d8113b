"""A whole class: every submission gets a status, a killed run is taken up again, and bad input is said in one line."""

import csv
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from classroom import ASSIGNMENT, FIRST, FULL, answers, confined, hand_in, notebook, release, sandbox, submission

from grading import __main__ as command
from grading import batch, bubblewrap, feedback, fingerprints, journal, notebooks, pool
from grading.judge import PieceVerdict, Verdict

UNSAFE = not sandbox().confined


def made_class(folder):
    """Four submissions of different fates."""
    hand_in(folder, "ada", notebook())
    hand_in(folder, "bob", notebook(**{FIRST: answers()[FIRST] + "\nimport os; os._exit(1)"}))
    hand_in(folder, "cyd", b"not json")
    (folder / "dan").mkdir()
    return folder


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    made_class(folder / "in")
    verdicts = batch.grade(folder / "in", ASSIGNMENT, folder / "out", 2, unsafe=UNSAFE)
    return folder / "in", folder / "out", verdicts


def rows(out):
    with open(out / "grades.csv", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_every_submission_has_a_status_and_a_page(graded):
    _, out, _ = graded
    assert {name: row["status"] for name, row in rows(out).items()} == {
        "ada": "ok", "bob": "crashed", "cyd": "unreadable", "dan": "missing"}
    assert {name: row["score"] for name, row in rows(out).items()} == {"ada": "10.0", "bob": "4.0", "cyd": "0.0", "dan": "0.0"}
    assert {path.stem for path in (out / "feedback").iterdir()} == {"ada", "bob", "cyd", "dan"}
    assert (out / "gradebook.db").exists()


def test_the_columns_are_those_of_the_contract(graded):
    _, out, _ = graded
    header = (out / "grades.csv").read_text().splitlines()[0].split(",")
    assert header[:7] == ["student", "assignment", "status", "score", "max_score", *FULL]


def test_a_second_run_judges_nothing_again_and_gives_the_same_bytes(graded, monkeypatch):
    folder, out, _ = graded
    before = (out / "grades.csv").read_bytes()
    monkeypatch.setattr(pool, "local", lambda *a: pytest.fail("judged again"))
    batch.grade(folder, ASSIGNMENT, out, unsafe=UNSAFE)
    assert (out / "grades.csv").read_bytes() == before


def test_only_what_changed_is_judged_again(graded, tmp_path, monkeypatch):
    folder, out, verdicts = graded
    shutil.copytree(folder, tmp_path / "in")
    shutil.copytree(out, tmp_path / "out")
    hand_in(tmp_path / "in", "bob", notebook())
    asked = []

    def judge(submissions, job, workers):
        for s in submissions:
            asked.append(s.student)
            yield s, next(v for v in verdicts if v.student == s.student)
    monkeypatch.setattr(pool, "local", judge)
    batch.grade(tmp_path / "in", ASSIGNMENT, tmp_path / "out", unsafe=UNSAFE)
    assert asked == ["bob"]


def verdict(student, status="ok"):
    return Verdict(student, ASSIGNMENT, status, {n: PieceVerdict(p, p, "text", "<b>") for n, p in FULL.items()}, ["note"])


def test_the_journal_gives_back_what_it_was_given(tmp_path):
    book = journal.Journal(tmp_path / "j", "1")
    book.add(submission("ada"), verdict("ada"))
    assert journal.Journal(tmp_path / "j", "1").find(submission("ada")) == verdict("ada")
    assert journal.Journal(tmp_path / "j", "2").find(submission("ada")) is None
    assert journal.Journal(tmp_path / "j", "1").find(submission("ada", **{FIRST: "changed"})) is None


def test_the_journal_survives_a_line_that_was_cut_anywhere(tmp_path):
    path = tmp_path / "j"
    book = journal.Journal(path, "1")
    book.add(submission("ada"), verdict("ada"))
    first = path.stat().st_size
    book.add(submission("bob"), verdict("bob"))
    whole = path.read_bytes()
    for cut in random.Random(0).sample(range(first, len(whole)), 30):
        path.write_bytes(whole[:cut])
        again = journal.Journal(path, "1")
        assert again.find(submission("ada")) and again.find(submission("bob")) is None
        again.add(submission("bob"), verdict("bob"))
        assert path.read_bytes() == whole


def test_the_journal_keeps_no_fault_of_ours(tmp_path):
    book = journal.Journal(tmp_path / "j", "1")
    book.add(submission("ada"), pool.infrastructure("ada", ASSIGNMENT, "no process"))
    assert journal.Journal(tmp_path / "j", "1").find(submission("ada")) is None


def test_the_version_changes_with_the_secret_and_the_settings():
    versions = {journal.version(ASSIGNMENT, *rest) for rest in ((b"a",), (b"b",), (b"a", 1))}
    assert len(versions) == 3 and journal.version(ASSIGNMENT, b"a") in versions


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a POSIX signal")
def test_a_run_that_is_killed_at_any_moment_is_taken_up_again(tmp_path):
    """KILLS=50 in the environment for the full count; a few in every run of the tests."""
    for i in range(6):
        hand_in(tmp_path / "in", f"s{i}", notebook(**{FIRST: f"K = {i}\n" + answers()[FIRST]}))
    hand_in(tmp_path / "in", "broken", b"{")
    arguments = [sys.executable, "-m", "grading", "grade", str(tmp_path / "in"), "--assignment", ASSIGNMENT, "--workers", "2",
                 *(["--unsafe-no-sandbox"] if UNSAFE else []), "--out"]
    started = time.monotonic()
    subprocess.run([*arguments, str(tmp_path / "whole")], check=True, capture_output=True)
    usual = time.monotonic() - started
    whole = (tmp_path / "whole" / "grades.csv").read_bytes()
    chance = random.Random(1)
    for _ in range(int(os.environ.get("KILLS", "2"))):
        run = subprocess.Popen([*arguments, str(tmp_path / "out")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            run.wait(chance.uniform(0.2, 1.1) * usual)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.wait()
        subprocess.run([*arguments, str(tmp_path / "out")], check=True, capture_output=True)
        assert (tmp_path / "out" / "grades.csv").read_bytes() == whole
        shutil.rmtree(tmp_path / "out")


def _dies_over_bob(job, submission):
    if submission.student == "bob":
        os._exit(9)
    return verdict(submission.student)


def test_a_submission_that_kills_the_grader_takes_no_other_with_it(monkeypatch):
    monkeypatch.setattr(pool, "judge_one", _dies_over_bob)
    job = pool.Job(ASSIGNMENT, b"s", "1")
    names = ["ada", "bob", "cyd", "dan"]
    given = {s.student: v for s, v in pool.local([submission(name) for name in names], job, 2)}
    assert {name: v.status for name, v in given.items()} == {
        "ada": "ok", "bob": "infrastructure", "cyd": "ok", "dan": "ok"}
    assert given["bob"].score is None


def test_a_worker_of_another_version_does_not_judge():
    job = pool.Job(ASSIGNMENT, b"s", "of another time", unsafe=UNSAFE)
    given = pool.judge_one(job, submission("ada"))
    assert given.status == "infrastructure" and "another version" in given.notes[0]


def test_a_fault_of_ours_leaves_the_score_empty_in_the_table():
    text = batch.grades_csv(ASSIGNMENT, [pool.infrastructure("ada", ASSIGNMENT, "disk full")])
    row = next(csv.DictReader(io.StringIO(text)))
    assert row["status"] == "infrastructure" and row["score"] == "" and row[FIRST] == "" and row["max_score"] == "10.0"


def test_names_with_commas_quotes_and_line_breaks_stay_one_row():
    names = ['a,b"c', "line\nbreak", "ä ö", batch.printable("bad\udcff")]
    text = batch.grades_csv(ASSIGNMENT, [verdict(name) for name in names])
    assert [row["student"] for row in csv.DictReader(io.StringIO(text))] == names


def test_no_sandbox_is_said_in_the_table():
    row = next(csv.DictReader(io.StringIO(batch.grades_csv(ASSIGNMENT, [verdict("ada")], unsafe=True))))
    assert row["sandbox"] == "none"


@pytest.mark.parametrize(("arguments", "said"), [
    (["nowhere", "--assignment", ASSIGNMENT], "is not a folder"),
    (["empty", "--assignment", ASSIGNMENT], "holds no student's folder"),
    (["class", "--assignment", "09_unknown"], "unknown assignment '09_unknown'; this course has"),
    (["class", "--assignment", ASSIGNMENT, "--workers", "0"], "at least 1")])
def test_wrong_input_is_said_in_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    (tmp_path / "empty").mkdir()
    hand_in(tmp_path / "class", "ada", notebook())
    monkeypatch.chdir(tmp_path)
    assert command.main(["grade", *arguments, "--out", "out"]) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1


def test_without_a_sandbox_nothing_is_graded(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bubblewrap, "missing", lambda: "bubblewrap is not installed: apt install bubblewrap")
    hand_in(tmp_path / "class", "ada", notebook())
    assert command.main(["grade", str(tmp_path / "class"), "--assignment", ASSIGNMENT, "--out", str(tmp_path / "out")]) == 2
    assert "apt install bubblewrap" in capsys.readouterr().err
    assert not (tmp_path / "out" / "grades.csv").exists()


def test_two_runs_into_one_folder_are_kept_apart(tmp_path):
    hand_in(tmp_path / "class", "ada", notebook())
    (tmp_path / "out").mkdir()
    with batch._only_one(tmp_path / "out"), pytest.raises(batch.BadInput, match="another run"):
        batch.grade(tmp_path / "class", ASSIGNMENT, tmp_path / "out", unsafe=UNSAFE)


def test_a_timestamp_that_nobody_can_read_is_left_out(tmp_path):
    (tmp_path / "timestamp.txt").write_text("the day after tomorrow")
    assert batch._timestamp(tmp_path, "ada") == {}
    (tmp_path / "timestamp.txt").write_text("2026-11-20 10:00:00 UTC")
    assert batch._timestamp(tmp_path, "ada") == {"ada": "2026-11-20 10:00:00 UTC"}


def test_equal_answers_are_found_under_other_names_and_comments():
    renamed = answers()[FIRST].replace("rewards", "r").replace("states", "s") + "\n# by bob\n"
    stub = next(cell.source for cell in release().cells if notebooks.grade_id(cell) == FIRST)
    class_ = [submission("ada"), submission("bob", **{FIRST: renamed}), submission("cyd", **{FIRST: stub}),
              submission("dan", **{FIRST: stub}), submission("eve", **{FIRST: "x = ("})]
    found = fingerprints.groups(class_, release())
    assert (FIRST, ["ada", "bob"], False) in found
    assert not any({"cyd", "dan"} & set(students) for piece, students, _ in found if piece == FIRST)


def test_the_class_report_tells_mistakes_and_who_needs_a_human(graded):
    _, out, _ = graded
    page = (out / "class.html").read_text()
    assert "4 submissions" in page and "cyd" in page and "<script" not in page


def test_feedback_pages_of_every_status_can_be_made():
    for status in feedback.MEANINGS:
        assert ASSIGNMENT in feedback.page(verdict("ada", status), {FIRST: "x = 1"})


@confined
def test_what_one_machine_gives_another_gives_too(graded, tmp_path):
    """The same files, judged again from nothing by one worker."""
    folder, out, _ = graded
    batch.grade(folder, ASSIGNMENT, tmp_path / "out", 1)
    assert (tmp_path / "out" / "grades.csv").read_bytes() == (out / "grades.csv").read_bytes()




def test_a_fault_in_the_intake_or_in_the_judge_is_told_and_costs_nobody_a_grade(tmp_path, monkeypatch):
    hand_in(tmp_path / "in", "ada", notebook())
    monkeypatch.setattr(batch.intake, "read", lambda *a: 1 / 0)
    given = batch._taken(tmp_path / "in" / "ada" / "x.ipynb", "ada", release())
    assert given.status == "infrastructure" and "ZeroDivisionError" in given.notes[0]
    job = pool.Job(ASSIGNMENT, b"s", journal.version(ASSIGNMENT, b"s", pool.Budget(), UNSAFE, False), unsafe=UNSAFE)
    monkeypatch.setattr(pool.Judge, "judge", lambda *a: 1 / 0)
    assert pool.judge_one(job, submission("ada")).status == "infrastructure"
