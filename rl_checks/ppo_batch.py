"""Observers of 03_ppo_details: advantages and minibatches. T steps, N envs, B = T * N rows, M rows of a minibatch."""

import numpy as np
import torch

from rl_checks.engine import Piece, WrongKind, changed_inputs, describe, expect_tensors
from rl_checks.ppo_agent import standing_in

ROLLOUT = ("next_value", "next_done", "rewards", "values", "dones")
FIELDS = ("obs", "logprobs", "actions", "advantages", "returns", "values")  # of a Minibatch


def observe_compute_advantages(compute_advantages, inputs):
    rollout = {name: inputs[name].clone() for name in ROLLOUT}
    returned = compute_advantages(*rollout.values(), torch.device("cpu"), inputs["gamma"], inputs["gae_lambda"])
    (advantages,) = expect_tensors(returned, "compute_advantages", ("advantages",))
    return {"advantages": advantages, "inputs changed": changed_inputs(inputs, rollout | _rest(inputs, rollout))}


def observe_without_loop(compute_advantages, inputs):
    """The same, and how many torch calls it takes for a short and for a long rollout."""
    return observe_compute_advantages(compute_advantages, inputs) | {
        "torch calls": torch.tensor([_calls(compute_advantages, T) for T in (8, 256)])}


def derive_without_loop(raw, inputs):
    seen = dict(raw)
    short, long = seen.pop("torch calls").tolist()
    # Doubling, the cleverest loop there is, takes 8 rounds where 3 were enough before; a loop over t takes 256.
    seen["its work grows with every step of the rollout"] = long > 8 * max(short, 1)
    return seen


def observe_minibatch_indexes(minibatch_indexes, inputs):
    B, M = inputs["batch_size"], inputs["minibatch_size"]
    if B % M:  # refusing such a batch is right; dealing only a part of it is not
        try:
            calls = [minibatch_indexes(B, M)]
        except NotImplementedError:
            raise
        except Exception:
            return {"refused": True}
    else:
        calls = [minibatch_indexes(B, M) for _ in range(3)]
    seen = {}
    for i, dealt in enumerate(calls):
        arrays = [_indexes(array) for array in _listed(dealt, "minibatch_indexes", "index arrays")]
        seen[f"sizes {i}"] = torch.tensor([len(array) for array in arrays], dtype=torch.int64)
        seen[f"indexes {i}"] = torch.cat(arrays) if arrays else torch.zeros(0, dtype=torch.int64)
    return seen


def derive_minibatch_indexes(raw, inputs):
    B, M = inputs["batch_size"], inputs["minibatch_size"]
    if raw.get("refused"):
        return exactly_once([], B) | {"rows left out": ""}
    first = raw["indexes 0"].tolist()
    if B % M:
        return exactly_once(first, B)
    calls = [raw[f"indexes {i}"].tolist() for i in range(3)]
    sizes = ", ".join(map(str, raw["sizes 0"].tolist()))
    return {"sizes of the minibatches": sizes} | exactly_once(first, B) | shuffling(calls, [
        raw[f"sizes {i}"].tolist() for i in range(3)])


def observe_make_minibatches(make_minibatches, inputs):
    names = ("obs", "logprobs", "actions", "advantages", "values")
    rollout = {name: inputs[name].clone() for name in names}
    T, N = rollout["values"].shape
    obs_shape, action_shape = tuple(rollout["obs"].shape[2:]), tuple(rollout["actions"].shape[2:])
    deals = inputs["deals"].clone()
    own = getattr(make_minibatches, "__globals__", {}).get("minibatch_indexes")
    seen = {}
    with standing_in(make_minibatches, minibatch_indexes=_dealer(deals, own)):
        for i in range(2):
            minibatches = make_minibatches(*rollout.values(), obs_shape, action_shape, T * N, inputs["minibatch_size"])
            minibatches = _listed(minibatches, "make_minibatches", "Minibatch objects")
            for field in FIELDS:
                columns = [_column(minibatch, field) for minibatch in minibatches]
                if i == 0:
                    seen[f"shape of {field}"] = str(tuple(columns[0].shape))
                if i == 0 or field == "obs":
                    seen[f"{field} {i}"] = torch.cat([column.reshape(len(column), -1) for column in columns])
            seen[f"sizes {i}"] = torch.tensor([len(minibatch.obs) for minibatch in minibatches], dtype=torch.int64)
    seen["inputs changed"] = changed_inputs(inputs, rollout | _rest(inputs, rollout))
    return seen


def derive_make_minibatches(raw, inputs):
    """Back in the order of the rollout: row t*N + n of every field. Observations say which row it is."""
    T, N = inputs["values"].shape
    known = {tuple(row): i for i, row in enumerate(inputs["obs"].reshape(T * N, -1).tolist())}
    calls = [[known.get(tuple(row), -1) for row in raw[f"obs {i}"].tolist()] for i in range(2)]
    first = torch.tensor(calls[0])
    seen = {f"shape of {field}": raw[f"shape of {field}"] for field in FIELDS}
    seen |= {"sizes of the minibatches": ", ".join(map(str, raw["sizes 0"].tolist()))}
    seen |= exactly_once(calls[0], T * N)
    seen |= shuffling(calls, [raw[f"sizes {i}"].tolist() for i in range(2)])
    for field in FIELDS[1:]:
        seen[f"{field} of the rows"] = raw[f"{field} 0"][first.argsort(stable=True)].squeeze(-1)
    return seen | {"inputs changed": raw["inputs changed"]}


def exactly_once(rows, size):
    """Raw quantities: which of the rows 0 .. size-1 are missing, doubled, or none of them."""
    counts = {row: rows.count(row) for row in set(rows)}
    return {"rows left out": _few(row for row in range(size) if row not in counts),
            "rows in more than one minibatch": _few(row for row, count in counts.items() if count > 1),
            "rows that are not in the batch": _few(row for row in counts if not 0 <= row < size)}


def shuffling(calls, sizes):
    """Flags about the order in which several calls dealt the rows."""
    groups = [[frozenset(part) for part in _split(rows, size)] for rows, size in zip(calls, sizes)]
    return {
        "the rows come in the order of the batch": calls[0] == sorted(calls[0]),
        "two calls give the same order": any(rows == calls[0] for rows in calls[1:]),
        "two calls put the same rows together": any(set(parts) == set(groups[0]) for parts in groups[1:]),
        # Of rows i and i+1 about M/B share a minibatch by chance; if almost all do, blocks were kept.
        "neighbouring rows stay together": _neighbours(groups[0]) > 0.75,
    }


def _neighbours(parts):
    where = {row: i for i, part in enumerate(parts) for row in part}
    pairs = [(row, row + 1) for row in where if row + 1 in where]
    return sum(where[a] == where[b] for a, b in pairs) / max(len(pairs), 1)


def _split(rows, sizes):
    parts, start = [], 0
    for size in sizes:
        parts.append(rows[start:start + size])
        start += size
    return parts


def _few(rows):
    rows = sorted(rows)
    return ", ".join(map(str, rows[:6])) + (f" … ({len(rows)} rows)" if len(rows) > 6 else "")


def _dealer(deals, own):
    """Stands in for minibatch_indexes: deals prepared orders, in the kind of array that the student's own gives."""
    try:
        kind = type(next(iter(own(4, 2))))
    except Exception:
        kind = torch.Tensor
    turn = iter(range(10**6))

    def minibatch_indexes(batch_size, minibatch_size):
        parts = deals[next(turn) % len(deals)].split(minibatch_size)
        return [part.numpy() if kind is np.ndarray else part.tolist() if kind in (list, tuple) else part for part in parts]
    return minibatch_indexes


def _listed(value, function, what):
    if isinstance(value, (torch.Tensor, np.ndarray)) and value.ndim == 2:
        return list(value)
    if value is None or isinstance(value, (str, dict)) or not hasattr(value, "__iter__"):
        raise WrongKind(f"{function} must return a list of {what}; it returned {describe(value)}")
    return list(value)


def _indexes(array):
    """One index array as a tensor, whatever it came as."""
    if not isinstance(array, (torch.Tensor, np.ndarray, list, tuple, range)):
        raise WrongKind(f"minibatch_indexes must return a list of index arrays; one of them is {describe(array)}")
    array = torch.as_tensor(np.asarray(array) if not isinstance(array, torch.Tensor) else array)
    if array.dim() != 1 or array.dtype.is_floating_point or array.dtype == torch.bool:
        raise WrongKind(f"an index array holds whole numbers in one dimension; one of yours has dtype {array.dtype} and "
                        f"shape {tuple(array.shape)}")
    return array.long()


def _column(minibatch, field):
    column = getattr(minibatch, field, None)
    if not isinstance(column, torch.Tensor) or column.dim() == 0:
        raise WrongKind(f"make_minibatches must return a list of Minibatch objects; their {field} is {describe(column)}, "
                        f"expected a torch.Tensor with one row per sample")
    return column.detach()


def _calls(function, T):
    """Torch functions called for a rollout of T steps of 2 environments."""
    class Counter(torch.overrides.TorchFunctionMode):
        count = 0

        def __torch_function__(self, called, types, arguments=(), options=None):
            Counter.count += 1
            return called(*arguments, **(options or {}))

    column = torch.arange(2 * T, dtype=torch.float32).remainder(3).reshape(T, 2)
    with Counter():
        function(column[:1], column[0] * 0, column, column, column * 0, torch.device("cpu"), 0.5, 0.75)
    return Counter.count


def _rest(inputs, rollout):
    return {name: value for name, value in inputs.items() if name not in rollout}


def _grid(quantity, value, inputs):
    return value if quantity == "advantages" and value.dim() == 2 else None


def _context(inputs):
    """The line of the rollout that the advantages were made of; `ends` marks the last step of an episode."""
    ended = torch.cat([inputs["dones"][1:], inputs["next_done"][None]])
    following = torch.cat([inputs["values"][1:], inputs["next_value"]])
    deltas = inputs["rewards"] + inputs["gamma"] * following * (1 - ended) - inputs["values"]
    return {"r": inputs["rewards"], "V": inputs["values"], "done": inputs["dones"], "delta": deltas, "ends": ended.bool()}


_ADVANTAGES = {"grid": _grid, "context": _context, "backwards": True,
               "words": {"inputs changed": "compute_advantages must not change its inputs, it changed"}}
PIECES = {
    "compute_advantages": Piece("compute_advantages", observe_compute_advantages, **_ADVANTAGES),
    "minibatch_indexes": Piece("minibatch_indexes", observe_minibatch_indexes, derive=derive_minibatch_indexes),
    "make_minibatches": Piece(
        "make_minibatches", observe_make_minibatches, derive=derive_make_minibatches,
        axes={f"{field} of the rows": ("row",) for field in FIELDS},
        words={f"{field} of the rows": f"{field}, back in the order of the rollout," for field in FIELDS}
        | {"inputs changed": "make_minibatches must not change its inputs, it changed"}),
}
BONUS = {
    "compute_advantages_without_loop": Piece(
        "compute_advantages_without_loop", observe_without_loop, derive=derive_without_loop, **_ADVANTAGES),
}
