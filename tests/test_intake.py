"""Whatever a student's file looks like, it ends in a status, and only answer cells are taken from it."""

import json
import os

import nbformat
import pytest
from classroom import ASSIGNMENT, FIRST, SECOND, answers, hand_in, notebook, release

from grading import intake, notebooks


def read(tmp_path, nb):
    return intake.read(hand_in(tmp_path, "ada", nb), "ada", release())


def edited(edit):
    nb = json.loads(nbformat.writes(notebook()))
    edit(nb["cells"])
    return json.dumps(nb)


def cell(cells, name):
    return next(c for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


def test_a_whole_solution_is_taken(tmp_path):
    taken = read(tmp_path, notebook())
    assert taken.status == intake.OK and taken.answers == answers() and not taken.notes


def test_a_missing_file_says_what_the_folder_holds(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "lunar (1).ipynb").write_text("{}")
    taken = intake.read(tmp_path / "ada" / f"{ASSIGNMENT}.ipynb", "ada", release())
    assert taken.status == intake.MISSING and "lunar (1).ipynb" in taken.notes[0]


UNREADABLE = {"empty": b"", "cut": b'{"cells": [', "binary": bytes(range(256)), "no notebook": b"{}", "a list": b"[]",
              "cells are a dict": b'{"cells": {}}', "deep": b"[" * 200_000, "number": b"1", "null": b"null",
              "another notebook": b'{"cells": [{"cell_type": "code", "source": "1"}]}', "only bytes": b"\x80abc",
              "huge number": b'{"cells": ' + b"9" * 5000 + b"}"}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_a_broken_file_is_unreadable_and_says_what_to_do(tmp_path, data):
    taken = read(tmp_path, data)
    assert taken.status == intake.UNREADABLE and "save it again" in taken.notes[0]


def test_a_huge_file_is_not_read(tmp_path):
    path = hand_in(tmp_path, "ada", b"")
    os.truncate(path, intake.MAX_BYTES + 1)
    assert intake.read(path, "ada", release()).status == intake.UNREADABLE


def test_a_pipe_or_a_folder_does_not_hang_the_intake(tmp_path):
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    for name in ("pipe.ipynb", "folder.ipynb"):
        assert intake.read(tmp_path / name, "ada", release()).status == intake.MISSING


def test_a_link_to_another_file_is_not_followed(tmp_path):
    secret = hand_in(tmp_path, "bob", notebook())
    (tmp_path / "eve").mkdir()
    (tmp_path / "eve" / secret.name).symlink_to(secret)
    taken = intake.read(tmp_path / "eve" / secret.name, "eve", release())
    assert taken.status == intake.UNREADABLE and "link" in taken.notes[0]


def test_deleted_and_doubled_check_cells_do_not_matter(tmp_path):
    def edit(cells):
        cells.append(dict(cell(cells, f"test_{FIRST}"), id="again"))
        cells.remove(cell(cells, f"test_{SECOND}"))
    rebuilt = intake.rebuild(release(), read(tmp_path, edited(edit)))
    assert notebooks.points(rebuilt) == notebooks.points(release())


def test_points_tags_and_check_sources_are_the_releases(tmp_path):
    def edit(cells):
        cell(cells, f"test_{FIRST}")["metadata"]["nbgrader"]["points"] = 1000
        cell(cells, f"test_{FIRST}")["source"] = "1000.0"
        cell(cells, FIRST)["metadata"]["tags"] = ["live", "skip-execution"]
    rebuilt = intake.rebuild(release(), read(tmp_path, edited(edit)))
    for ours, theirs in zip(release().cells, rebuilt.cells):
        assert ours.metadata == theirs.metadata
        assert notebooks.is_answer(ours) or ours.source == theirs.source


def test_an_answer_without_metadata_is_found_by_its_id(tmp_path):
    taken = read(tmp_path, edited(lambda cells: cell(cells, FIRST).update(metadata={})))
    assert taken.answers == answers()


def test_of_doubled_answers_the_last_edited_one_counts_and_it_is_said(tmp_path):
    def edit(cells):
        cells.append(dict(cell(cells, FIRST), id="copy", source="x = 1"))
        cells.append(dict(cell(cells, FIRST), id="stub", source=cell(release().cells, FIRST).source))
    taken = read(tmp_path, edited(edit))
    assert taken.answers[FIRST] == "x = 1" and "3 times" in taken.notes[0]


def test_a_missing_answer_is_said_and_the_other_is_taken(tmp_path):
    taken = read(tmp_path, edited(lambda cells: cells.remove(cell(cells, FIRST))))
    assert taken.status == intake.OK and list(taken.answers) == [SECOND] and "is missing" in taken.notes[0]


def test_an_answer_of_any_wrong_kind_is_left_out(tmp_path):
    for source in (7, None, {"a": 1}, [1, 2], "x" * (intake.MAX_SOURCE + 1)):
        taken = read(tmp_path, edited(lambda cells, source=source: cell(cells, FIRST).update(source=source)))
        assert taken.status == intake.OK and FIRST not in taken.answers


def test_a_lone_surrogate_can_be_written_afterwards(tmp_path):
    taken = read(tmp_path, edited(lambda cells: cell(cells, FIRST).update(source="s = '\ud800'")))
    nbformat.write(intake.rebuild(release(), taken), tmp_path / "rebuilt.ipynb")


def test_metadata_of_any_kind_is_survived(tmp_path):
    def edit(cells):
        for i, junk in enumerate((None, 3, [], {"nbgrader": 3}, *({"nbgrader": {"grade_id": x}} for x in ([1], {}, 1)))):
            cells.insert(i, {"cell_type": "code", "metadata": junk, "source": "x"})
        cells += [None, 3, "text", []]
    assert read(tmp_path, edited(edit)).answers == answers()


def test_format_three_is_read(tmp_path):
    cells = [{"cell_type": "code", "input": source, "metadata": {"nbgrader": {"grade_id": name}}}
             for name, source in answers().items()]
    assert read(tmp_path, json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]})).answers == answers()


def test_names_of_own_cells_are_known(tmp_path):
    def edit(cells):
        cells.append({"cell_type": "code", "metadata": {}, "source": "import math as m\ndef helper(): pass\nprint = K = 3"})
    assert read(tmp_path, edited(edit)).own_names == {"m", "helper", "K"}


def test_the_digest_changes_with_the_file(tmp_path):
    assert read(tmp_path, notebook()).digest != read(tmp_path, notebook(**{FIRST: "x"})).digest
