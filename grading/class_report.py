"""One page about a whole class: scores, hard pieces, the mistakes it makes, equal answers, and who needs a human.

The page stands alone: no scripts, no files beside it; its pictures are SVG with a title for every mark.
"""

import collections
import html
import statistics

from grading import fingerprints
from grading.judge import INFRASTRUCTURE
from grading.mistakes import mistakes_of

BINS = 10
MAX_LISTED = 200  # rows of a table
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
:root {{ color-scheme: light dark; --ink: light-dark(#1a1a1a, #e6e6e6); --quiet: light-dark(#595959, #a8a8a8);
        --bar: light-dark(#0072b2, #56b4e9); --loss: light-dark(#a84300, #e69f00); --line: light-dark(#cccccc, #555555); }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em;
       background: light-dark(#ffffff, #1b1b1b); color: var(--ink); }}
h1 {{ font-size: 1.5em; }} h2 {{ font-size: 1.15em; margin-top: 2em; }}
table {{ border-collapse: collapse; }} td, th {{ padding: 2px 12px 2px 0; text-align: left; vertical-align: top; }}
td.n, th.n {{ text-align: right; }} .quiet {{ color: var(--quiet); }}
.alarm {{ border-left: 6px solid var(--loss); padding: .2em 1em; }}
svg {{ max-width: 100%; height: auto; }} svg text {{ fill: var(--ink); font: 12px system-ui, sans-serif; }}
.bar {{ fill: var(--bar); }} .loss {{ fill: var(--loss); }} .axis {{ stroke: var(--line); }}
</style></head><body>
<h1>{title}</h1>
{sections}</body></html>
"""


def page(assignment, verdicts, submissions, release, unsafe=False):
    """The page as text."""
    parts = []
    if unsafe:
        parts.append('<p class="alarm"><b>Graded without a sandbox.</b> Student code ran under process limits only: '
                     "these scores hold for a class that you trust.</p>")
    parts += [_summary(verdicts), _scores(verdicts), _pieces(verdicts), _mistakes(assignment, verdicts),
              _humans(verdicts), _equal(fingerprints.groups(submissions, release), len(verdicts))]
    return PAGE.format(title=html.escape(f"{assignment}: the class"), sections="\n".join(parts))


def _summary(verdicts):
    scores = [v.score for v in verdicts if v.score is not None]
    counts = collections.Counter(v.status for v in verdicts)
    middle = f"; median {statistics.median(scores):g}, mean {statistics.mean(scores):.3g} of {verdicts[0].max_score:g} points" \
        if scores else ""
    rows = [(status, count) for status, count in counts.most_common()]
    return f"<p>{len(verdicts)} submissions{middle}.</p>\n{_table(('status', 'submissions'), rows)}"


def _scores(verdicts):
    """A histogram of the scores."""
    scores = [v.score / v.max_score for v in verdicts if v.score is not None and v.max_score]
    counts = [0] * (BINS + 1)  # the last bin is full marks alone
    for share in scores:
        counts[int(share * BINS + 1e-9)] += 1
    top, width, high = max([1, *counts]), 60, 140
    marks = []
    for i, count in enumerate(counts):
        height = count / top * high
        x, y = i * width + 34, 20 + high - height
        low, up = i * 100 // BINS, (i + 1) * 100 // BINS
        name, label = ("all points", "all") if i == BINS else (f"{low} to {up} %", f"{low}–{up}")
        marks.append(f'<rect class="bar" x="{x}" y="{y:.1f}" width="{width - 6}" height="{height:.1f}">'
                     f'<title>{name}: {count}</title></rect>'
                     f'<text x="{x + width / 2 - 3}" y="{y - 6:.1f}" text-anchor="middle">{count or ""}</text>'
                     f'<text x="{x + width / 2 - 3}" y="{high + 36}" text-anchor="middle">{label}</text>')
    wide, middle = (BINS + 1) * width + 34, high / 2 + 20
    return (f'<h2>Scores</h2>\n<svg viewBox="0 0 {wide} {high + 62}" width="{wide}" role="img" '
            f'aria-label="histogram of scores">{"".join(marks)}'
            f'<line class="axis" x1="30" x2="{wide}" y1="{high + 20}" y2="{high + 20}"/>'
            f'<text x="{wide / 2}" y="{high + 56}" text-anchor="middle">share of the points, %</text>'
            f'<text x="14" y="{middle}" transform="rotate(-90 14 {middle})" text-anchor="middle">submissions</text></svg>')


def _pieces(verdicts):
    """A bar for each piece: who has all points, hardest first."""
    judged = [v for v in verdicts if v.status not in (INFRASTRUCTURE, "missing", "unreadable")]
    if not judged:
        return ""
    solved = {name: sum(v.pieces[name].score >= v.pieces[name].points for v in judged) for name in judged[0].pieces}
    return ("<h2>Pieces, hardest first</h2>\n<p class=\"quiet\">Submissions with all points of a piece, of those that could be "
            "read.</p>\n" + _bars([(name, solved[name], len(judged)) for name in sorted(solved, key=solved.get)], "bar"))


def _mistakes(assignment, verdicts):
    """What the class gets wrong, by the mistakes that the judge named."""
    counts = collections.Counter((name, key) for v in verdicts for name, piece in v.pieces.items() for key in piece.mistakes)
    if not counts:
        return "<h2>Mistakes</h2>\n<p>No known mistake was named.</p>"
    unnamed = sum(piece.score < piece.points and not piece.mistakes for v in verdicts for piece in v.pieces.values()
                  if v.status == "ok")
    rows = []
    for (name, key), count in counts.most_common(MAX_LISTED):
        known = mistakes_of(assignment, name).get(key)
        rows.append((name, key.replace("_", " "), count, known.pointer if known else ""))
    most = counts.most_common(1)[0][1]
    bars = _bars([(f"{key} ({name})", count, most) for name, key, count, _ in rows[:15]], "loss", share=False)
    return (f"<h2>Mistakes that the class makes</h2>\n{bars}\n"
            + _table(("piece", "mistake", "students", "what to tell them"), rows)
            + f'<p class="quiet">Pieces without all points and without a named mistake: {unnamed}.</p>')


def _humans(verdicts):
    """Everything that a person should look at."""
    rows = [(v.student, v.status, "; ".join(v.notes)) for v in verdicts if v.status != "ok" or v.notes]
    if not rows:
        return "<h2>Needs a human</h2>\n<p>Nothing.</p>"
    more = f"<p>… and {len(rows) - MAX_LISTED} more, see grades.csv.</p>" if len(rows) > MAX_LISTED else ""
    return "<h2>Needs a human</h2>\n" + _table(("student", "status", "why"), rows[:MAX_LISTED]) + more


def _equal(groups, count):
    if not groups:
        return "<h2>Equal answers</h2>\n<p>None.</p>"
    rows = [(piece, len(students), "same text" if same else "same after renaming",
             ", ".join(students[:12]) + (" …" if len(students) > 12 else ""))
            for piece, students, same in groups[:MAX_LISTED]]
    return ("<h2>Equal answers</h2>\n<p class=\"quiet\">The same program but for names, comments and layout. A hint, no proof: "
            f"where a large part of the {count} submissions is equal, it is the obvious way to write the piece.</p>\n"
            + _table(("piece", "students", "how equal", "who"), rows))


def _bars(rows, kind, share=True):
    """Horizontal bars: rows of (label, value, of)."""
    marks, left, wide, step = [], 330, 400, 24
    for i, (label, value, of) in enumerate(rows):
        y = i * step
        text = f"{value} of {of} ({value / of:.0%})" if share else str(value)
        marks.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{html.escape(label)}</text>'
                     f'<rect class="{kind}" x="{left}" y="{y + 3}" width="{value / of * wide:.1f}" height="{step - 8}">'
                     f'<title>{html.escape(label)}: {text}</title></rect>'
                     f'<text x="{left + value / of * wide + 6:.1f}" y="{y + 15}">{text}</text>')
    high = len(rows) * step
    return (f'<svg viewBox="0 0 {left + wide + 130} {high + 4}" width="{left + wide + 130}" role="img" aria-label="bars">'
            f'{"".join(marks)}<line class="axis" x1="{left}" x2="{left}" y1="0" y2="{high}"/></svg>')


def _table(header, rows):
    def row(cells, tag):
        return "<tr>" + "".join(f'<{tag}{" class=n" if isinstance(cell, int) else ""}>{html.escape(str(cell))}</{tag}>'
                                for cell in cells) + "</tr>"
    return f"<table>{row(header, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>\n"
