"""Known mistakes of 01_policy_gradients."""

from grading.mistakes import Book
from grading.mistakes.policy_gradients import policies, returns

MISTAKES = Book({**returns.MISTAKES, **policies.MISTAKES})
