"""A graded class for other systems: Canvas and Moodle gradebooks, Gradescope's results.json; and as a table of text."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

from grading.gradebook import load_verdict


@dataclass(frozen=True)
class Graded:
    """What grades.csv holds. rows: one dict per student, every value as text; score is "" where it is unknown."""

    folder: Path
    assignment: str
    pieces: list
    rows: list


def read(out):
    """The Graded in OUT. raises ValueError where nothing was graded."""
    path = Path(out) / "grades.csv"
    if not path.is_file():
        raise ValueError(f"{path} is missing: run `python -m grading grade` first")
    with open(path, encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        rows, columns = list(table), table.fieldnames
    if not rows:
        raise ValueError(f"{path} holds no student")
    pieces = [name for name in columns[5:] if name != "sandbox"]
    return Graded(Path(out), rows[0]["assignment"], pieces, rows)


def summary(graded):
    """The table as text, one line a student."""
    header = ["student", "status", "score", *graded.pieces]
    lines = [header] + [[row["student"], row["status"], f"{row['score'] or '?'}/{row['max_score']}",
                         *(row[piece] or "?" for piece in graded.pieces)] for row in graded.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def export(out, system, roster=None):
    """Writes OUT/export/... for a system; returns the paths. A score that is unknown stays empty, it never becomes 0.

    system   canvas, moodle or gradescope
    roster   canvas: the gradebook CSV that was exported from there, whose students and columns are kept
    """
    graded = read(out)
    folder = graded.folder / "export"
    folder.mkdir(exist_ok=True)
    if system == "gradescope":
        return _gradescope(graded, folder / "gradescope")
    text = _canvas(graded, roster) if system == "canvas" else _moodle(graded)
    path = folder / f"{system}-{graded.assignment}.csv"
    path.write_text(text, encoding="utf-8")
    return [path]


def _canvas(graded, roster):
    """Canvas's gradebook import: five columns that name the student, then one per assignment; a line of maxima first.

    source   Canvas, "How do I import grades in the Gradebook?": SIS Login ID identifies a student where ID is empty
    """
    scores = {row["student"]: row["score"] for row in graded.rows}
    points = graded.rows[0]["max_score"]
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    if not roster:
        people = [[name, "", "", name, ""] for name in scores]
        column, matched = graded.assignment, people
    else:
        with open(roster, encoding="utf-8-sig", newline="") as file:
            table = list(csv.DictReader(file))
        if not table or not {"Student", "ID"} <= table[0].keys():
            raise ValueError(f"{roster} is no gradebook exported from Canvas: it has no columns Student and ID")
        # An assignment that is there already is called "NAME (NUMBER)": under the same name its scores are replaced.
        column = next((name for name in table[0] if name and name.startswith(f"{graded.assignment} (")), graded.assignment)
        matched = [[row.get(name) or "" for name in header] for row in table if (row.get("ID") or "").strip()]
    rows = [[*person, _of(person, scores)] for person in matched]
    return _csv([[*header, column], ["    Points Possible", "", "", "", "", points], *rows])


def _of(person, scores):
    """The score of a line of the roster, by login, SIS id, Canvas id or name; "" where none fits."""
    name, canvas, sis, login, _ = person
    return next((scores[key] for key in (login, sis, canvas, name) if key and key in scores), "")


def _moodle(graded):
    """Moodle's grade import: the student by username, the score, and the pieces as feedback.

    source   Moodle docs, "Grade import": columns are mapped by the teacher when importing
    """
    rows = [[row["student"], row["score"], _words(row, graded.pieces)] for row in graded.rows]
    return _csv([["username", graded.assignment, f"{graded.assignment} (feedback)"], *rows])


def _gradescope(graded, folder):
    """One results.json per student, in the form that Gradescope's autograders write.

    source   Gradescope autograder documentation, "Output format"
    """
    paths = []
    for row in graded.rows:
        if not row["score"]:
            result = {"output": f"Not graded yet: {row['status']}.", "tests": []}  # no score: nothing is entered
        else:
            verdict = load_verdict(graded.folder / "course" / "verdicts", row["student"])
            result = {"score": float(row["score"]), "output": _words(row, graded.pieces), "visibility": "visible",
                      "tests": [{"name": name, "score": piece.score, "max_score": piece.points, "output": piece.text}
                                for name, piece in verdict.pieces.items()]}
        path = folder / row["student"] / "results.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def _words(row, pieces):
    told = "" if row["status"] == "ok" else f"{row['status']}; "
    return told + ", ".join(f"{piece} {row[piece] or '?'}" for piece in pieces)


def _csv(rows):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
