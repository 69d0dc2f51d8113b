"""Is this machine fit for grading? Everything is tried for real: a made-up attack runs where student code would run."""

import os
import tempfile
from pathlib import Path

from grading import bubblewrap, notebooks
from grading.sandbox import Sandbox, SandboxError

SECCOMP = "pip install pyseccomp, and the system's libseccomp (Debian: apt install libseccomp2)"
LIMITS = "the system did not take a process limit (ulimit); is this an unusual kernel?"
BWRAP = "update bubblewrap (0.8 or later is best), and report this with the output of `bwrap --version` and `uname -a`"
# (what is tried, code that sets `bad` to what it could do, "" if it could do nothing; how to mend it)
TRIALS = (
    ("the network is out of reach", """
import socket
try:
    socket.create_connection(("1.1.1.1", 53), 2)
    bad = "reached 1.1.1.1"
except OSError:
    bad = ""
""", BWRAP),
    ("the system and Python cannot be written to", """
import os, sys
bad = ""
for place in ("/", "/usr", "/etc", "/dev", sys.prefix, os.path.dirname(os.__file__)):
    try:
        open(os.path.join(place, "written-by-the-doctor"), "w").close()
        bad += place + " "
    except OSError:
        pass
""", BWRAP),
    ("the gradebook and other submissions are not there", """
import os
bad = " ".join(path for path in {hidden!r} if os.path.exists(path))
""", BWRAP),
    ("the solutions and the course's secret are not there", """
import os
bad = " ".join(path for path in {course!r} if os.path.exists(path))
""", BWRAP),
    ("other processes are not to be seen", """
import os
count = sum(name.isdigit() for name in os.listdir("/proc"))
bad = f"saw {{count}}" if count > 4 else ""
""", BWRAP),
    ("it is not root and has no capabilities", """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
bad = "".join(f"{{name}} " for name in ("CapEff", "CapPrm", "CapBnd") if int(status[name], 16))
bad += "root" if os.getuid() == 0 else ""
""", BWRAP),
    ("no new user namespace can be made", """
import ctypes
bad = "made one" if ctypes.CDLL(None).unshare(0x10000000) == 0 else ""
""", f"{BWRAP}; or {SECCOMP}"),
    ("system calls are filtered (second layer)", """
bad = "" if "Seccomp:\\t2" in open("/proc/self/status").read() else "no filter"
""", SECCOMP),
    ("processes are limited", """
import os, time
made = 0
try:
    for made in range(500):
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
    bad = "500 forks"
except OSError:
    bad = ""
""", LIMITS),
    ("memory is limited", """
try:
    hoard = bytearray(2**33)
    bad = "8 GiB"
except MemoryError:
    bad = ""
""", LIMITS),
    ("its disk is small", """
try:
    for i in range(64):
        open(f"{{i}}.bin", "wb").write(bytes(2**23))
    bad = "512 MiB"
except OSError:
    bad = ""
""", BWRAP),
    ("the environment holds nothing of yours", """
import os
bad = " ".join(name for name in os.environ if name in {names!r})
""", BWRAP),
)


def run():
    """Prints every trial with its outcome and a fix; returns the exit status, 0 if all is well."""
    why = bubblewrap.missing()
    print(f"{'FAIL' if why else 'ok  '}  bubblewrap works")
    if why:
        print(f"      {why}")
        return 1
    failures = 0
    for name, bad, fix in trials():
        print(f"{'FAIL' if bad else 'ok  '}  {name}{f': {bad}' if bad else ''}" + (f"\n      {fix}" if bad else ""))
        failures += bool(bad)
    print("\nThis machine can grade." if not failures else f"\n{failures} of {len(TRIALS) + 1} trials failed.")
    return 1 if failures else 0


def trials(unsafe=False):
    """Yields (what was tried, what it could do or "", how to mend it)."""
    with tempfile.TemporaryDirectory() as folder:
        hidden = [str(Path(folder) / name) for name in ("gradebook.db", "submission.ipynb")]
        for path in hidden:
            Path(path).write_text("private", encoding="utf-8")
        course = [str(notebooks.ROOT / name) for name in ("solutions", "grading", ".course_secret")]
        names = sorted(set(os.environ) - {"HOME", "LANG", "OMP_NUM_THREADS", "PATH", "PWD", "TMPDIR", "USER", "SHLVL", "_"}
                       - {"MPLBACKEND", "MPLCONFIGDIR", "MUJOCO_GL", "SDL_VIDEODRIVER", "PYTHONHASHSEED", "RL_KIT_SHORT",
                          "PYGAME_HIDE_SUPPORT_PROMPT", "NBGRADER_EXECUTION", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE"})
        try:
            with Sandbox(unsafe=unsafe) as sandbox:
                for name, code, fix in TRIALS:
                    yield name, _attempt(sandbox, code.format(hidden=hidden, course=course, names=names)), fix
        except SandboxError as error:
            yield "the sandbox opens", str(error), BWRAP


def _attempt(sandbox, code):
    with sandbox.child() as child:
        child.send({"assignment": notebooks.assignments()[0],
                    "cells": [["doctor", code + "\nraise RuntimeError('said ' + bad)\n"]]})
        child.receive(20)
        error = child.receive(60).get("error", "")
    said = "RuntimeError: said"
    return error.removeprefix(said).strip() if error.startswith(said) else f"the trial itself failed: {error[:200]}"
