"""A submission, rebuilt on the released notebook: only the answer cells are taken from it.

So it does not matter what else a student's file holds: deleted, doubled, edited or re-tagged check cells, changed
points, forged outputs, other metadata. Whatever is wrong with the file ends in a status, never in an exception that
stops the batch.
"""

import ast
import builtins
import contextlib
import copy
import hashlib
import json
from dataclasses import dataclass, field

from grading import notebooks

MAX_BYTES = 50 * 2**20
MAX_SOURCE = 200_000  # characters of one answer
OK, MISSING, UNREADABLE = "ok", "missing", "unreadable"


@dataclass(frozen=True)
class Submission:
    """What is taken from a student.

    status    ok, missing or unreadable
    answers   {grade_id: source} of the answer cells that were found
    digest    sha256 of the file: the seed of its questions
    notes     for the student and the instructor: what was unusual about the file
    own_names names that are defined in cells of the student's own, which are not graded
    """

    student: str
    status: str
    answers: dict = field(default_factory=dict)
    digest: str = ""
    notes: tuple = ()
    own_names: frozenset = frozenset()


def read(path, student, release):
    """The Submission in the file `path`; `release` is the released notebook."""
    try:
        if path.is_symlink() or path.parent.is_symlink():
            return _unreadable(student, path, "it is a link to somewhere else")
        if not path.is_file():
            others = sorted(p.name for p in path.parent.glob("*.ipynb"))[:5] if path.parent.is_dir() else []
            seen = f"; the folder holds {', '.join(others)}" if others else ""
            return Submission(student, MISSING, notes=(f"{path.name} is missing{seen}",))
        if path.stat().st_size > MAX_BYTES:
            return _unreadable(student, path, f"it has more than {MAX_BYTES // 2**20} MiB")
        data = path.read_bytes()
    except OSError as error:
        return _unreadable(student, path, error.strerror or "it cannot be opened")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        return _unreadable(student, path, f"it is not JSON ({str(error)[:100]})")
    cells = _cells(document)
    if cells is None:
        return _unreadable(student, path, "it is JSON, but not a notebook with a list of cells")
    taken = _take(student, cells, release, hashlib.sha256(data).hexdigest())
    if not taken.answers:  # a 0 would hide that it is another notebook
        return _unreadable(student, path, "none of this assignment's answer cells is in it")
    return taken


def rebuild(release, submission):
    """The released notebook with the student's answers in it."""
    notebook = copy.deepcopy(release)
    for cell in notebook.cells:
        if notebooks.is_answer(cell) and notebooks.grade_id(cell) in submission.answers:
            cell.source = submission.answers[notebooks.grade_id(cell)]
    return notebook


def _take(student, cells, release, digest):
    wanted = {notebooks.grade_id(cell): cell for cell in release.cells if notebooks.is_answer(cell)}
    known = set(wanted) | {notebooks.grade_id(cell) for cell in release.cells} | {cell.id for cell in release.cells}
    found, own, notes = {name: [] for name in wanted}, set(), []
    for cell in cells:
        name, source = _identity(cell, wanted), _source(cell)
        if name in wanted:
            if source is None:
                notes.append(f"the answer cell {name} holds no text; it was left out")
            elif len(source) > MAX_SOURCE:
                notes.append(f"the answer cell {name} has more than {MAX_SOURCE} characters; it was left out")
            else:
                found[name].append(source)
        elif source and cell.get("cell_type") == "code" and not (isinstance(cell.get("id"), str) and cell["id"] in known):
            own |= _defined(source)
    answers = {}
    for name, sources in found.items():
        if not sources:
            notes.append(f"the answer cell {name} is missing")
            continue
        # A copied cell keeps its grade_id. What stayed as released is no answer; of the rest the last one counts, as
        # it does when the notebook runs from top to bottom.
        written = [source for source in sources if source.strip() != wanted[name].source.strip()] or sources
        answers[name] = written[-1]
        if len(sources) > 1:
            notes.append(f"the answer cell {name} is there {len(sources)} times; the last one that was edited counts")
    return Submission(student, OK, answers, digest, tuple(notes), frozenset(own - set(dir(builtins))))


def _cells(document):
    """The list of cells in a notebook of format 4 or 3, None where there is none."""
    if not isinstance(document, dict):
        return None
    cells = document.get("cells")
    if cells is None and isinstance(document.get("worksheets"), list):
        cells = [cell for sheet in document["worksheets"] if isinstance(sheet, dict)
                 for cell in (sheet.get("cells") if isinstance(sheet.get("cells"), list) else [])]
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else None


def _identity(cell, wanted):
    """Which answer cell this is, by its grade_id; by its cell id where an editor dropped the metadata."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    if not isinstance(name, str):
        name = cell.get("id")
    return name if isinstance(name, str) and name in wanted else None


def _source(cell):
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    # A lone surrogate, as "\ud800" in the JSON, can be neither compiled nor written.
    return source.encode("utf-8", "replace").decode("utf-8")


def _defined(source):
    """Names that a cell of the student's own defines at its top level."""
    names = set()
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.parse(source).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _unreadable(student, path, why):
    return Submission(student, UNREADABLE, notes=(f"{path.name} cannot be read: {why}. Open it in Jupyter, save it again, "
                                                  "and hand in that file.",))
