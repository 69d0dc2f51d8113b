"""Messages from the process that runs student code are hostile until they are decoded."""

import base64
import json
import math

import pytest
import torch

from grading import wire

VALUES = [torch.tensor([1.5, -2.0]), torch.zeros(0), torch.tensor(3), torch.ones(2, 3, dtype=torch.bool),
          torch.arange(6).reshape(2, 3).T, None, True, 7, 0.1, "text", [1, "a"], {"x": torch.ones(2)}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_packed_comes_back_the_same(value):
    back = wire.unpack(json.loads(wire.dumps({"v": wire.pack(value)}))["v"])
    if isinstance(value, torch.Tensor):
        assert back.dtype == value.dtype and back.shape == value.shape and torch.equal(back, value)
    elif not isinstance(value, dict):
        assert back == value and type(back) is type(value)


def test_nan_and_infinity_travel_as_text():
    assert wire.pack(math.inf) == {"float": "inf"}
    assert math.isnan(wire.unpack({"float": "nan"}))
    assert torch.isnan(wire.unpack(wire.pack(torch.tensor([math.nan])))).all()


def test_a_tensor_with_a_gradient_is_detached():
    assert not wire.unpack(wire.pack(torch.ones(2, requires_grad=True) * 2)).requires_grad


def tensor(dtype="float32", shape=(1,), data=b"\0\0\0\0"):
    data = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return {"tensor": dtype, "shape": shape if not isinstance(shape, tuple) else list(shape), "bytes": data}


HOSTILE = {
    "unknown dtype": tensor("object"), "dtype that is no text": tensor(3), "negative size": tensor(shape=(-1,)),
    "size that is a bool": tensor(shape=(True,)), "size that is a float": tensor(shape=(1.0,)),
    "shape of text": tensor(shape="1"),
    "shape of nine dimensions": tensor(shape=(1,) * 9), "too many numbers": tensor(shape=(2**19, 2**19)),
    "too many bytes": tensor(data=b"\0" * 8), "too few bytes": tensor(data=b""), "not base64": tensor(data="@@@@"),
    "bytes that are a list": tensor(data=[0]), "not ascii": tensor(data="ä"), "an extra key": {**tensor(), "x": 1},
    "bare list": [1], "unknown object": {"pickle": "gASVCg=="}, "deep nesting": {"list": [{"list": [{"list": [{"list": [
        {"list": [{"list": []}]}]}]}]}]}, "long list": {"list": [0] * 5000}, "huge integer": 10**30,
    "float that is no number": {"float": "1e400"}, "dict of a list": {"dict": [1]}, "list of a dict": {"list": {}},
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_value_is_refused(value):
    with pytest.raises(wire.Refused):
        wire.unpack(value)


def test_many_small_tensors_count_together():
    big = tensor(shape=(2**20,), data=b"\0" * 2**22)
    with pytest.raises(wire.Refused, match="too many numbers"):
        wire.unpack({"list": [big, tensor()]})


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b'{"x": NaN}', b'{"x": Infinity}', b"\xff\xfe", b"[" * 100_000,
                                  b'{"a":' * 50_000, b"9" * 5000], ids=lambda line: repr(line[:12]))
def test_a_line_that_is_no_json_object_is_refused(line):
    with pytest.raises(wire.Refused):
        wire.loads(line)


def test_a_message_cannot_carry_nan_as_bare_json():
    with pytest.raises(ValueError):
        wire.dumps({"x": math.nan})


def test_texts_are_cut_to_size():
    assert len(wire.text("x" * 10**6)) == wire.MAX_TEXT
    with pytest.raises(wire.Refused):
        wire.text(["x"])


@pytest.mark.parametrize("value", [object(), torch.ones(2, dtype=torch.complex64), {1, 2}, torch.ones(2).to_sparse()], ids=type)
def test_what_has_no_form_cannot_be_handed_in(value):
    with pytest.raises(wire.Refused):
        wire.pack(value)
