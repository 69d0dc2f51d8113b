"""What a solution notebook defines, without training anything."""

import functools
import linecache
import sys
import types

from grading import notebooks


def load(name):
    """Everything that the solution notebook of assignment `name` defines: {name: object}.

    Runs the cells that define things (imports, classes, functions, settings), not the ones that train, plot or check.
    raises ValueError for an unknown assignment
    """
    return dict(_module(name).__dict__)


@functools.cache
def _module(name):
    notebook = notebooks.read(notebooks.solution_path(name))
    # A real module: dataclasses look theirs up in sys.modules. Not __main__, so that no command line starts.
    module = types.ModuleType(f"solution_of_{name}")
    sys.modules[module.__name__] = module
    for cell in notebooks.definitions(notebook):
        run(cell.source, f"<{name}: {cell.id}>", module.__dict__)
    return module


def run(source, filename, namespace):
    """Executes a cell; its lines are findable for error messages."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)
