"""What passes between the judge and the process that runs student code: one JSON object a line.

Tensors travel as raw little-endian bytes in base64, never as pickles. Whatever comes from the student's side is
hostile until decoded: unknown dtypes, wrong sizes, deep nesting and long strings are refused.
"""

import base64
import json
import math

import numpy as np
import torch

MAX_LINE = 8 * 2**20  # bytes of one message
MAX_ELEMENTS = 2**20  # of all tensors of one message
MAX_TEXT = 8000
MAX_ITEMS = 4096
MAX_DEPTH = 4
_DTYPES = {"float32": "<f4", "float64": "<f8", "float16": "<f2", "int64": "<i8", "int32": "<i4", "int16": "<i2",
           "int8": "<i1", "uint8": "<u1", "bool": "|b1"}


class Refused(ValueError):
    """A message from the student's side that is not of the agreed form."""


def pack(value):
    """A JSON-able twin of a tensor, bool, int, float, str, None, or a list or dict of these."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        if name not in _DTYPES:
            raise Refused(f"a tensor of dtype {name} cannot be handed in")
        if value.layout is not torch.strided:
            raise Refused(f"a tensor of layout {value.layout} cannot be handed in")
        array = value.detach().cpu().contiguous().numpy()
        return {"tensor": name, "shape": list(value.shape), "bytes": base64.b64encode(array.tobytes()).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return {"list": [pack(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {key: pack(item) for key, item in value.items()}}
    raise Refused(f"a {type(value).__name__} cannot be handed in")


def unpack(value):
    """The inverse of pack. raises Refused for everything that pack does not make."""
    return _unpack(value, [MAX_ELEMENTS], 0)


def dumps(message):
    """One line, newline included."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def loads(line):
    """A message, which is a JSON object. raises Refused"""
    try:
        message = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON: {str(error)[:100]}") from None
    if not isinstance(message, dict):
        raise Refused("not a JSON object")
    return message


def text(value, limit=MAX_TEXT):
    """A string of the student's side, cut to size."""
    if not isinstance(value, str):
        raise Refused("expected a text")
    return value[:limit]


def _unpack(value, left, depth):
    if depth > MAX_DEPTH:
        raise Refused("nested too deeply")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise Refused("an integer beyond 64 bits")
        return value
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        return text(value)
    if not isinstance(value, dict):
        raise Refused(f"a bare {type(value).__name__}")
    if value.keys() == {"tensor", "shape", "bytes"}:
        return _tensor(value, left)
    if value.keys() == {"float"} and value["float"] in ("nan", "inf", "-inf"):
        return float(value["float"])
    if value.keys() == {"list"} and isinstance(value["list"], list) and len(value["list"]) <= MAX_ITEMS:
        return [_unpack(item, left, depth + 1) for item in value["list"]]
    if value.keys() == {"dict"} and isinstance(value["dict"], dict) and len(value["dict"]) <= MAX_ITEMS:
        return {text(key, 200): _unpack(item, left, depth + 1) for key, item in value["dict"].items()}
    raise Refused("an object of unknown form")


def _tensor(value, left):
    name, shape, data = value["tensor"], value["shape"], value["bytes"]
    if not isinstance(name, str) or name not in _DTYPES:
        raise Refused("a tensor of unknown dtype")
    if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and 0 <= n <= MAX_ELEMENTS for n in shape):
        raise Refused("a tensor of impossible shape")
    left[0] -= math.prod(shape)
    if left[0] < 0:
        raise Refused("too many numbers")
    if not isinstance(data, str):
        raise Refused("a tensor without bytes")
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        raise Refused("a tensor whose bytes are not base64") from None
    dtype = np.dtype(_DTYPES[name])
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise Refused("a tensor with too few or too many bytes")
    if name == "bool":
        return torch.from_numpy((np.frombuffer(raw, np.uint8) != 0).reshape(shape))
    return torch.from_numpy(np.frombuffer(raw, dtype).reshape(shape).copy())


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")
