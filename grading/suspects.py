"""Which known mistakes could explain a wrong answer: only these are worth asking every question.

There are dozens of known mistakes a piece, and a class makes most of its grader's work by being wrong. A mistake is let
go as soon as it would spoil something that is right, or has twice predicted other numbers than those that were seen.
"""

from dataclasses import replace

from grading import solutions
from grading.build import quantities
from grading.mistakes import mistakes_of, version
from rl_checks import engine

MISSES = 2


def with_mistakes(assignment, piece, seen, findings):
    """[(case, observation)] with what the mistakes that remain give in each case.

    piece      engine.Piece
    findings   what the comparison with the solution gave, one per case
    """
    wrong = [{difference.quantity for difference in finding.differences} for finding in findings]
    solution = solutions.load(assignment)[piece.target or piece.name]
    predictions = [{} for _ in seen]
    for key, mistake in mistakes_of(assignment, piece.name).items():
        for i, given in enumerate(_predict(piece, version(piece, solution, mistake.wrong), seen, wrong)):
            if given:
                predictions[i][key] = given
    return [(replace(case, mistakes=given), observation) for (case, observation), given in zip(seen, predictions)]


def _predict(piece, target, seen, wrong):
    """What a wrong version gives in each case where it differs from the solution; [] where it cannot be the one."""
    loose = replace(piece, tolerance=engine.SAME_MISTAKE)
    given, hits, misses = [], 0, 0
    for i, (case, observation) in enumerate(seen):
        theirs = quantities(piece, target, case) or {}
        theirs = {name: theirs[name] for name in _differing(piece, case.expected, theirs)}
        if not theirs.keys() <= wrong[i]:
            return []
        same = theirs.keys() - _differing(loose, theirs, _derived(piece, case, observation))
        hits, misses = hits + bool(same), misses + bool(theirs.keys() - same)
        if misses >= MISSES and not hits:
            return []
        given.append(theirs)
    return given


def _differing(piece, expected, got):
    """Names of the quantities in `got` that are not as expected."""
    known = {name: value for name, value in expected.items() if name in got}
    case = engine.Case("", {}, known)
    finding = engine.compare(replace(piece, grid=None, context=None), case, engine.Observation(engine.PASSED, got))
    return {difference.quantity for difference in finding.differences}


def _derived(piece, case, observation):
    if observation.status == engine.PASSED and piece.derive:
        observation = engine.derived(piece, case, observation)
    return observation.quantities
