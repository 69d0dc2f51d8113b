"""Asks the package index whether everything that the course needs exists as a wheel: no compiler, no swig.

    python tools/wheels.py      (minutes, needs the index; not a part of the tests)

Nothing is downloaded but metadata. Exit status 1 if a platform lacks a wheel.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11.9", "3.12.1", "3.13.0")
PLATFORMS = {
    "Linux x86-64": [f"manylinux_2_{n}_x86_64" for n in range(39, 4, -1)] + ["manylinux2014_x86_64", "manylinux1_x86_64"],
    "Windows x86-64": ["win_amd64"],
    "macOS arm64": [f"macosx_{n}_0_arm64" for n in range(15, 10, -1)] + [f"macosx_{n}_0_universal2" for n in range(15, 9, -1)],
}
# pip reads environment markers on the machine that asks, so the pinned list is checked package by package.
ONLY_LINUX = ("pyseccomp", "uvloop")
ONLY_WINDOWS = ("colorama", "pywinpty")


def main():
    pinned = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line]
    missing = 0
    for system, tags in PLATFORMS.items():
        wanted = [line for line in pinned if system.startswith("Linux") or not line.startswith(ONLY_LINUX)]
        wanted += ONLY_WINDOWS if system.startswith("Windows") else ()
        for python in PYTHONS:
            with tempfile.TemporaryDirectory() as target:
                command = [sys.executable, "-m", "pip", "install", "--no-deps", "--dry-run", "--quiet", "--only-binary=:all:"]
                command += ["--target", target, "--implementation", "cp", "--python-version", python]
                command += [f"--platform={tag}" for tag in tags]
                done = subprocess.run(command + wanted, capture_output=True, text=True)
            missing += done.returncode != 0
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            print(f"{system}, CPython {python}: {errors[-1] if done.returncode else f'{len(wanted)} wheels'}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
