"""The way into nbgrader: its gradebook, formgrader and feedback, with the judge in the place of its executor.

JudgeExecute stands in nbgrader's chain of preprocessors where Execute stood. It never starts a kernel: it asks the
judge, and writes into every check cell the report and a plain float, which nbgrader reads as partial credit.
"""

import contextlib
import json
import logging
import os
import shutil
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute
from traitlets import Unicode
from traitlets.config import Config

from grading import notebooks
from grading.judge import PieceVerdict, Verdict

PREPROCESSORS = [
    "grading.gradebook.JudgeExecute", "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor", "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades", "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata"]


class JudgeExecute(Execute):
    """Writes verdicts into the check cells. Student code is not executed here, whatever the notebook's cells say."""

    verdicts = Unicode("", help="Folder with verdicts as STUDENT.json; empty: judge each submission now.").tag(config=True)

    def preprocess(self, nb, resources):
        assignment, student = resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        verdict = load_verdict(Path(self.verdicts), student) if self.verdicts else _judge_now(assignment, student, nb)
        for count, cell in enumerate((cell for cell in nb.cells if cell.cell_type == "code"), start=1):
            self._write(cell, count, verdict)
        return nb, resources

    def preprocess_cell(self, cell, resources, cell_index):
        raise RuntimeError("cells of a submission are never executed by nbgrader")  # a kernel would trust them

    @staticmethod
    def _write(cell, count, verdict):
        cell.outputs, cell.execution_count = [], None
        if not notebooks.is_check(cell):
            return
        piece = verdict.pieces[notebooks.grade_id(cell).removeprefix("test_")]
        cell.execution_count = count
        data = {"text/html": piece.html, "text/plain": piece.text}
        cell.outputs = [nbformat.v4.new_output("display_data", data=data),
                        nbformat.v4.new_output("execute_result", data={"text/plain": repr(float(piece.score))},
                                               execution_count=count)]


def write(out, assignment, verdicts, rebuilt):
    """Fills OUT/gradebook.db and OUT/feedback/STUDENT.html; returns {student: why} of those that nbgrader refused.

    verdicts   list of Verdict, none of them an infrastructure fault
    rebuilt    {student: NotebookNode}, the released notebook with the student's answers
    """
    course = out / "course"
    _fresh(course, out / "feedback")
    for verdict in verdicts:
        folder = course / "submitted" / verdict.student / assignment
        folder.mkdir(parents=True)
        nbformat.write(rebuilt[verdict.student], folder / f"{assignment}.ipynb")
        save_verdict(course / "verdicts", verdict)
    source = course / "source" / assignment
    source.mkdir(parents=True)
    shutil.copy(notebooks.RELEASES / f"{assignment}.ipynb", source)
    config = _config(out, course, assignment)
    with _quiet_nbgrader(out / "nbgrader.log"):
        _convert(GenerateAssignment, config)
        _convert(Autograde, config)
        _convert(GenerateFeedback, config)
    failed = {}
    for verdict in verdicts:
        page = course / "feedback" / verdict.student / assignment / f"{assignment}.html"
        if page.exists():
            shutil.move(page, out / "feedback" / f"{verdict.student}.html")
        else:
            failed[verdict.student] = "nbgrader could not record it, see nbgrader.log"
    return failed


def scores(out, assignment):
    """{student: score} as nbgrader's gradebook in OUT has them."""
    with _quiet_nbgrader(out / "nbgrader.log"), Gradebook(f"sqlite:///{(out / 'gradebook.db').resolve()}") as book:
        return {row.student_id: row.score for row in book.assignment_submissions(assignment)}


def save_verdict(folder, verdict):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{verdict.student}.json").write_text(json.dumps(asdict(verdict)), encoding="utf-8")


def load_verdict(folder, student):
    data = json.loads((folder / f"{student}.json").read_text(encoding="utf-8"))
    data["pieces"] = {name: PieceVerdict(**piece) for name, piece in data["pieces"].items()}
    return Verdict(**data)


def _judge_now(assignment, student, nb):
    """For instructors who run nbgrader's own autograde with our configuration."""
    from grading import batch
    return batch.judge_notebook(assignment, student, nb)


def _config(out, course, assignment):
    config = Config()
    config.CourseDirectory.root = str(course.resolve())
    config.CourseDirectory.db_url = f"sqlite:///{(out / 'gradebook.db').resolve()}"
    config.CourseDirectory.assignment_id = assignment
    # The released notebook is the source here: its solutions are gone already.
    config.GenerateAssignment.preprocessors = [
        "nbgrader.preprocessors.LockCells", "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.SaveCells", "nbgrader.preprocessors.CheckCellMetadata"]
    config.Autograde.autograde_preprocessors = PREPROCESSORS
    config.JudgeExecute.verdicts = str((course / "verdicts").resolve())
    for converter in ("GenerateAssignment", "Autograde", "GenerateFeedback"):
        config[converter].force = True
    config.BaseConverter.permissions = 644
    return config


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


def _fresh(course, feedback):
    for folder in (course, feedback):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


