"""What a student gets back: one page with the score, the report of each piece, and the answer that was judged.

Nothing of the student's is trusted here: names, notes and code are escaped, and the page runs no scripts at all.
"""

import html

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from grading.judge import INFRASTRUCTURE

MAX_SHOWN = 20_000  # characters of an answer on the page
# What a status means, in the student's words.
MEANINGS = {
    "ok": "", "missing": "No notebook was found.", "unreadable": "The file could not be read as a notebook.",
    "timeout": "Some of your code did not end in time. The rest was judged without it.",
    "memory": "Some of your code asked for more memory than there is. The rest was judged without it.",
    "crashed": "Some of your code ended the process that it ran in. The rest was judged without it.",
    INFRASTRUCTURE: "This submission could not be judged, through no fault of yours. It has no score yet."}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title><style>{style}</style></head><body>
<h1>{title}</h1>
<p class="score">{score}</p>
{notes}{pieces}</body></html>
"""
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 860px; margin: 2em auto; padding: 0 1em;
       background: light-dark(#ffffff, #1b1b1b); color: light-dark(#1a1a1a, #e6e6e6); }
h1 { font-size: 1.4em; } h2 { font-size: 1.15em; margin-top: 2em; }
.score { font-size: 1.6em; margin: .2em 0; }
.note { border-left: 5px solid #e69f00; padding: .2em 1em; margin: .5em 0; }
summary { cursor: pointer; }
pre { overflow-x: auto; padding: .6em 1em; background: #f7f7f7; color: #1a1a1a; line-height: 1.35; }
"""


def page(verdict, answers):
    """The page as text.

    answers   {piece: source}, what was taken from the student
    """
    known = verdict.status != INFRASTRUCTURE
    score = f"{verdict.score:g} of {verdict.max_score:g} points" if known else "no score yet"
    notes = [note for note in (MEANINGS[verdict.status], *verdict.notes) if note]
    pieces = "".join(_piece(name, piece, answers.get(name, ""), known) for name, piece in verdict.pieces.items())
    title = html.escape(f"{verdict.assignment}: {verdict.student}")
    return PAGE.format(title=title, style=STYLE + _CODE_STYLE, score=score, pieces=pieces,
                       notes="".join(f'<p class="note">{html.escape(note)}</p>\n' for note in notes))


def _piece(name, piece, source, known):
    points = f"{piece.score:g} of {piece.points:g}" if known else f"of {piece.points:g}"
    answer = ""
    if source:
        shown = source if len(source) <= MAX_SHOWN else source[:MAX_SHOWN] + "\n# … cut here"
        answer = f"<details><summary>Your answer</summary>{highlight(shown, _LEXER, _FORMATTER)}</details>"
    return f"<section><h2>{html.escape(name)}: {points} points</h2>\n{piece.html}\n{answer}</section>\n"


_LEXER, _FORMATTER = PythonLexer(), HtmlFormatter(style="default", wrapcode=True)
_CODE_STYLE = _FORMATTER.get_style_defs(".highlight")
