"""The way into nbgrader: OUT/gradebook.db and OUT/course, a regular course that its formgrader and commands open.

write fills both from verdicts. JudgeExecute does the same for instructors who run `nbgrader autograde` themselves: it
stands in nbgrader's chain of preprocessors where Execute stood, never starts a kernel, asks the judge, and writes into
every check cell the report and a plain float, which nbgrader reads as partial credit. Both give the same rows.
"""

import contextlib
import copy
import json
import logging
import os
import shutil
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import nbformat
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, Execute
from traitlets import Unicode
from traitlets.config import Config

from grading import notebooks
from grading.judge import PieceVerdict, Verdict

PREPROCESSORS = [
    "grading.gradebook.JudgeExecute", "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor", "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades", "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata"]
COURSE_CONFIG = '''"""Made by `python -m grading grade`: open this folder with nbgrader, as in `nbgrader formgrader`."""

c = get_config()  # noqa: F821 - nbgrader defines it
c.CourseDirectory.root = {root!r}
c.CourseDirectory.db_url = {db_url!r}
c.Autograde.autograde_preprocessors = {preprocessors!r}
c.JudgeExecute.verdicts = {verdicts!r}
'''


class JudgeExecute(Execute):
    """Writes verdicts into the check cells. Student code is not executed here, whatever the notebook's cells say."""

    verdicts = Unicode("", help="Folder with verdicts as STUDENT.json; empty: judge each submission now.").tag(config=True)

    def preprocess(self, nb, resources):
        assignment, student = resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        verdict = load_verdict(Path(self.verdicts), student) if self.verdicts else _judge_now(assignment, student, nb)
        nb.cells = [nbformat.from_dict(cell) for cell in graded_cells(nb.cells, verdict)]
        return nb, resources

    def preprocess_cell(self, cell, resources, cell_index):
        raise RuntimeError("cells of a submission are never executed by nbgrader")  # a kernel would trust them


def graded_cells(cells, verdict):
    """The cells of a notebook with the verdict as outputs of its check cells, and no other outputs."""
    count = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            yield cell
            continue
        count += 1
        cell = {**cell, "outputs": [], "execution_count": None}
        if notebooks.is_check(cell):
            piece = verdict.pieces[notebooks.grade_id(cell).removeprefix("test_")]
            report = {"text/html": piece.html, "text/plain": piece.text}
            cell["execution_count"] = count
            cell["outputs"] = [
                {"output_type": "display_data", "data": report, "metadata": {}},
                {"output_type": "execute_result", "data": {"text/plain": repr(float(piece.score))}, "metadata": {},
                 "execution_count": count}]
        yield cell


def write(out, assignment, verdicts, rebuilt, timestamps=None):
    """Fills OUT/gradebook.db and OUT/course; returns {student: why} of those that nbgrader refused.

    verdicts    list of Verdict, none of them an infrastructure fault
    rebuilt     {student: NotebookNode}, the released notebook with the student's answers
    timestamps  {student: when it was handed in, as text}
    """
    course, failed = out / "course", {}
    shutil.rmtree(course, ignore_errors=True)
    source = course / "source" / assignment
    source.mkdir(parents=True)
    shutil.copy(notebooks.RELEASES / f"{assignment}.ipynb", source)
    config = course_config(out, assignment)
    (course / "nbgrader_config.py").write_text(COURSE_CONFIG.format(
        root=config.CourseDirectory.root, db_url=config.CourseDirectory.db_url, preprocessors=PREPROCESSORS,
        verdicts=config.JudgeExecute.verdicts), encoding="utf-8")
    with _quiet_nbgrader(out / "nbgrader.log"):
        _convert(GenerateAssignment, config)
        path = course / "release" / assignment / f"{assignment}.ipynb"
        if not path.exists():
            raise ValueError(f"nbgrader refused the released notebook, see {out / 'nbgrader.log'}: if "
                             f"{out / 'gradebook.db'} is of another version of it, move it away and run this again")
        release = notebooks.read(path)
        with Gradebook(config.CourseDirectory.db_url) as book:
            for verdict in verdicts:
                save_verdict(course / "verdicts", verdict)
                when = (timestamps or {}).get(verdict.student)
                handed_in = copy.copy(release)  # the released cells carry nbgrader's checksums
                handed_in.cells = [{**ours, "source": theirs.source}
                                   for ours, theirs in zip(release.cells, rebuilt[verdict.student].cells)]
                _write_notebook(course / "submitted", verdict.student, assignment, handed_in, when)
                try:
                    graded = _record(book, config, handed_in, verdict, when)
                    _write_notebook(course / "autograded", verdict.student, assignment, graded, when)
                except Exception as error:
                    # Whatever nbgrader or the database objects to, the others are recorded, and this one is said.
                    book.db.rollback()
                    logging.getLogger("traitlets").exception("%s", verdict.student)
                    failed[verdict.student] = f"the gradebook refused it ({type(error).__name__}), see nbgrader.log"
    return failed


def autograde(out, assignment):
    """nbgrader's own Autograde over OUT/course, with the judge's verdicts: slow, and gives what write gives."""
    with _quiet_nbgrader(out / "nbgrader.log"):
        _convert(Autograde, course_config(out, assignment))


def scores(out, assignment):
    """{student: score} as nbgrader's gradebook in OUT has them."""
    with _quiet_nbgrader(out / "nbgrader.log"), Gradebook(f"sqlite:///{(out / 'gradebook.db').resolve()}") as book:
        return {row.student_id: row.score for row in book.assignment_submissions(assignment)}


def save_verdict(folder, verdict):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{verdict.student}.json").write_text(json.dumps(asdict(verdict)), encoding="utf-8")


def load_verdict(folder, student):
    return verdict_from(json.loads((folder / f"{student}.json").read_text(encoding="utf-8")))


def verdict_from(data):
    """A Verdict from what asdict made of it."""
    return Verdict(**data | {"pieces": {name: PieceVerdict(**piece) for name, piece in data["pieces"].items()}})


def course_config(out, assignment):
    """nbgrader's settings for the course in OUT."""
    config, course = Config(), (out / "course").resolve()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.db_url = f"sqlite:///{(out / 'gradebook.db').resolve()}"
    config.CourseDirectory.assignment_id = assignment
    # The released notebook is the source here: its solutions are gone already.
    config.GenerateAssignment.preprocessors = [
        "nbgrader.preprocessors.LockCells", "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.SaveCells", "nbgrader.preprocessors.CheckCellMetadata"]
    config.Autograde.autograde_preprocessors = PREPROCESSORS
    config.JudgeExecute.verdicts = str(course / "verdicts")
    for converter in ("GenerateAssignment", "Autograde"):
        config[converter].force = True
    config.BaseConverter.permissions = 644
    return config


def _record(book, config, handed_in, verdict, timestamp):
    """What nbgrader's Autograde does for one submission, without its two conversions; returns the graded notebook."""
    assignment, student = verdict.assignment, verdict.student
    book.update_or_create_student(student)
    submission = book.update_or_create_submission(assignment, student, **({"timestamp": timestamp} if timestamp else {}))
    row = next(row for row in submission.notebooks if row.name == assignment)
    grades, comments = {g.name: g for g in row.grades}, {c.name: c for c in row.comments}
    graded = copy.copy(handed_in)
    graded.cells = [nbformat.from_dict(cell) for cell in graded_cells(handed_in.cells, verdict)]
    for cell in graded.cells:
        if utils.is_grade(cell):
            grade = grades[notebooks.grade_id(cell)]
            grade.auto_score = utils.determine_grade(cell)[0]
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
        if utils.is_solution(cell):
            untouched = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
            comments[notebooks.grade_id(cell)].auto_comment = "No response." if untouched else None
    book.db.commit()
    if submission.total_seconds_late > 0:
        resources = {"nbgrader": {"notebook": assignment, "assignment": assignment, "student": student,
                                  "db_url": config.CourseDirectory.db_url}}
        AssignLatePenalties(config=config).preprocess(graded, resources)
    return graded


def _write_notebook(root, student, assignment, notebook, timestamp):
    folder = root / student / assignment
    folder.mkdir(parents=True)
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / f"{assignment}.ipynb").write_text(text, encoding="utf-8")
    if timestamp:
        (folder / "timestamp.txt").write_text(timestamp, encoding="utf-8")


def _judge_now(assignment, student, nb):
    """For instructors who run nbgrader's own autograde with our configuration."""
    from grading import batch
    return batch.judge_notebook(assignment, student, nb)


def _convert(converter, config):
    try:
        converter(coursedir=CourseDirectory(config=config), config=config).start()
    except (NbGraderException, SystemExit) as error:  # what it could not convert is missing afterwards
        logging.getLogger("traitlets").error("%s: %s", converter.__name__, error)


@contextlib.contextmanager
def _quiet_nbgrader(path):
    """nbgrader tells every step, which belongs into a file beside the results, and it needs its tools on the PATH."""
    handler = logging.FileHandler(path, mode="a", encoding="utf-8")
    logger = logging.getLogger("traitlets")
    before, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.WARNING)
    # It starts `alembic`, which lies beside this Python and not on the PATH of who did not activate the environment.
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SQLAlchemy on nbgrader's sessions, matplotlib's font cache
            yield
    finally:
        os.environ["PATH"] = path
        logger.handlers, logger.propagate = before, propagate
        handler.close()
