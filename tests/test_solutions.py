"""grading/solutions.py and notebooks.py: what a solution notebook defines, without training anything."""

import time

import nbformat
import pytest

import rl_tests
from grading import notebooks, solutions


@pytest.mark.parametrize("name", notebooks.assignments())
def test_a_solution_loads_within_seconds_and_has_every_piece(name):
    started = time.process_time()
    namespace = solutions.load(name)
    assert time.process_time() - started < 20  # training would take longer
    answers = [notebooks.grade_id(cell) for cell in notebooks.read(notebooks.solution_path(name)).cells
               if notebooks.is_answer(cell)]
    observers = rl_tests.observers_of(name)
    assert answers
    assert {observers[answer].target or answer for answer in answers} <= namespace.keys()


def test_loading_twice_gives_the_same_objects_in_dicts_of_their_own():
    first, second = solutions.load("02_lunar_lander"), solutions.load("02_lunar_lander")
    assert first["PPO"] is second["PPO"]
    first["PPO"] = None
    assert solutions.load("02_lunar_lander")["PPO"] is not None


def test_an_unknown_assignment_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'02_lunar'.*02_lunar_lander"):
        solutions.load("02_lunar")


@pytest.mark.parametrize("name", notebooks.assignments())
def test_a_solution_notebook_is_in_the_one_form(name):
    path = notebooks.solution_path(name)
    notebook = notebooks.read(path)
    nbformat.validate(notebook)
    assert path.read_text(encoding="utf-8") == notebooks.dumps(notebook)


@pytest.mark.parametrize("name", notebooks.assignments())
def test_ids_of_answers_and_checks_are_the_names_of_the_pieces(name):
    notebook = notebooks.read(notebooks.solution_path(name))
    answers = [cell for cell in notebook.cells if notebooks.is_answer(cell)]
    checks = [cell for cell in notebook.cells if notebooks.is_check(cell)]
    for cell in answers + checks:
        assert cell.id == notebooks.grade_id(cell)
        assert cell.metadata.nbgrader.schema_version == 3
    assert [f"test_{cell.id}" for cell in answers] == [cell.id for cell in checks]
    assert all(cell.metadata.nbgrader.points > 0 for cell in checks)


def test_an_editor_s_traces_are_tidied_away(tmp_path):
    source = notebooks.solution_path("02_lunar_lander").read_text(encoding="utf-8")
    untidy = nbformat.reads(source, as_version=4)
    code = next(cell for cell in untidy.cells if cell.cell_type == "code")
    code.outputs, code.execution_count = [nbformat.v4.new_output("stream", text="hello")], 7
    code.metadata["collapsed"] = True
    untidy.metadata["toc"] = {"depth": 3}
    path = tmp_path / "untidy.ipynb"
    nbformat.write(untidy, path)
    assert notebooks.tidy([path]) == [path]
    assert path.read_text(encoding="utf-8") == source
    assert notebooks.tidy([path]) == []
