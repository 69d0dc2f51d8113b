"""What a process that runs student code can reach: nothing."""

import contextlib
import os
import platform
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from classroom import ASSIGNMENT, confined, sandbox

from grading import bubblewrap
from grading import sandbox as sandbox_module
from grading.sandbox import Limits, Sandbox, SandboxError


def inside(code, box=None, seconds=20):
    """Runs `code` in a fresh child; returns what it calls `said`, or the error that it died of."""
    with (box or sandbox()).child() as child:
        cell = textwrap.dedent(code) + "\nraise RuntimeError(repr(said))\n"
        child.send({"assignment": ASSIGNMENT, "cells": [["probe", cell]]})
        child.receive(10)
        error = child.receive(seconds)["error"]
    kind, _, text = error.partition(": ")
    return eval(text, {}) if kind == "RuntimeError" else error


TRIED = """
def tried(action):
    try:
        return "worked", action()
    except OSError as error:
        return "refused", error.errno
"""


@confined
def test_it_is_not_root_and_has_no_rights():
    status = inside("said = open('/proc/self/status').read()")
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert all(int(fields[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
    assert fields["NoNewPrivs"] == "1" and fields["Uid"].split() == ["1000"] * 4 and fields["Seccomp"] == "2"


@confined
def test_there_is_no_network():
    said = inside(TRIED + """
import socket
said = [tried(lambda: socket.socket(kind).connect(("1.1.1.1", 53))) for kind in (socket.AF_INET, socket.AF_INET6)]
said.append(open('/proc/net/dev').read())
""")
    assert [outcome for outcome, _ in said[:2]] == ["refused"] * 2 and "eth" not in said[2] and "ens" not in said[2]


@confined
def test_it_sees_no_processes_but_its_own():
    assert inside("import os; said = len([p for p in os.listdir('/proc') if p.isdigit()])") <= 4


@confined
def test_it_can_write_to_its_tmp_and_nowhere_else():
    said = inside(TRIED + """
import os, sys, rl_tests
places = ["/", "/dev", "/proc", "/usr", "/etc", "/tmp/..", sys.prefix]
places += [os.path.dirname(module.__file__) for module in (os, rl_tests)]
said = {place: tried(lambda: open(os.path.join(place, "x"), "w").close())[0] for place in places}
said["/tmp"] = tried(lambda: open("/tmp/x", "w").close())[0]
""")
    assert {place for place, outcome in said.items() if outcome == "worked"} == {"/tmp"}


@confined
def test_home_folders_and_the_course_are_not_there(tmp_path):
    (tmp_path / "gradebook.db").write_text("scores")
    course = sandbox_module.notebooks.ROOT
    paths = [str(tmp_path), str(course / "solutions"), str(course / "grading"), str(course / "reference.json"), "/home"]
    assert inside(f"import os; said = [os.path.exists(path) for path in {paths!r}]") == [False] * len(paths)


@confined
def test_its_folder_is_limited_in_size():
    said = inside(TRIED + """
def fill():
    for i in range(100):
        with open(f"{i}.bin", "wb") as file:
            file.write(bytes(2**23))
said = tried(fill)
""")
    assert said[0] == "refused"


@confined
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are those of x86_64")
def test_no_new_namespace_and_no_tracing():
    said = inside(TRIED + """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "no")
unshare, ptrace, clone = 272, 101, 56
said = [tried(lambda: call(unshare, 0x10000000)), tried(lambda: call(ptrace, 0, 0, 0, 0)),
        tried(lambda: call(clone, 0x10000011, 0, 0, 0, 0))]
""")
    assert [outcome for outcome, _ in said] == ["refused"] * 3


@confined
def test_nothing_that_it_started_outlives_it():
    marker = f"leftover-{os.getpid()}"
    inside(f"""
import subprocess, sys
for _ in range(3):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{marker}"], start_new_session=True)
said = None
""")
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and marker in _command(pid)]


def _command(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as file:
        return file.read()
    return ""


def test_files_of_one_child_are_gone_for_the_next():
    inside("open('left', 'w').write('x'); said = None")
    assert inside("import os; said = os.listdir('.')") == []


def test_processes_are_limited():
    said = inside("""
import os, time
made = 0
try:
    for _ in range(1000):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        made += 1
except OSError:
    pass
said = made
""")
    assert said < Limits().processes


def test_memory_is_limited():
    assert "MemoryError" in inside("said = len(bytearray(2**32))")


def test_the_environment_is_clean(monkeypatch):
    monkeypatch.setenv("PPO_COURSE_SECRET", "secret")
    with Sandbox(unsafe=not sandbox().confined) as box:
        said = inside("import os; said = dict(os.environ)", box)
    assert "PPO_COURSE_SECRET" not in said and "secret" not in str(said)


def test_a_zygote_that_died_is_replaced():
    box = sandbox()
    box._zygote.kill()
    box._zygote.wait()
    assert inside("said = 1", box) == 1


def test_without_bubblewrap_nothing_starts_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(bubblewrap, "missing", lambda: "bubblewrap is not installed: apt install bubblewrap")
    with pytest.raises(SandboxError, match="apt install bubblewrap"):
        Sandbox().__enter__()
    with Sandbox(unsafe=True) as box:
        assert not box.confined and inside("said = 2", box) == 2
        assert "MemoryError" in inside("said = len(bytearray(2**32))", box)


def test_what_is_missing_is_told_with_its_cure(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    assert "apt install bubblewrap" in bubblewrap.missing()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "needs Linux" in bubblewrap.missing()


@confined
def test_a_bubblewrap_that_fails_is_told(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "bwrap: No permissions to create new namespace")
    monkeypatch.setattr(bubblewrap.subprocess, "run", lambda *a, **k: failed)
    monkeypatch.setattr(bubblewrap, "_has", lambda option: False)
    assert "user namespaces must be allowed" in bubblewrap.missing()


def test_a_child_that_does_not_read_does_not_block_the_judge():
    with sandbox().child() as child:
        child.send({"assignment": ASSIGNMENT, "cells": [["probe", "import time; time.sleep(60)"]]})
        started = time.monotonic()
        with pytest.raises(sandbox_module.TimedOut):
            child.send({"x": "y" * 2**24}, 0.5)
        assert time.monotonic() - started < 5


def test_a_byte_a_second_does_not_outwit_the_deadline():
    ours, theirs = sandbox_module.socket.socketpair()
    stop = threading.Event()

    def drip():
        while not stop.wait(0.05):
            theirs.send(b"x")
    thread = threading.Thread(target=drip)
    thread.start()
    started = time.monotonic()
    with pytest.raises(sandbox_module.TimedOut):
        sandbox_module.Child(ours).receive(0.5)
    assert time.monotonic() - started < 1
    stop.set()
    thread.join()
