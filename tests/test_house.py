"""The rules of the house: which way imports point, one list of dependencies, a clean tree."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TRAVELS = ["rl_tests.py", "rl_gui.py", "rl_envs.py", "probe_envs.py", "rl_checks", "rl_pictures", "rl_worlds"]
OURS = {"rl_tests", "rl_gui", "rl_envs", "probe_envs", "rl_checks", "rl_pictures", "rl_worlds", "grading", "benchmarks"}


def python_files(*names):
    for name in names:
        path = ROOT / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


def test_nothing_that_students_get_imports_the_grader():
    for path in python_files(*TRAVELS):
        assert not [name for name in imports(path) if name.split(".")[0] in ("grading", "benchmarks")], path


def test_checks_need_torch_and_the_standard_library_only():
    """Others are imported inside the functions that need them, where a notebook has imported them already."""
    allowed = {"torch", "numpy"} | OURS
    import sys
    for path in python_files("rl_tests.py", "rl_checks"):
        top = [node for node in ast.parse(path.read_text(encoding="utf-8")).body
               if isinstance(node, (ast.Import, ast.ImportFrom))]
        for node in top:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            for name in names:
                root = name.split(".")[0]
                assert root in allowed or root in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_pictures_and_environments_do_not_know_the_checks():
    for path in python_files("rl_gui.py", "rl_pictures", "rl_envs.py", "rl_worlds", "probe_envs.py"):
        assert not [name for name in imports(path) if name.split(".")[0] in ("rl_checks", "rl_tests")], path


def test_conda_users_get_what_pip_users_get():
    environment = (ROOT / "environment.yml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"- python {project['requires-python']}" in environment
    installed = re.findall(r"^      - (.*)$", environment, re.MULTILINE)
    setup = (ROOT / "tools" / "setup.sh").read_text(encoding="utf-8")
    assert installed == ["-c constraints.txt", "-e .[dev]"]
    assert "-c constraints.txt -e '.[dev]'" in setup


def test_every_dependency_is_pinned_for_the_tests():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {re.split("==", line)[0].lower().replace("_", "-")
              for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line}
    for requirement in project["dependencies"] + project["optional-dependencies"]["dev"]:
        name = re.match(r"[\w-]+", requirement)[0].lower()
        assert name in pinned, name
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_a_python_that_does_not_fit_gets_one_clear_line(tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo Python 3.9.2\nexit 1\n")
    fake.chmod(0o755)
    done = subprocess.run(["sh", "tools/setup.sh", str(tmp_path / "venv"), str(fake)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in done.stderr
    assert "Python 3.9.2" in done.stderr


def tracked():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return done.stdout.splitlines()


def test_no_secret_and_no_output_is_tracked():
    for name in tracked():
        assert not name.endswith((".db", ".course_secret", ".zip", ".pyc")), name
        assert not name.startswith(("build/", ".venv/")), name


def test_notebooks_are_output_free():
    import json
    for name in tracked():
        if name.endswith(".ipynb"):
            for cell in json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"]:
                assert not cell.get("outputs"), (name, cell["id"])
                assert cell.get("execution_count") is None, (name, cell["id"])
