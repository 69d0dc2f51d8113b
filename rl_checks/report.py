"""What a check found, as text and as HTML.

A Report is a list of rows; a row has a status, a title, one line of summary and blocks (paragraphs, tables, maps,
hints) that can print themselves both ways. The HTML has inline styles and literal colours only: an untrusted notebook
strips everything else, and the card must be readable on a dark page and in nbgrader's feedback.
"""

import html
from dataclasses import dataclass, field, replace

from rl_checks import microscope
from rl_checks.engine import FAILED, NOT_WRITTEN, PASSED, RAISED

# Colour-blind safe (Okabe and Ito), darkened where needed for a contrast of 4.5:1; the sign says the same.
BADGES = {PASSED: ("✔ PASS", "#0072b2", "#ffffff"), FAILED: ("✘ FAIL", "#a84300", "#ffffff"),
          RAISED: ("! ERROR", "#e69f00", "#000000"), NOT_WRITTEN: ("– NOT YET", "#666666", "#ffffff")}
CARD = ("font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:14px;line-height:1.5;color:#1a1a1a;"
        "background:#ffffff;border:1px solid #cccccc;border-left:6px solid {edge};border-radius:4px;"
        "padding:8px 16px;margin:4px 0;max-width:780px;overflow-wrap:anywhere")
MONO = "font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:13px"
INK = "color:#1a1a1a"
QUIET = "color:#595959"
MAX_ROW_CHARS = 2000  # of one message: a student's exception can be of any length


@dataclass(frozen=True)
class Paragraph:
    text: str
    code: bool = False

    def as_text(self):
        return _short(self.text)

    def as_html(self):
        style = f"{MONO};background:#f2f2f2;{INK};padding:4px 8px;white-space:pre-wrap" if self.code else INK
        return f'<div style="{style};margin:4px 0">{html.escape(_short(self.text))}</div>'


@dataclass(frozen=True)
class Table:
    header: tuple
    rows: tuple
    bold: int | None = None  # index of the row to stress

    def as_text(self):
        lines = [self.header, *self.rows]
        widths = [max(len(str(line[i])) for line in lines) for i in range(len(self.header))]
        marks = [" ", *(">" if i == self.bold else " " for i in range(len(self.rows)))]
        return "\n".join(f"{mark} " + "  ".join(str(cell).rjust(width) for cell, width in zip(line, widths))
                         for mark, line in zip(marks, lines))

    def as_html(self):
        def row(cells, tag, weight, paper):
            style = f"{INK};background:{paper};padding:1px 10px;text-align:right;font-weight:{weight};border:0"
            cells = "".join(f'<{tag} style="{style}">{html.escape(str(cell))}</{tag}>' for cell in cells)
            return f'<tr style="background:{paper}">{cells}</tr>'
        body = "".join(row(cells, "td", *(700, "#ffe9cc") if i == self.bold else (400, "#f7f7f7"))
                       for i, cells in enumerate(self.rows))
        return (f'<table style="{MONO};border-collapse:collapse;margin:6px 0">'
                f'{row(self.header, "th", 700, "#ececec")}{body}</table>')


@dataclass(frozen=True)
class Map:
    """|error| over (env, t): `shades[env][t]` in [0, 1], 0 = right; `marks[env][t]` a sign or ""."""

    shades: tuple
    marks: tuple
    focus: tuple  # (t, env) where it starts

    def as_text(self):
        lines = ["env \\ t  (. right, # wrong, X where it starts, | an episode ends)"]
        for env, (shades, marks) in enumerate(zip(self.shades, self.marks)):
            cells = ["X" if (t, env) == self.focus else "#" if shade else "." for t, shade in enumerate(shades)]
            lines.append(f"{env:7d}  " + "".join(cell + (mark or " ") for cell, mark in zip(cells, marks)))
        return "\n".join(lines)

    def as_html(self):
        cell = "border:1px solid #b5b5b5;width:19px;height:17px;padding:0;text-align:center"
        # A dark theme colours every other row of a table: each cell brings its own paper.
        label = f"{INK};background:#ffffff;border:0;text-align:right"
        head = "".join(f'<td style="{label};padding:0 2px">{t}</td>' for t in range(len(self.shades[0])))
        rows = [f'<tr style="background:#ffffff"><td style="{label};padding:0 6px">env \\ t</td>{head}</tr>']
        for env, (shades, marks) in enumerate(zip(self.shades, self.marks)):
            cells = ""
            for t, (shade, mark) in enumerate(zip(shades, marks)):
                ink, paper = _heat(shade)
                frame = "outline:2px solid #000000;" if (t, env) == self.focus else ""
                sign = ("✕" if (t, env) == self.focus else "") + mark
                cells += f'<td style="{cell};{frame}background:{paper};color:{ink}">{sign}</td>'
            rows.append(f'<tr style="background:#ffffff"><td style="{label};padding:0 6px">{env}</td>{cells}</tr>')
        caption = "|error| over (env, t). Darker = larger, blank = right, ✕ = where it starts, | = an episode ends there."
        return (f'<div style="{QUIET}">{caption}</div><table style="{MONO};font-size:12px;border-collapse:collapse;'
                f'background:#ffffff;margin:4px 0">{"".join(rows)}</table>')


@dataclass(frozen=True)
class Hint:
    """A likely mistake, from nudge to the strongest hint that this course shows."""

    texts: tuple
    certain: str  # what the naming rests on

    def as_text(self):
        return "\n".join([f"Likely mistake ({self.certain}).", *(f"  Hint: {text}" for text in self.texts)])

    def as_html(self):
        stronger = "".join(f"<details><summary>A stronger hint</summary>{html.escape(text)}</details>"
                           for text in self.texts[1:])
        return (f'<div style="background:#eeeeee;{INK};border-left:5px solid #e69f00;padding:8px 12px;margin:8px 0">'
                f'<b>Likely mistake.</b> {html.escape(self.texts[0])} '
                f'<span style="{QUIET}">({html.escape(self.certain)}.)</span>{stronger}</div>')


@dataclass(frozen=True)
class Row:
    status: str
    title: str
    summary: str = ""
    blocks: tuple = ()


@dataclass
class Report:
    """The outcome of a check. Prints, and renders itself in a notebook."""

    title: str
    rows: list
    seconds: float = 0.0
    shown_in: object = field(default=None, repr=False)  # the execution count of the cell that displayed it

    @property
    def passed(self):
        return bool(self.rows) and all(row.status == PASSED for row in self.rows)

    @property
    def not_written(self):
        """True where nothing is wrong, and something is not written yet."""
        statuses = {row.status for row in self.rows}
        return NOT_WRITTEN in statuses and statuses <= {PASSED, NOT_WRITTEN}

    @property
    def headline(self):
        good = sum(row.status == PASSED for row in self.rows)
        if self.not_written and good == 0:
            return "Not written yet"
        return f"{good} of {len(self.rows)} checks pass"

    def __str__(self):
        return self.as_text()

    def as_text(self, only_failed=False):
        lines = [f"{self.title}: {self.headline}"]
        for row in self.rows:
            if row.status == PASSED and only_failed:
                continue
            lines.append(f"  {BADGES[row.status][0]}  {row.title}" + (f": {_short(row.summary)}" if row.summary else ""))
            for block in row.blocks:
                lines += ["      " + line for line in block.as_text().splitlines()]
        return "\n".join(lines)

    def as_html(self):
        edge = next((BADGES[status][1] for status in (FAILED, RAISED, NOT_WRITTEN)
                     if any(row.status == status for row in self.rows)), BADGES[PASSED][1])
        quiet = f" · {html.escape(self.title)}" + (f" · {self.seconds:.2f} s" if self.seconds else "")
        first = next((row for row in self.rows if row.blocks and row.status != PASSED), None)
        head = f'<div style="font-size:15px;margin-bottom:4px"><b>{self.headline}</b><span style="{QUIET}">{quiet}</span></div>'
        return f'<div style="{CARD.format(edge=edge)}">{head}{"".join(_row_html(row, row is first) for row in self.rows)}</div>'

    def show(self):
        """Displays the report: HTML in a notebook, text elsewhere."""
        shell = _shell()
        if shell is None:
            print(self.as_text())
            return
        from IPython.display import display
        self.shown_in = shell.execution_count
        display({"text/html": self.as_html(), "text/plain": self.as_text()}, raw=True)

    def _ipython_display_(self):
        # The value of a cell that ends in a check is displayed by Jupyter; the check has done so already.
        shell = _shell()
        if shell is None or self.shown_in != shell.execution_count:
            self.show()


class CheckFailed(AssertionError):
    """A check did not pass. str() is the report of what failed, as plain text; .report is the whole of it."""

    def __init__(self, report):
        super().__init__(report.as_text(only_failed=True))
        self.report = report

    def _render_traceback_(self):
        # The report stands above in the cell; a traceback into our files would only hide it.
        return [f"CheckFailed: {self.report.title}: {self.report.headline}. The report above says what is wrong."]


def rows_of(findings, names, hints):
    """One row per case; the microscope and the hint stand once, in the first row that failed."""
    rows, told = [], False
    for finding in findings:
        title = finding.case.name
        if finding.status == NOT_WRITTEN:
            if not any(row.status == NOT_WRITTEN for row in rows):
                rows.append(Row(NOT_WRITTEN, finding.piece.name, finding.error or "not written yet"))
            continue
        if finding.status == PASSED:
            rows.append(Row(PASSED, title))
            continue
        if finding.status == RAISED:
            rows.append(Row(RAISED, title, f"your code raised {finding.error}",
                            (Paragraph(f"in {finding.place}", code=True),) if finding.place else ()))
            continue
        messages = [d.message for d in finding.differences] or [finding.error]
        blocks = [Paragraph(message) for message in messages[1:]]
        if not told:
            blocks += microscope.blocks(finding, Paragraph, Table, Map)
            blocks += [Hint(tuple(hints[name]), "your numbers equal what it gives") for name in names if hints.get(name)]
            told = True
        rows.append(Row(FAILED, title, messages[0], tuple(blocks)))
    return merged(rows)


def merged(rows):
    """The rows with those that say the same told once: a class instead of a function fails every case alike."""
    groups = {}
    for row in rows:
        alike = (row.status, row.summary, row.blocks) if row.status in (FAILED, RAISED) else len(groups)
        groups.setdefault(alike, []).append(row)
    return [group[0] if len(group) == 1 else
            replace(group[0], title=f"{group[0].title} (and {len(group) - 1} more)") for group in groups.values()]


def _row_html(row, unfolded):
    label, paper, ink = BADGES[row.status]
    badge = (f'<span style="background:{paper};color:{ink};padding:1px 8px;border-radius:3px;font-weight:700;'
             f'display:inline-block;min-width:72px;text-align:center">{label}</span>')
    title = f'<code style="{MONO};background:#f2f2f2;{INK};font-weight:700">{html.escape(row.title)}</code>'
    line = f'{badge} {title} <span style="{QUIET}">{html.escape(_short(row.summary))}</span>'
    if not row.blocks:
        return f'<div style="border-top:1px solid #dddddd;padding:5px 0 5px 16px">{line}</div>'
    return (f'<details{" open" * unfolded} style="border-top:1px solid #dddddd;padding:5px 0">'
            f'<summary style="{INK}">{line}</summary>'
            f'<div style="margin:4px 0 8px 20px">{"".join(block.as_html() for block in row.blocks)}</div></details>')


def _heat(shade):
    """(ink, paper) for an error in [0, 1]: white for right, then light to dark orange."""
    if not shade:
        return "#1a1a1a", "#ffffff"
    light, dark = (255, 217, 179), (122, 41, 0)
    rgb = [round(a + (b - a) * shade) for a, b in zip(light, dark)]
    return ("#ffffff" if shade > 0.5 else "#1a1a1a"), "#{:02x}{:02x}{:02x}".format(*rgb)


def _short(text):
    return text if len(text) <= MAX_ROW_CHARS else text[:MAX_ROW_CHARS] + " …"


def _shell():
    """The notebook's IPython shell, None outside of one."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None
