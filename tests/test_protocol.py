"""rl_tests.run_tests and check_torch_tensor: checks that an instructor writes as a generator."""

import numpy as np
import pytest
import torch

import rl_tests


def run(generator, capsys):
    """(report or CheckFailed, what was printed)"""
    try:
        outcome = rl_tests.run_tests(generator)
    except rl_tests.CheckFailed as error:
        outcome = error
    return outcome, capsys.readouterr().out


def test_a_generator_of_passing_checks_gives_a_report(capsys):
    def checks():
        yield "shapes"
        yield True, "never shown"
        yield None
        yield torch.tensor(True), "a 0-d tensor will do"
        yield None
        yield "values"
        yield np.bool_(True), "and a numpy bool"
    report, printed = run(checks(), capsys)
    assert report.passed
    assert [(row.title, row.summary) for row in report.rows] == [("shapes", "2 cases"), ("values", "1 checks")]
    assert "never shown" not in printed


def test_a_failed_check_raises_with_its_message_and_its_case(capsys):
    def checks():
        yield "targets"
        yield True, "fine"
        yield None
        yield torch.tensor(False), "targets are not A + V"
        yield None
    failed, _ = run(checks(), capsys)
    assert isinstance(failed, AssertionError)
    assert "targets" in str(failed)
    assert "case 2: targets are not A + V" in str(failed)


def test_later_sections_still_run_after_a_failed_check(capsys):
    def checks():
        yield "first"
        yield False, "wrong"
        yield "second"
        yield True, "right"
    failed, _ = run(checks(), capsys)
    assert [row.status for row in failed.report.rows] == ["failed", "passed"]


def test_the_outcome_of_a_check_is_sent_back(capsys):
    seen = []

    def checks():
        seen.append((yield torch.tensor(True), "x"))
        seen.append((yield False, "x"))
    run(checks(), capsys)
    assert seen == [True, False]


def test_a_section_that_is_not_written_yet_says_so(capsys):
    def checks():
        yield "given"
        yield True, ""
        yield "to write"
        raise NotImplementedError("loss is not written yet")
    failed, _ = run(checks(), capsys)
    assert [row.status for row in failed.report.rows] == ["passed", "not written yet"]
    assert "loss is not written yet" in str(failed)


def test_an_exception_of_the_student_is_reported_and_not_raised(capsys):
    def student(x):
        return x / [1]

    def checks():
        yield "division"
        student(3)
    failed, _ = run(checks(), capsys)
    assert failed.report.rows[0].status == "raised"
    assert "TypeError" in str(failed)
    assert "return x / [1]" in str(failed)


def test_seeds_set_in_the_generator_hold_over_its_checks(capsys):
    drawn = []

    def checks():
        torch.manual_seed(42)
        drawn.append(torch.rand(1))
        yield True, ""
        drawn.append(torch.rand(1))
    run(checks(), capsys)
    torch.manual_seed(42)
    assert torch.equal(torch.cat(drawn), torch.rand(2)) or torch.equal(drawn[1], torch.rand(2)[1:])


def test_check_torch_tensor_returns_a_bool_and_stops_at_the_first_difference(capsys):
    outcomes = {}

    def checks():
        x = torch.zeros(3, 4)
        outcomes["right"] = yield from rl_tests.check_torch_tensor(x, "x", (3, 4), torch.float32)
        outcomes["any size"] = yield from rl_tests.check_torch_tensor(x, "x", (None, 4))
        outcomes["0-d"] = yield from rl_tests.check_torch_tensor(x.sum(), "sum", ())
        outcomes["type"] = yield from rl_tests.check_torch_tensor(x.numpy(), "array", (9,), torch.int64)
        outcomes["shape"] = yield from rl_tests.check_torch_tensor(x, "y", torch.Size([4, 3]), torch.int64)
        outcomes["dtype"] = yield from rl_tests.check_torch_tensor(x, "z", None, torch.int64)
    failed, _ = run(checks(), capsys)
    assert outcomes == {"right": True, "any size": True, "0-d": True, "type": False, "shape": False, "dtype": False}
    for words in ("array is a numpy.ndarray of shape (3, 4), expected a torch.Tensor",
                  "y has shape (3, 4), expected (4, 3)", "z has dtype torch.float32, expected torch.int64"):
        assert words in str(failed)


@pytest.mark.parametrize("item", [3, (True,), (torch.tensor([True, True]), "which?")])
def test_a_generator_that_yields_something_else_is_told_so(item):
    def checks():
        yield "section"
        yield item
    with pytest.raises(TypeError, match="section"):
        rl_tests.run_tests(checks())


def test_a_function_instead_of_a_generator_is_told_so():
    with pytest.raises(TypeError, match="generator"):
        rl_tests.run_tests(lambda: None)


def test_a_generator_without_checks_proves_nothing():
    with pytest.raises(TypeError, match="no check"):
        rl_tests.run_tests(iter_nothing())


def iter_nothing():
    return
    yield
