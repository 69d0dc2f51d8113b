"""Suspiciously equal answers: the same program under other names, comments and layout."""

import ast
import collections
import hashlib
import io
import tokenize

from grading import notebooks

MIN_NODES = 60  # of a syntax tree: shorter answers are equal by nature


def groups(submissions, release):
    """[(piece, students, same_text)] of the answers that two or more students share, the largest groups first.

    same_text   even the text is the same, but for white space and comments
    """
    stubs = {notebooks.grade_id(cell): fingerprint(cell.source) for cell in release.cells if notebooks.is_answer(cell)}
    shared = collections.defaultdict(list)
    for submission in submissions:
        for piece, source in submission.answers.items():
            mark = fingerprint(source)
            if mark and mark != stubs.get(piece):
                shared[piece, mark].append((submission.student, _bare(source)))
    found = [(piece, [student for student, _ in members], len({text for _, text in members}) == 1)
             for (piece, _), members in shared.items() if len(members) > 1]
    return sorted(found, key=lambda group: (-len(group[1]), group[0], group[1]))


def fingerprint(source):
    """A digest of the syntax tree with names, docstrings and constants' spelling taken out; "" where it is too short."""
    try:
        tree = ast.parse(source)
        names = {}
        for node in ast.walk(tree):
            _normalise(node, names)
        if sum(1 for _ in ast.walk(tree)) < MIN_NODES:
            return ""
        return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _normalise(node, names):
    def neutral(name):
        return names.setdefault(name, f"n{len(names)}")
    if isinstance(node, ast.Name):
        node.id = neutral(node.id)
    elif isinstance(node, ast.arg):
        node.arg, node.annotation = neutral(node.arg), None
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        node.name = neutral(node.name)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]


def _bare(source):
    """The text without comments and white space."""
    try:
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        return "\n".join(token.string for token in tokens if token.type not in skipped)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return source
