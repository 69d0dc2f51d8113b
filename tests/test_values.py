"""rl_checks/values.py: tensors as JSON and back."""

import json
import math

import pytest
import torch

from rl_checks.values import decode, encode


@pytest.mark.parametrize("value", [
    torch.tensor([[0.1, -2.0], [3.0000002, 1e-30]]), torch.tensor(0.5, dtype=torch.float64), torch.zeros(0, 3),
    torch.tensor([True, False]), torch.tensor([2**62, -1]), None, True, 3, 0.25, "x", [1, [2.5, None]],
    {"a": torch.tensor([1.0]), "b": "c"}])
def test_a_value_survives_the_way_through_json(value):
    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    if isinstance(value, torch.Tensor):
        assert back.dtype == value.dtype
        assert back.shape == value.shape
        assert torch.equal(back, value)
    else:
        assert back == value or (isinstance(value, dict) and torch.equal(back["a"], value["a"]))


def test_infinities_and_nan_are_strict_json():
    back = decode(json.loads(json.dumps(encode(torch.tensor([float("nan"), float("inf")])), allow_nan=False)))
    assert torch.isnan(back[0])
    assert torch.isinf(back[1])
    assert math.isnan(decode(encode(float("nan"))))
    assert decode(encode("nan")) == "nan"  # a text stays a text


def test_digits_shorten_what_need_not_be_exact():
    assert encode(torch.tensor([1 / 3]), digits=6)["data"] == [0.333333]


def test_other_objects_are_refused_by_name():
    with pytest.raises(TypeError, match="set"):
        encode({1, 2})
