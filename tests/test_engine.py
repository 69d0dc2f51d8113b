"""rl_checks/engine.py: looking, comparing in order, naming mistakes."""

import warnings

import numpy as np
import pytest
import torch

from rl_checks import engine
from rl_checks.engine import FAILED, NOT_WRITTEN, PASSED, RAISED, Case, Piece


def double(function, inputs):
    return {"y": function(inputs["x"])}


PIECE = Piece("double", double)
CASE = Case("numbers", {"x": torch.tensor([1.0, 2.0, 4.0])}, {"y": torch.tensor([2.0, 4.0, 8.0])},
            {"squared": {"y": torch.tensor([1.0, 4.0, 16.0])}})
OTHER = Case("other numbers", {"x": torch.tensor([3.0, 0.5])}, {"y": torch.tensor([6.0, 1.0])},
             {"squared": {"y": torch.tensor([9.0, 0.25])}})


def check(function, cases=(CASE, OTHER)):
    findings, names, _ = engine.check(PIECE, function, list(cases))
    return findings, names


def message(function):
    findings, _ = check(function, [CASE])
    assert findings[0].status == FAILED
    return findings[0].differences[0].kind, findings[0].differences[0].message


def test_a_right_answer_passes():
    findings, names = check(lambda x: x + x)
    assert [f.status for f in findings] == [PASSED, PASSED]
    assert names == []


@pytest.mark.parametrize("function, kind, words", [
    (lambda x: (2 * x).numpy(), "type", "y is a numpy.ndarray of shape (3,), expected a torch.Tensor"),
    (lambda x: None, "type", "y is None"),
    (lambda x: (2 * x)[:, None], "shape", "y has shape (3, 1), expected (3,)"),
    (lambda x: (2 * x).double(), "dtype", "y has dtype torch.float64, expected torch.float32"),
    (lambda x: 2 * x / 0, "finite", "y[i=0] = inf, expected 2"),
    (lambda x: torch.tensor([2.0, 4.0, 9.0]), "value", "y[i=2] = 9, expected 8 (1 of 3 entries are wrong)"),
])
def test_quantities_are_compared_in_the_order_type_shape_dtype_finite_value(function, kind, words):
    seen_kind, seen_message = message(function)
    assert (seen_kind, words in seen_message) == (kind, True), seen_message


def test_rounding_is_no_mistake_and_a_wrong_fifth_digit_is():
    assert check(lambda x: 2 * x * (1 + 2e-6))[0][0].status == PASSED
    assert check(lambda x: 2 * x * (1 + 1e-4))[0][0].status == FAILED


def test_a_stub_is_not_written_and_not_wrong():
    def stub(x):
        raise NotImplementedError("double is not written yet")
    findings, _ = check(stub)
    assert findings[0].status == NOT_WRITTEN
    assert findings[0].error == "double is not written yet"


def test_an_operation_that_torch_lacks_is_an_error_and_not_a_stub():
    def unsupported(x):
        return torch.linalg.inv(torch.ones(2, 2, dtype=torch.float16))  # raises RuntimeError or NotImplementedError
    assert check(unsupported)[0][0].status == RAISED


def test_an_exception_is_told_by_the_line_of_the_student():
    def broken(x):
        return x + undefined_name  # noqa: F821
    finding = check(broken)[0][0]
    assert finding.status == RAISED
    assert finding.error == "NameError: name 'undefined_name' is not defined"
    assert "broken, line" in finding.place
    assert "return x + undefined_name" in finding.place


def test_exit_is_an_error_like_any_other():
    assert check(lambda x: exit(0))[0][0].status == RAISED


def test_a_known_mistake_is_named():
    assert check(lambda x: x * x)[1] == ["squared"]


def test_random_wrong_outputs_get_no_name():
    torch.manual_seed(1)
    for _ in range(200):
        assert check(lambda x: torch.randn(3 if len(x) == 3 else 2))[1] == []
    assert check(lambda x: torch.zeros_like(x))[1] == []


def test_one_coinciding_case_is_too_little_for_a_name():
    assert check(lambda x: x * x if len(x) == 3 else x - 7)[1] == []


def test_a_student_cannot_change_the_inputs_of_the_next_case():
    def spoil(x):
        y = 2 * x
        x.zero_()
        return y
    assert [f.status for f in check(spoil, [CASE, CASE])[0]] == [PASSED, PASSED]


def test_looking_leaves_the_random_numbers_of_the_notebook_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    check(lambda x: 2 * x + 0 * torch.rand(3)[: len(x)])
    assert torch.equal(torch.rand(2), expected)


def test_warnings_of_the_student_do_not_reach_stderr(capsys):
    def noisy(x):
        warnings.warn("careful", stacklevel=2)
        return 2 * x
    assert check(noisy)[0][0].status == PASSED
    assert capsys.readouterr().err == ""


def test_derive_turns_what_was_sent_into_quantities():
    piece = Piece("sorts", lambda f, inputs: {"order": f(inputs["x"])},
                  derive=lambda raw, inputs: {"sorted": bool((raw["order"].diff() >= 0).all())})
    case = Case("three", {"x": torch.tensor([3.0, 1.0, 2.0])}, {"sorted": True})
    assert engine.check(piece, lambda x: x.sort().values, [case])[0][0].status == PASSED
    assert engine.check(piece, lambda x: x, [case])[0][0].status == FAILED


def test_a_backward_recursion_is_located_at_the_largest_wrong_step():
    wrong = torch.zeros(5, 3, dtype=torch.bool)
    wrong[1, 0] = wrong[3, 2] = True
    assert engine.locate(wrong, backwards=True) == (3, 2)
    assert engine.locate(wrong) == (1, 0)


@pytest.mark.parametrize("value, words", [
    (None, "None"), (np.zeros(3), "a numpy.ndarray of shape (3,)"), (Piece, "the class Piece"), (3, "an int")])
def test_values_are_described_in_words(value, words):
    assert engine.describe(value) == words
