"""grading/build.py: the only writer of what students get."""

import hashlib
import io
import json
import zipfile

import pytest

from grading import build, notebooks


def test_generated_files_are_what_their_sources_give():
    assert [str(path) for path in build.stale()] == []


def test_building_twice_gives_the_same_bytes():
    assert build.reference() == build.reference()
    assert build.bundle("02_lunar_lander") == build.bundle("02_lunar_lander")


@pytest.mark.parametrize("name", notebooks.assignments())
def test_a_student_notebook_has_stubs_and_no_solutions(name):
    text = build.student_notebook(name)
    assert "SOLUTION" not in text
    released = json.loads(text)
    solution = notebooks.read(notebooks.solution_path(name))
    assert len(released["cells"]) == len(solution.cells)
    for cell, original in zip(released["cells"], solution.cells):
        source = "".join(cell["source"])
        if notebooks.is_answer(original):
            assert f'raise NotImplementedError("{cell["id"]} is not written yet")' in source
            compile(source, cell["id"], "exec")
            assert "\npass" not in source
        else:
            assert source == original.source


def test_a_solution_region_becomes_one_stub_with_its_indentation():
    source = "def f(x):\n    '''Doc.'''\n    ### BEGIN SOLUTION\n    if x:\n        return 1\n    ### END SOLUTION\n\nPPO.f = f"
    assert build.stub(source, "f") == \
        "def f(x):\n    '''Doc.'''\n    raise NotImplementedError(\"f is not written yet\")\n\nPPO.f = f"


def test_an_answer_without_a_marked_solution_is_refused():
    with pytest.raises(ValueError, match="the cell f has no ### BEGIN SOLUTION"):
        build.stub("def f(x):\n    return x", "f")


@pytest.mark.parametrize("name", notebooks.assignments())
def test_a_bundle_holds_what_a_student_needs_and_nothing_of_the_grader(name):
    with zipfile.ZipFile(io.BytesIO(build.bundle(name))) as archive:
        files = {path.removeprefix(f"{name}/"): archive.read(path) for path in archive.namelist()}
    assert {f"{name}.ipynb", "rl_tests.py", "rl_checks/engine.py", "reference.json", "SHA256SUMS"} <= files.keys()
    assert not any("grading" in path or "solutions" in path or "mistakes" in path for path in files)
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, path = line.split("  ")
        assert hashlib.sha256(files[path]).hexdigest() == digest
    # The files that travel never name the grader's side: their imports point one way.
    assert not [path for path, data in files.items() if path.endswith(".py") and b"import grading" in data]


def test_hints_are_built_up_to_the_strength_that_the_instructor_chose():
    key = "lambda_missing"
    hints = {s: json.loads(build.reference(s))["02_lunar_lander"]["compute_advantages"]["hints"][key]
             for s in ("nudge", "pointer", "answer")}
    assert [len(hints[s]) for s in ("nudge", "pointer", "answer")] == [1, 2, 3]
    with pytest.raises(ValueError, match="'strong'"):
        build.reference("strong")


def test_no_mistake_ships_its_code():
    reference = json.loads(build.REFERENCE.read_text(encoding="utf-8"))
    case = reference["02_lunar_lander"]["compute_advantages"]["cases"][0]
    given = case["mistakes"]["lambda_missing"]["advantages"]
    assert set(given) == {"dtype", "shape", "data"}
