"""The only writer of reference.json, notebooks/ and the student bundles.

Everything is computed from the solution notebooks: they are executed, every observer looks at the solution and at
every known mistake, and the numbers are frozen. Building twice gives the same bytes.
"""

import hashlib
import io
import json
import re
import zipfile
from dataclasses import replace

import torch

import rl_tests
from grading import notebooks, solutions
from grading.cases import cases_of
from grading.mistakes import mistakes_of, version
from rl_checks import engine
from rl_checks.values import encode

REFERENCE = notebooks.ROOT / "reference.json"
BUNDLES = notebooks.ROOT / "build" / "bundles"
STAMP = notebooks.ROOT / "build" / "fingerprint"
# What a student gets beside the notebook.
HELPERS = ("rl_tests.py", "rl_gui.py", "rl_envs.py", "probe_envs.py", "rl_checks", "rl_pictures", "rl_worlds", "reference.json")
MISTAKE_DIGITS = 6  # enough to tell two mistakes apart; engine.SAME_MISTAKE is looser
REGION = re.compile(r"^([ \t]*)### BEGIN SOLUTION[^\n]*\n.*?^[ \t]*### END SOLUTION[^\n]*\n?", re.DOTALL | re.MULTILINE)


def build(strength="pointer"):
    """Writes reference.json, the student notebooks and the bundles; returns the paths that changed.

    strength   the strongest hint that students see: nudge, pointer or answer
    """
    changed = [path for path, data in _generated(strength) if _write(path, data)]
    for name in notebooks.assignments():
        changed += _write(BUNDLES / f"{name}.zip", bundle(name))
    sums = "".join(f"{hashlib.sha256((BUNDLES / f'{name}.zip').read_bytes()).hexdigest()}  {name}.zip\n"
                   for name in notebooks.assignments())
    return changed + _write(BUNDLES / "SHA256SUMS", sums.encode())


def build_if_needed():
    """build(), unless neither what it reads nor what it wrote has changed since the last time."""
    if STAMP.exists() and STAMP.read_text() == _fingerprint():
        return []
    changed = build()
    STAMP.write_text(_fingerprint())
    return changed


def stale(strength="pointer"):
    """The generated files in the repository that are not what their sources give now."""
    return [path for path, data in _generated(strength) if not path.exists() or path.read_bytes() != data]


def expect(assignment, piece, cases, with_mistakes=True):
    """The cases with what the solution gives and, where it differs, what every known mistake gives.

    piece   engine.Piece
    """
    solution = solutions.load(assignment)[piece.target or piece.name]
    known = mistakes_of(assignment, piece.name) if with_mistakes else {}
    full = []
    for case in cases:
        expected = quantities(piece, solution, case)
        if expected is None:
            raise RuntimeError(f"{assignment}/{piece.name}: the solution does not answer the case {case.name!r}")
        wrong = {}
        for key, mistake in known.items():
            given = quantities(piece, version(piece, solution, mistake.wrong), case)
            differing = {} if given is None else {
                name: value for name, value in given.items()
                if name in expected and not _equal(expected[name], value, piece.tolerance)}
            if differing:
                wrong[key] = differing
        full.append(replace(case, expected=expected, mistakes=wrong))
    return full


def quantities(piece, target, case):
    """What the observer sees, None where the code raised, returned the wrong kind of thing, or takes no part."""
    try:
        observation = engine.look(piece, target, case.inputs)
        if observation.status == engine.PASSED and piece.derive:
            observation = engine.derived(piece, case, observation)
    except engine.Skip:
        return None
    return observation.quantities if observation.status == engine.PASSED else None


def reference(strength="pointer"):
    """The text of reference.json: one line a case, so that a change shows as a changed line."""
    lines = []
    for assignment in notebooks.assignments():
        pieces = []
        for name, piece in rl_tests.observers_of(assignment).items():
            cases = expect(assignment, piece, cases_of(assignment, name))
            rows = ",\n".join("    " + _json({
                "name": case.name, "inputs": _record(case.inputs), "expected": _record(case.expected),
                "mistakes": {key: _record(given, MISTAKE_DIGITS) for key, given in case.mistakes.items()}})
                for case in cases)
            hints = {key: mistake.hints(strength) for key, mistake in mistakes_of(assignment, name).items()}
            pieces.append(f'  {_json(name)}: {{"hints": {_json(hints)}, "cases": [\n{rows}]}}')
        lines.append(f" {_json(assignment)}: {{\n" + ",\n".join(pieces) + "}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def student_notebook(name):
    """The text of notebooks/NAME.ipynb: the solution regions replaced by stubs."""
    notebook = notebooks.read(notebooks.solution_path(name))
    for cell in notebook.cells:
        if notebooks.is_answer(cell):
            cell.source = stub(cell.source, notebooks.grade_id(cell))
    return notebooks.dumps(notebook)


def stub(source, piece):
    """An answer cell's source without its solution; ValueError where it has none marked."""
    if not REGION.search(source):
        raise ValueError(f"the cell {piece} has no ### BEGIN SOLUTION ... ### END SOLUTION")
    return REGION.sub(lambda region: f'{region[1]}raise NotImplementedError("{piece} is not written yet")\n', source).rstrip()


def bundle(name):
    """The bytes of a zip with the student's notebook and its helpers, the same bytes each time."""
    files = {f"{name}.ipynb": (notebooks.RELEASES / f"{name}.ipynb").read_bytes()}
    for helper in HELPERS:
        path = notebooks.ROOT / helper
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                files[file.relative_to(notebooks.ROOT).as_posix()] = file.read_bytes()
    files["SHA256SUMS"] = "".join(f"{hashlib.sha256(data).hexdigest()}  {path}\n"
                                  for path, data in sorted(files.items())).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            info = zipfile.ZipInfo(f"{name}/{path}", date_time=(2026, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def _generated(strength):
    yield REFERENCE, reference(strength).encode()
    for name in notebooks.assignments():
        yield notebooks.RELEASES / f"{name}.ipynb", student_notebook(name).encode()


def _fingerprint():
    """A hash over all that a build reads and writes."""
    read = [*HELPERS, "solutions", "grading"]
    written = ["notebooks", "build/bundles"]
    digest = hashlib.sha256()
    for name in read + written:
        path = notebooks.ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(notebooks.ROOT)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _equal(expected, value, tolerance):
    if isinstance(expected, torch.Tensor):
        return (isinstance(value, torch.Tensor) and value.shape == expected.shape and value.dtype == expected.dtype
                and torch.allclose(value, expected, rtol=tolerance, atol=tolerance))
    return type(value) is type(expected) and value == expected


def _record(quantities, digits=None):
    return {name: encode(value, digits) for name, value in quantities.items()}


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _write(path, data):
    if path.exists() and path.read_bytes() == data:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return [path]
