"""Observers of 03_ppo_details: advantages and minibatches. T steps, N envs, B = T * N rows, M rows of a minibatch."""

import numpy as np
import torch

from rl_checks.engine import Piece, WrongKind, changed_inputs, describe, expect_tensors
from rl_checks.ppo_agent import standing_in

ROLLOUT = ("next_value", "next_done", "rewards", "values", "dones")
DEALT, ORDER = "how often each row is dealt", "order of the rows"  # quantities
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
        return {DEALT: how_often(range(B), B)}
    first = raw["indexes 0"].tolist()
    if B % M:
        return {DEALT: how_often(first, B)}
    calls, sizes = ([raw[f"{what} {i}"].tolist() for i in range(3)] for what in ("indexes", "sizes"))
    return {"sizes of the minibatches": ", ".join(map(str, sizes[0])), DEALT: how_often(first, B),
            ORDER: shuffling(calls, sizes)}


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
    own = {field: inputs[field].reshape(T * N, -1) for field in FIELDS if field in inputs}
    own["returns"] = own["advantages"] + own["values"]
    known = {tuple(row): i for i, row in enumerate(own["obs"].tolist())}
    calls = [[known.get(tuple(row), -1) for row in raw[f"obs {i}"].tolist()] for i in range(2)]
    seen = {f"shape of {field}": raw[f"shape of {field}"] for field in FIELDS}
    sizes = [raw[f"sizes {i}"].tolist() for i in range(2)]
    seen["sizes of the minibatches"] = ", ".join(map(str, sizes[0]))
    seen[DEALT], seen[ORDER] = how_often(calls[0], T * N), shuffling(calls, sizes)
    back, strangers = torch.tensor(calls[0]).argsort(stable=True), []
    for field in FIELDS[1:]:
        column = raw[f"{field} 0"][back]
        if _same_rows(column, own[field]) and not torch.equal(column, own[field]):
            # Right numbers beside wrong observations; beside which ones may be left to chance, so it is not compared.
            strangers.append(field + " (transposed)" * _transposed(column, own[field], T, N))
            column = own[field]
        seen[f"{field} of the rows"] = column.squeeze(-1)
    return seen | {"fields that stand beside the observation of another row": ", ".join(strangers),
                   "inputs changed": raw["inputs changed"]}


def _transposed(column, own, T, N):
    """Are the rows those of a rollout flattened environment by environment, or its inverse?"""
    return any(torch.equal(column, own.reshape(a, b, -1).transpose(0, 1).reshape(own.shape)) for a, b in ((T, N), (N, T)))


def how_often(rows, size):
    """How often each of the rows 0 .. size-1 is dealt, in words that do not depend on chance."""
    rows = list(rows)
    words = ["some never"] if set(range(size)) - set(rows) else []
    words += ["some more than once"] if len(set(rows)) < len(rows) else []
    words += ["some that are not in the batch"] if set(rows) - set(range(size)) else []
    return ", ".join(words) or "exactly once"


def shuffling(calls, sizes):
    """In which order several calls dealt the rows, in words that do not depend on chance."""
    groups = [[frozenset(part) for part in _split(rows, size)] for rows, size in zip(calls, sizes)]
    if all(rows == calls[0] for rows in calls[1:]):
        return "that of the batch" if calls[0] == sorted(calls[0]) else "the same at every call"
    if all(set(parts) == set(groups[0]) for parts in groups[1:]):
        return "at every call the same rows share a minibatch"
    # Of rows i and i+1 about M/B share a minibatch by chance; if almost all do, blocks were kept.
    return "neighbouring rows stay together" if _neighbours(groups[0]) > 0.75 else "shuffled, anew at every call"


def _same_rows(column, own):
    return column.shape == own.shape and sorted(column.tolist()) == sorted(own.tolist())


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
