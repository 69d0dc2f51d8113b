"""Damaged notebooks, a thousand with FUZZ=1000 in the environment: each gets a status, and never a silent 0."""

import json
import os
import random
import string

import nbformat
import pytest
from classroom import ASSIGNMENT, FIRST, FULL, answers, hand_in, judge, notebook, release

from grading import batch, intake
from grading.judge import CRASHED, INFRASTRUCTURE, MEMORY, OK, TIMEOUT

COUNT = int(os.environ.get("FUZZ", "100"))
RUN = COUNT // 10  # of these are run as well; the rest is read and rebuilt
WHOLE = nbformat.writes(notebook()).encode()


def cut(chance, data):
    return data[: chance.randrange(len(data))]


def flip_bits(chance, data):
    data = bytearray(data)
    for _ in range(chance.choice([1, 3, 30, 300])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def insert_bytes(chance, data):
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(chance.choice([1, 10, 1000])) + data[at:]


def double_a_part(chance, data):
    low, high = sorted(chance.sample(range(len(data)), 2))
    return data[:high] + data[low:]


def binary(chance, data):
    return chance.randbytes(chance.choice([0, 1, 100, 10_000]))


def another_encoding(chance, data):
    return data.decode().encode(chance.choice(["utf-16", "utf-32", "utf-8-sig", "utf-16-be"]), "replace")


def edited(edit):
    def mutate(chance, data):
        document = json.loads(data)
        edit(chance, document)
        return json.dumps(document).encode()
    mutate.__name__ = edit.__name__
    return mutate


@edited
def double_cells(chance, document):
    document["cells"] += chance.choices(document["cells"], k=chance.randrange(1, 30))


@edited
def drop_cells(chance, document):
    document["cells"] = chance.sample(document["cells"], chance.randrange(len(document["cells"])))


@edited
def shuffle_cells(chance, document):
    chance.shuffle(document["cells"])


@edited
def huge(chance, document):
    chance.choice(document["cells"])["source"] = "x = 1\n" * 500_000


@edited
def another_format(chance, document):
    document["nbformat"] = chance.choice([0, 2, 3, 5, 99, "4", None, -1, 1e99])
    document["nbformat_minor"] = chance.choice([0, 99, None, "five"])
    if chance.random() < 0.3:
        document["worksheets"] = [{"cells": document.pop("cells")}]


@edited
def values_of_other_kinds(chance, document):
    junk = [None, 0, -1, 1.5, "", "text", [], {}, [[]], {"a": {}}, True, "\ud800", "\0", 10**40]
    for _ in range(chance.randrange(1, 20)):
        cell = chance.choice(document["cells"])
        if isinstance(cell, dict) and cell:
            cell[chance.choice([*cell, "metadata", "source", "id"])] = chance.choice(junk)
        if chance.random() < 0.1:
            document["cells"][chance.randrange(len(document["cells"]))] = chance.choice(junk)


@edited
def code_with_typos(chance, document):
    for cell in document["cells"]:
        source = cell["source"]
        source = "".join(source) if isinstance(source, list) else source
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(source) + 1)
            source = source[:at] + chance.choice(string.printable) + source[at + chance.randrange(3):]
        cell["source"] = source


MUTATIONS = (cut, flip_bits, insert_bytes, double_a_part, binary, another_encoding, double_cells, drop_cells, shuffle_cells,
             huge, another_format, values_of_other_kinds, code_with_typos)


def damaged(i):
    chance = random.Random(i)
    mutate = MUTATIONS[i % len(MUTATIONS)]
    try:
        return mutate.__name__, mutate(chance, WHOLE)
    except UnicodeEncodeError:
        return "binary", binary(chance, WHOLE)


def taken_from(folder, i):
    name, data = damaged(i)
    return name, intake.read(hand_in(folder, f"{name}-{i}", data), f"{name}-{i}", release())


def test_every_damaged_notebook_gets_a_status_and_can_be_rebuilt(tmp_path):
    statuses = set()
    for i in range(COUNT):
        name, taken = taken_from(tmp_path, i)
        assert taken.status in (intake.OK, intake.UNREADABLE), name
        statuses.add(taken.status)
        nbformat.validate(intake.rebuild(release(), taken))
        if taken.status != intake.OK:
            assert taken.notes, f"{name}: a 0 without a word"
        elif not set(FULL) <= taken.answers.keys():
            assert any("is missing" in note or "left out" in note for note in taken.notes), name
    assert statuses == {intake.OK, intake.UNREADABLE}


def test_damaged_notebooks_are_judged_without_an_abort(tmp_path):
    for i in range(RUN):
        name, taken = taken_from(tmp_path, i)
        verdict = judge(1.5, 4.0).judge(taken)
        assert verdict.status in (OK, CRASHED, MEMORY, TIMEOUT, intake.UNREADABLE), (name, verdict.notes)
        assert verdict.status != INFRASTRUCTURE and 0 <= verdict.score <= 10
        if verdict.score < 10:  # every point that is missing is told
            assert verdict.notes or all(p.score == p.points or p.text for p in verdict.pieces.values())


@pytest.mark.skipif(COUNT < 1000, reason="FUZZ=1000 grades the whole thousand")
def test_a_class_of_damaged_notebooks_is_graded(tmp_path):
    for i in range(COUNT):
        name, data = damaged(i)
        hand_in(tmp_path / "in", f"{name}-{i}", data)
    verdicts = batch.grade(tmp_path / "in", ASSIGNMENT, tmp_path / "out")
    assert len(verdicts) == COUNT and {v.status for v in verdicts} <= {OK, CRASHED, MEMORY, TIMEOUT, intake.UNREADABLE}


def test_whole_answers_survive_a_damaged_neighbourhood(tmp_path):
    _, taken = taken_from(tmp_path, MUTATIONS.index(shuffle_cells))
    assert taken.answers[FIRST] == answers()[FIRST]
