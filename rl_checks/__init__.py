"""The rooms behind rl_tests.py: how a student's work is looked at, compared and reported.

engine          cases, observations, comparison, diagnosis
report          findings as text and as HTML
microscope      where in a rollout the numbers go wrong
protocol        run_tests and check_torch_tensor, for checks written in a cell
values          tensors as JSON
NOTEBOOK        the observers of one notebook's pieces

Everything here travels with the student's notebook, so nothing here knows an expected value: those are in
reference.json (visible cases) or on the grader's side (fresh cases).
"""
