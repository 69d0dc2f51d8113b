"""Fixtures of several test files."""

import pytest


@pytest.fixture
def watched(monkeypatch):
    """As if somebody watched; -> the list of what was shown, (HTML, plain text) each."""
    from rl_pictures import screen

    shown = []
    monkeypatch.setenv("RL_GUI", "live")
    monkeypatch.setattr(screen.Screen, "show", lambda self, markup, text: shown.append((markup, text)))
    return shown


@pytest.fixture
def unwatched(monkeypatch):
    """As in grading and CI."""
    monkeypatch.setenv("RL_GUI", "headless")
