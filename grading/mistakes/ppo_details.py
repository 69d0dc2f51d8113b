"""Known mistakes of 03_ppo_details."""

from grading.mistakes import Book

MISTAKES = Book()
