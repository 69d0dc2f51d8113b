"""nbgrader as it comes, without the judge: the check cells run in the student's kernel, on the visible cases.

An instructor may put a solution notebook into a course of their own and never start `python -m grading`.
"""

import os
import subprocess
import sys

import nbformat
import pytest

from grading import gradebook, notebooks
from grading.mistakes import mistakes_of

NAME = "02_lunar_lander"
WRONG = "\n\ndef compute_loss(self, *batch):\n    actor_loss, critic_loss = right(self, *batch)\n" \
        "    return actor_loss, 0.5 * critic_loss\n\n\nright, PPO.compute_loss = PPO.compute_loss, compute_loss"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """{student: score} of a course that nbgrader graded by itself, and where it is."""
    course = tmp_path_factory.mktemp("course")
    source = course / "source" / NAME
    source.mkdir(parents=True)
    solution = short(notebooks.read(notebooks.solution_path(NAME)))
    nbformat.write(solution, source / f"{NAME}.ipynb")
    nbgrader(course, "generate_assignment", NAME)
    released = notebooks.read(course / "release" / NAME / f"{NAME}.ipynb")
    wrong = short(notebooks.read(notebooks.solution_path(NAME)))
    next(cell for cell in wrong.cells if cell.id == "compute_loss").source += WRONG
    for student, notebook in {"solved": solution, "untouched": released, "half": wrong}.items():
        folder = course / "submitted" / student / NAME
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{NAME}.ipynb")
    nbgrader(course, "autograde", NAME)
    return gradebook.scores(course, NAME), course


def short(notebook):
    """Without the cells that train and draw: this is about grades."""
    notebook.cells = [cell for cell in notebook.cells if not notebooks.is_live(cell)]
    return notebook


def nbgrader(course, command, name):
    beside = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": beside + os.pathsep + os.environ["PATH"], "PYTHONPATH": str(notebooks.ROOT),
                   "IPYTHONDIR": str(course / "ipython")}
    done = subprocess.run([sys.executable, "-m", "nbgrader", command, name, f"--course-dir={course}"], cwd=course,
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_solution_gets_full_points_and_an_untouched_release_none(graded):
    assert graded[0]["solved"] == 10.0
    assert graded[0]["untouched"] == 0.0


def test_a_passing_check_shows_its_report_once_and_nothing_else(graded):
    notebook = nbformat.read(graded[1] / "autograded" / "solved" / NAME / f"{NAME}.ipynb", as_version=4)
    for cell in filter(notebooks.is_check, notebook.cells):
        assert [output.output_type for output in cell.outputs] == ["display_data"]
        assert "checks pass" in cell.outputs[0].data["text/plain"]


def test_a_mistake_in_one_piece_costs_that_piece(graded):
    assert graded[0]["half"] == 6.0
    text = (graded[1] / "autograded" / "half" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert mistakes_of(NAME, "compute_loss")["critic_half"].pointer in text


def test_the_release_of_nbgrader_holds_no_solution(graded):
    text = (graded[1] / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert "SOLUTION" not in text
    assert "raise NotImplementedError" in text
