"""A made-up class, graded for real: what `make demo` shows.

Every submission is a real notebook, made from the released one. What is expected of each is written down beside it;
the demo ends in status 0 only if all of it holds.
"""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from grading import batch, build, gradebook, notebooks
from grading import mistakes as mistakes_package
from grading.mistakes import mistakes_of

ASSIGNMENT = "02_lunar_lander"
SLOW_S = 20.0  # what one endless loop may cost


@dataclass(frozen=True)
class Expectation:
    """What grading must say about a submission; `lost` are the pieces that get no points, None: all of them."""

    status: str = "ok"
    lost: tuple | None = ()
    mistake: str = ""


def run(out, workers=None, unsafe=False):
    """Builds, makes the class, grades it, prints the gradebook. Returns the exit status."""
    out = Path(out)
    shutil.rmtree(out, ignore_errors=True)  # or the journal of the last run would answer instead of the judge
    changed = build.build_if_needed()
    print(f"Built the student version of {len(notebooks.assignments())} notebooks ({len(changed)} files changed).")
    submitted = out / "submitted"
    expectations = make_class(submitted)
    print(f"Made a class of {len(expectations)} submissions of {ASSIGNMENT} in {submitted}. Grading:")
    verdicts = batch.grade(submitted, ASSIGNMENT, out, workers, batch.Progress(), unsafe)
    book = gradebook.scores(out, ASSIGNMENT)
    problems = {v.student: problem for v in verdicts if (problem := judge_the_judge(v, expectations[v.student], book))}
    print(table(verdicts, problems))
    print(f"\n  grades.csv    {out / 'grades.csv'}\n  gradebook.db  {out / 'gradebook.db'}\n"
          f"  feedback      {out / 'feedback'}/STUDENT.html, for instance {out / 'feedback' / 'mistake-sum_not_cut.html'}")
    if problems:
        print(f"\n{len(problems)} of {len(verdicts)} submissions were not graded as expected.")
        return 1
    print(f"\nAll {len(verdicts)} submissions were graded as expected.")
    return 0


def judge_the_judge(verdict, expected, book):
    """What is not as expected, "" if all is."""
    lost = tuple(verdict.pieces) if expected.lost is None else expected.lost
    problems = []
    if verdict.status != expected.status:
        problems.append(f"status {verdict.status}, expected {expected.status}")
    for name, piece in verdict.pieces.items():
        if piece.score != (0.0 if name in lost else piece.points):
            problems.append(f"{name} has {piece.score:g} of {piece.points:g} points")
    named = [key for piece in verdict.pieces.values() for key in piece.mistakes]
    if named != [expected.mistake] * bool(expected.mistake):
        problems.append(f"named {named}, expected {expected.mistake or 'nothing'}")
    if book.get(verdict.student) != verdict.score:
        problems.append(f"gradebook.db says {book.get(verdict.student)}, grades.csv {verdict.score}")
    if expected.status == "timeout" and verdict.seconds > SLOW_S:
        problems.append(f"took {verdict.seconds:.0f} s")
    return "; ".join(problems)


def table(verdicts, problems):
    """The gradebook as text."""
    pieces = list(verdicts[0].pieces)
    rows = [["student", "status", *pieces, "score", "named mistake"]]
    for v in verdicts:
        named = [key for piece in v.pieces.values() for key in piece.mistakes]
        rows.append([v.student, v.status, *(f"{v.pieces[p].score:g}/{v.pieces[p].points:g}" for p in pieces),
                     "" if v.score is None else f"{v.score:g}/{v.max_score:g}", ", ".join(named)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "-" * max(map(len, lines)))
    for i, v in enumerate(verdicts, start=2):
        if v.student in problems:
            lines[i] += f"   <-- {problems[v.student]}"
    return "\n" + "\n".join(lines)


def make_class(folder):
    """Writes FOLDER/STUDENT/NAME.ipynb for the whole class; returns {student: Expectation}."""
    solution = notebooks.read(notebooks.solution_path(ASSIGNMENT))
    released = (notebooks.RELEASES / f"{ASSIGNMENT}.ipynb").read_text(encoding="utf-8")
    answers = {notebooks.grade_id(c): c.source for c in solution.cells if notebooks.is_answer(c)}
    expectations = {}

    def submit(student, expectation, text):
        path = folder / student / f"{ASSIGNMENT}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        expectations[student] = expectation

    def with_answers(**changed):
        notebook = json.loads(released)
        for cell in notebook["cells"]:
            if notebooks.is_answer(cell):
                cell["source"] = changed.get(notebooks.grade_id(cell), answers[notebooks.grade_id(cell)])
        return json.dumps(notebook)

    def edited(edit):
        notebook = json.loads(full)
        edit(notebook["cells"])
        return json.dumps(notebook)

    full = with_answers()
    first, second = answers
    submit("full-solution", Expectation(), full)
    submit("untouched-release", Expectation(lost=None), released)
    submit("warns-on-stderr", Expectation(), with_answers(**{first: _WARNS + answers[first]}))
    for piece in answers:
        for key in mistakes_of(ASSIGNMENT, piece):
            submit(f"mistake-{key}", Expectation(lost=(piece,), mistake=key),
                   with_answers(**{piece: mistaken(piece, key)}))
    submit("loops-for-ever", Expectation("timeout", (first,)),
           with_answers(**{first: answers[first] + "\n\nwhile True:\n    pass"}))
    submit("exhausts-memory", Expectation("memory", (second,)),
           with_answers(**{second: _MEMORY + answers[second].replace("### BEGIN SOLUTION", _GREEDY)}))
    submit("exits-the-process", Expectation("crashed", (first,)),
           with_answers(**{first: answers[first] + "\n\nimport os\nos._exit(0)"}))
    submit("broken-json", Expectation("unreadable", None), full[: len(full) // 2])
    submit("doubled-check-cell", Expectation(), edited(lambda cells: cells.append(_copy(cells, f"test_{first}"))))
    submit("deleted-check-cell", Expectation(), edited(lambda cells: cells.remove(_find(cells, f"test_{second}"))))
    submit("patches-the-checks", Expectation(lost=None), with_answers(**_PATCHES))
    return expectations


def mistaken(piece, key):
    """An answer cell with a known mistake in it: the course's file of mistakes, and the one that is made here."""
    wrong = mistakes_of(ASSIGNMENT, piece)[key].wrong
    files = {module.__name__: Path(module.__file__).read_text(encoding="utf-8")
             for module in (mistakes_package, sys.modules[wrong.__module__])}
    return (f"# Made for the demo: the known mistake {key!r}.\nimport sys\nimport types\n\nSOURCES = {files!r}\n"
            "for name, source in SOURCES.items():\n    sys.modules[name] = types.ModuleType(name)\n"
            "    exec(source, sys.modules[name].__dict__)\n"
            f"PPO.{piece} = sys.modules['{wrong.__module__}'].MISTAKES['{piece}']['{key}'].wrong")


def _find(cells, name):
    return next(cell for cell in cells if notebooks.grade_id(cell) == name)


def _copy(cells, name):
    twin = json.loads(json.dumps(_find(cells, name)))
    return twin | {"id": "pasted-by-the-student"}


_WARNS = "import sys\nimport warnings\n\nwarnings.warn('this is only a warning')\nprint('so is this', file=sys.stderr)\n\n"
_MEMORY = "hoard = []\n\n"
_GREEDY = "while True:\n        hoard.append(bytearray(2**26))\n    ### BEGIN SOLUTION"
_PATCHES = {
    "compute_advantages": """
import torch
import rl_tests
from rl_checks import engine

torch.allclose = lambda *a, **k: True
torch.equal = lambda *a, **k: True
torch.isclose = lambda x, y, **k: torch.ones_like(x, dtype=torch.bool)
rl_tests.test_ppo = lambda *a, **k: None
engine.compare = lambda piece, case, observation: engine.Finding(piece, case, engine.PASSED)

def compute_advantages(self, states, rewards, next_states, terminations, truncations=None):
    return torch.zeros(len(states)), torch.zeros(len(states))

PPO.compute_advantages = compute_advantages
""".strip(),
    "compute_loss": """
def compute_loss(self, states, actions, advantages, critic_targets, log_probs_old):
    return self.actor(states).sum() * 0, self.critic(states).sum() * 0

PPO.compute_loss = compute_loss
""".strip(),
}
