"""No attack earns a point, reaches another submission, or writes outside of its sandbox."""

import hashlib
import json

import nbformat
import pytest
from attacks import ATTACKS, ZEROS
from classroom import FIRST, FULL, answers, confined, hand_in, judge, notebook, release, sandbox, scores, submission

from grading import intake, notebooks
from grading.judge import INFRASTRUCTURE

pytestmark = confined
STEP_S, TOTAL_S = 1.5, 4.0


def outside():
    """A digest of what the sandbox was made from: an attack that changed it would meet the next submission."""
    home = sandbox()._home
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in sorted((home / "helpers").rglob("*.py"))}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_earns_nothing_and_leaves_nothing(name):
    before = outside()
    attack = submission("eve", **ZEROS | {FIRST: ZEROS[FIRST] + ATTACKS[name]})
    verdict = judge(STEP_S, TOTAL_S).judge(attack)
    assert verdict.status != INFRASTRUCTURE, verdict.notes
    assert verdict.score == 0, f"{verdict.status}: {scores(verdict)}"
    assert verdict.seconds < 3 * TOTAL_S
    assert outside() == before
    assert len(list(sandbox()._home.iterdir())) <= 3  # helpers, the log, matplotlib's cache


def test_after_all_attacks_an_honest_submission_has_its_points():
    verdict = judge().judge(submission("ada"))
    assert verdict.status == "ok" and scores(verdict) == FULL


def test_an_attack_next_to_a_right_answer_does_not_cost_the_other_piece():
    verdict = judge().judge(submission("eve", **{FIRST: ZEROS[FIRST] + ATTACKS["patched torch comparators"]}))
    assert scores(verdict)[FIRST] == 0


FORGED = {
    "forged outputs": lambda cells: [c.update(outputs=[nbformat.v4.new_output(
        "execute_result", data={"text/plain": "10.0"}, execution_count=1)], execution_count=1)
        for c in cells if c["cell_type"] == "code"],
    "edited points": lambda cells: [c["metadata"]["nbgrader"].update(points=1000) for c in cells
                                    if c["metadata"].get("nbgrader", {}).get("grade")],
    "no points": lambda cells: [c["metadata"]["nbgrader"].update(points=-5) for c in cells
                                if c["metadata"].get("nbgrader", {}).get("grade")],
    "check cells that say 10.0": lambda cells: [c.update(source="10.0") for c in cells
                                                if c["metadata"].get("nbgrader", {}).get("grade")],
    "tags that skip": lambda cells: [c["metadata"].update(tags=["skip-execution", "raises-exception", "live"]) for c in cells],
    "answers that say they are checks": lambda cells: [c["metadata"]["nbgrader"].update(grade=True, solution=False, points=10)
                                                       for c in cells if c["metadata"].get("nbgrader", {}).get("solution")],
    "doubled checks": lambda cells: cells.extend([dict(c, id=f"again{i}") for i, c in enumerate(list(cells))
                                                  if c["metadata"].get("nbgrader", {}).get("grade")]),
    "a cell of one's own before all": lambda cells: cells.insert(0, {
        "cell_type": "code", "id": "mine", "metadata": {}, "source": "import sys; sys.modules['torch'] = None", "outputs": [],
        "execution_count": None}),
    "another kernel": lambda cells: None,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_notebook_earns_nothing(tmp_path, name):
    nb = json.loads(nbformat.writes(notebook(**ZEROS)))
    FORGED[name](nb["cells"])
    nb["metadata"] = {"kernelspec": {"name": "bash", "language": "bash", "display_name": "10.0"}}
    taken = intake.read(hand_in(tmp_path, "eve", json.dumps(nb)), "eve", release())
    verdict = judge(STEP_S, TOTAL_S).judge(taken)
    assert verdict.score == 0 and verdict.max_score == 10
    assert notebooks.points(intake.rebuild(release(), taken)) == notebooks.points(release())


def test_a_link_instead_of_a_notebook_earns_nothing(tmp_path):
    other = hand_in(tmp_path, "ada", notebook())
    (tmp_path / "eve").mkdir()
    (tmp_path / "eve" / other.name).symlink_to(other)
    verdict = judge().judge(intake.read(tmp_path / "eve" / other.name, "eve", release()))
    assert verdict.score == 0 and verdict.status == intake.UNREADABLE


def test_an_early_correct_answer_does_not_cover_a_later_wrong_one():
    source = answers()[FIRST].replace("### BEGIN SOLUTION", """COUNT.append(1)
    if len(COUNT) > 1:
        return torch.zeros(len(states)), torch.zeros(len(states))
    ### BEGIN SOLUTION""")
    assert scores(judge().judge(submission("eve", **{FIRST: "COUNT = []\n" + source})))[FIRST] == 0


def test_what_a_student_writes_cannot_become_markup():
    evil = "def compute_advantages(self, *a):\n    raise ValueError('<script>alert(1)</script><img src=x onerror=alert(2)>')\n"
    verdict = judge().judge(submission("eve", **{FIRST: evil + "PPO.compute_advantages = compute_advantages"}))
    assert "<script" not in verdict.pieces[FIRST].html and "<img" not in verdict.pieces[FIRST].html
