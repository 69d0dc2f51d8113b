"""Tensors and plain values as JSON, exact for float32 and readable in a diff."""

import math

import numpy as np
import torch

DTYPES = {name: getattr(torch, name) for name in ("float32", "float64", "int32", "int64", "uint8", "bool")}


def encode(value, digits=None):
    """A JSON-able twin of `value`: a tensor, bool, int, float, str, None, or a list or dict of these.

    digits   significant digits kept of every float; None keeps the value exactly
    raises   TypeError for anything else
    """
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().reshape(-1)
        return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape),
                "data": [_number(x, digits) for x in flat.numpy()]}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        number = _number(value, digits)
        return {"float": number} if isinstance(number, str) else number
    if isinstance(value, (list, tuple)):
        return [encode(item, digits) for item in value]
    if isinstance(value, dict):
        return {"dict": {key: encode(item, digits) for key, item in value.items()}}
    raise TypeError(f"cannot write a {type(value).__name__} to reference.json")


def decode(value):
    """The inverse of encode; a list comes back as a list."""
    if isinstance(value, dict) and "dtype" in value:
        data = [_special(x) for x in value["data"]]
        return torch.tensor(data, dtype=DTYPES[value["dtype"]]).reshape(value["shape"])
    if isinstance(value, dict) and "float" in value:
        return float(value["float"])
    if isinstance(value, dict):
        return {key: decode(item) for key, item in value["dict"].items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value


def _number(x, digits):
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, (int, np.integer)):
        return int(x)
    if not math.isfinite(x):
        return str(float(x))  # strict JSON has no NaN
    if digits is not None:
        x = float(f"{float(x):.{digits}g}")
    # float32 prints its shortest form ("0.1"), which reads back as the same float32.
    return float(str(x)) if isinstance(x, np.float32) else float(x)


def _special(x):
    return float(x) if x in ("nan", "inf", "-inf") else x
