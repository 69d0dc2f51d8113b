"""Where in a rollout do the numbers go wrong? A table around the fault and a map of the error over (env, t).

A recursion that runs backwards in time carries an error from step t to every earlier step of the episode, so the
LARGEST wrong t is where it starts.
"""

import torch

from rl_checks.engine import locate, number

AROUND = 2  # rows shown on each side of the fault
MAX_CELLS = 400  # of the map: a report stays small


def blocks(finding, paragraph, table, error_map):
    """The blocks for the first rollout quantity of a failed finding that has values to compare; [] where there is none.

    paragraph, table, error_map   the block classes of rl_checks.report
    """
    piece, inputs = finding.piece, finding.case.inputs
    for difference in finding.differences:
        if difference.wrong is None or piece.grid is None:
            continue
        wrong = piece.grid(difference.quantity, difference.wrong, inputs)
        if wrong is None or wrong.numel() < 2:
            continue
        expected = piece.grid(difference.quantity, difference.expected, inputs)
        got = piece.grid(difference.quantity, difference.got.detach().cpu(), inputs)
        context = piece.context(inputs) if piece.context else {}
        t, env = _worst(wrong, expected, got, piece.backwards)
        why = "The sum runs backwards in time, so the mistake starts" if piece.backwards else "It starts"
        out = [paragraph(f"{why} at {'the largest wrong t' if piece.backwards else 'the first wrong t'}: "
                         f"(t={t}, env={env}), expected {number(expected[t, env])}, got {number(got[t, env])}."),
               _rows(difference.quantity, expected, got, context, t, env, table)]
        if piece.backwards and "ends" in context and (sentence := pattern(wrong, context["ends"])):
            out.append(paragraph(sentence))
        if wrong.numel() <= MAX_CELLS:
            out.append(_map(expected, got, wrong, context.get("ends"), (t, env), error_map))
        return out
    return []


def pattern(wrong, ends):
    """What the places of the errors have in common, as a sentence; "" if nothing that we know of.

    wrong    [T, N] bool
    ends     [T, N] bool   step t is the last of its episode
    returns  str           where the errors start tells which part of a backward recursion makes them
    """
    last = torch.zeros_like(wrong)
    last[-1] = True
    alone = ends | last  # no later advantage flows in here
    after = torch.cat([wrong[1:], torch.zeros_like(wrong[:1])])
    starts = wrong & (alone | ~after)
    if wrong.any() and torch.equal(wrong, ~alone):
        return ("Right wherever no later advantage flows in, wrong everywhere else: look at the weight of the next advantage, "
                "or the direction of the loop.")
    if starts.any() and not (starts & ~(last & ~ends)).any():
        return "Every error starts at the last step of the rollout where its episode goes on: look at the term with next_value."
    if starts.any() and not (starts & ~(last & ends)).any():
        return "Every error starts where an episode ends with the rollout: look at next_done."
    if starts.any() and not (starts & ~ends).any():
        return "Every error starts at the last step of an episode: look at what you do where an episode ends."
    begins = torch.cat([torch.ones_like(ends[:1]), ends[:-1]])
    if starts.any() and not (starts & ~begins).any():
        return "Every error starts at the first step of an episode: your flags are one step off."
    return ""


def _worst(wrong, expected, got, backwards):
    """(t, env) to show: the row of time in which it starts, and there the environment with the largest error."""
    t, _ = locate(wrong, backwards)
    error = (got[t].double() - expected[t].double()).abs().nan_to_num(torch.inf)
    return t, int(torch.where(wrong[t], error, -1.0).argmax())


def _rows(quantity, expected, got, context, t, env, table):
    low, high = max(0, t - AROUND), min(len(expected), t + AROUND + 1)
    columns = [name for name in context if name != "ends"]
    ends = context.get("ends")
    rows = tuple((f"t={i}", *(number(context[name][i, env]) for name in columns), number(expected[i, env]),
                  number(got[i, env]), f"{float(got[i, env]) - float(expected[i, env]):+.5g}",
                  "ends" if ends is not None and ends[i, env] else "") for i in range(low, high))
    return table((f"env {env}", *columns, "expected", "yours", "difference", "episode"), rows, bold=t - low)


def _map(expected, got, wrong, ends, focus, error_map):
    error = torch.where(wrong, (got.double() - expected.double()).abs(), 0.0)
    largest = error[torch.isfinite(error)].max() if torch.isfinite(error).any() else torch.tensor(0.0)
    # Steps of a sixth: the eye tells no more, and equal cells make the page small.
    shades = torch.where(torch.isfinite(error), error / largest.clamp(min=1e-12), 1.0).mul(6).ceil().div(6)
    shades = torch.where(wrong, shades.clamp(min=1 / 6), 0.0)
    steps, envs = expected.shape
    return error_map(tuple(tuple(float(shades[t, n]) for t in range(steps)) for n in range(envs)),
                     tuple(tuple("|" if ends is not None and ends[t, n] else "" for t in range(steps)) for n in range(envs)),
                     focus)
