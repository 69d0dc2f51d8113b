"""Notebook files: where they are, how they are written, which cells are what."""

import json
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"
RELEASES = ROOT / "notebooks"


def assignments():
    """Names of all assignments, in the order of the course."""
    return sorted(path.stem for path in SOLUTIONS.glob("*.ipynb"))


def solution_path(name):
    """The solution notebook of an assignment; ValueError names the known ones."""
    if name not in assignments():
        raise ValueError(f"unknown assignment {name!r}; this course has {', '.join(assignments()) or 'none'}")
    return SOLUTIONS / f"{name}.ipynb"


def read(path):
    """A notebook of ours as a NotebookNode."""
    return nbformat.read(path, as_version=4)


def dumps(notebook):
    """The one way in which a notebook is written: sorted, one source line a line, no outputs, no editor's metadata."""
    notebook = json.loads(nbformat.writes(notebook))
    notebook["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                            "language_info": {"name": "python"}}
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    for cell in notebook["cells"]:
        cell["metadata"] = {key: cell["metadata"][key] for key in ("nbgrader", "tags") if cell["metadata"].get(key)}
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = None, []
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def grade_id(cell):
    """The cell's grade_id, "" where it has none."""
    return cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", "")


def is_answer(cell):
    """A cell in which a student writes a piece."""
    return bool(cell.get("metadata", {}).get("nbgrader", {}).get("solution"))


def is_check(cell):
    """A cell that is worth points and not an answer: the check of a piece."""
    return bool(cell.get("metadata", {}).get("nbgrader", {}).get("grade")) and not is_answer(cell)


def is_live(cell):
    """A cell that trains, plots or shows: a student runs it, the loader and the grader do not."""
    return "live" in cell.get("metadata", {}).get("tags", [])


def definitions(notebook):
    """The code cells that define things: all but checks and live cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and not is_check(cell) and not is_live(cell)]


def points(notebook):
    """{piece: points}, in the notebook's order; the check cell of PIECE has the grade_id test_PIECE."""
    return {grade_id(cell).removeprefix("test_"): cell.metadata.nbgrader.points
            for cell in notebook.cells if is_check(cell)}


def tidy(paths):
    """Writes notebooks in their one form; returns the paths that were not in it."""
    changed = []
    for path in map(Path, paths):
        text = dumps(read(path))
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":  # python -m grading.notebooks solutions/*.ipynb
    untidy = tidy(sys.argv[1:])
    for path in untidy:
        print(f"tidied {path}")
    sys.exit(bool(untidy))
