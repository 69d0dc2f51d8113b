"""Where student code runs: the one seam between the judge and the process that it does not trust.

    with Sandbox() as sandbox:
        with sandbox.child() as child:
            child.send({...}); child.receive(seconds)

A child lives in a bubblewrap of its own: no network, no other processes, nothing to write but a small /tmp that ends with
it. It has limits on time, memory, processes, files and output, no standard streams, and no rights. Without a working
bubblewrap nothing starts, unless the caller says `unsafe`: then process limits are all there is.
"""

import contextlib
import itertools
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from grading import bubblewrap, notebooks, wire
from grading.build import HELPERS

FIRST_UID = 600_000  # far from the users of any system we know
START_SECONDS = 120  # importing torch and gymnasium on a busy machine


class SandboxError(RuntimeError):
    """The sandbox itself does not work: an infrastructure fault, never the student's."""


class ChildDied(Exception):
    """The child went away, or sent something that is not an answer. .memory: it ran out of memory."""

    def __init__(self, why, memory=False):
        super().__init__(why)
        self.memory = memory


class TimedOut(Exception):
    """The child did not answer in time."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    cpu_s: int = 20
    memory_bytes: int = 2**30  # beyond what the imports have mapped
    processes: int = 48  # threads count too
    files: int = 256
    file_bytes: int = 16 * 2**20


class Sandbox:
    """A zygote with torch imported, forked once for every child.

    unsafe   no bubblewrap, process limits only; never by default
    full     answers run in a Jupyter kernel, started for each child: slower, for cells that need everything
    """

    def __init__(self, limits=None, unsafe=False, full=False):
        self.limits, self.full = limits or Limits(), full
        self.confined = not unsafe
        self._zygote = None
        self._uids = itertools.cycle(range(FIRST_UID + os.getpid() % 1000 * 1000, FIRST_UID + (os.getpid() % 1000 + 1) * 1000))

    def __enter__(self):
        if self.confined and (why := bubblewrap.missing()):
            raise SandboxError(f"no sandbox: {why}")
        self._home = Path(tempfile.mkdtemp(prefix="ppo-grading-"))
        self._home.chmod(0o711)
        self._start()
        return self

    def __exit__(self, *_):
        self._stop()
        shutil.rmtree(self._home, ignore_errors=True)

    @contextlib.contextmanager
    def child(self, full=False):
        """A fresh process for one submission; full: with a Jupyter kernel. raises SandboxError where none can be had."""
        if self._zygote.poll() is not None:
            self._stop()
            self._start()
        ours, theirs = socket.socketpair()
        with ours, theirs, self._order(full or self.full) as order:
            socket.send_fds(self._control, [wire.dumps(order)], [theirs.fileno()])
            theirs.close()
            reply = self._reply(60)
            if "pid" not in reply:
                raise SandboxError(f"the sandbox did not open ({reply.get('error', 'no reason given')})")
            child = Child(ours)
            try:
                self._arrived(child)
                yield child
            finally:
                self._control.sendall(wire.dumps({"do": "end", "pid": reply["pid"]}))
                child.ended = self._reply(60)

    @contextlib.contextmanager
    def _order(self, full):
        """What the zygote is told; a folder that was made for it is gone afterwards."""
        order = {"do": "fork", "uid": 0, "bwrap": None, "full": full, "limits": asdict(self.limits)}
        if self.confined:
            yield order | {"bwrap": bubblewrap.child(self._home / "helpers"), "folder": bubblewrap.WORK}
            return
        folder = Path(tempfile.mkdtemp(dir=self._home))
        uid = next(self._uids) if os.getuid() == 0 else 0
        if uid:
            os.chown(folder, uid, uid)
        try:
            yield order | {"uid": uid, "folder": str(folder)}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _arrived(child):
        """The child says that it is inside, before it reads a line of the student's."""
        try:
            message = child.receive(60)
        except (ChildDied, TimedOut, wire.Refused) as error:
            raise SandboxError(f"a process did not arrive in the sandbox ({error})") from None
        if "here" not in message:
            raise SandboxError(f"a process did not arrive in the sandbox ({message.get('fault', 'no reason given')})")

    def _start(self):
        home = self._home / "helpers"
        if not home.exists():
            home.mkdir()
            for name in (*HELPERS, "grading/inside.py", "grading/kernel.py", "grading/namespaces.py",
                         "grading/wire.py"):
                source = notebooks.ROOT / name
                if source.is_dir():
                    shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__"))
                elif source.exists():
                    shutil.copy(source, home / source.name)
            _readable(home)
        self._control, theirs = socket.socketpair()
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(self._home / "helpers"), "LANG": "C.UTF-8", "MPLBACKEND": "agg",
                 "MUJOCO_GL": "disable", "SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
                 "MPLCONFIGDIR": "/tmp/mpl" if self.confined and os.getuid() == 0 else str(self._home / "mpl"),
                 "PYGAME_HIDE_SUPPORT_PROMPT": "1", "RL_KIT_SHORT": "1",
                 "NBGRADER_EXECUTION": "autograde", "USER": "student", "PYTHONDONTWRITEBYTECODE": "1"}
        outer = bubblewrap.zygote(home) if self.confined else []
        with theirs:
            self._zygote = subprocess.Popen(
                [*outer, *(["--chdir", str(home)] if outer else []), sys.executable, "-u", "inside.py",
                 str(theirs.fileno()), str(next(self._uids) if outer else 0)], cwd=home, env=clean,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=open(self._home / "zygote.log", "wb"))  # noqa: SIM115 - it belongs to the process
        if not self._reply(START_SECONDS).get("ready"):
            raise SandboxError("the sandbox did not start")

    def _stop(self):
        with contextlib.suppress(OSError):
            self._control.close()
        self._zygote.kill()
        self._zygote.wait()

    def _reply(self, seconds):
        try:
            return wire.loads(_read_line(self._control, bytearray(), time.monotonic() + seconds))
        except (ChildDied, TimedOut, OSError, wire.Refused) as error:
            log = (self._home / "zygote.log").read_text(errors="replace").strip().splitlines()
            raise SandboxError(f"the sandbox's process does not answer ({error}); {log[-1] if log else 'no message'}") from None


class Child:
    """The judge's end of a child."""

    def __init__(self, sock):
        self._socket = sock
        self._buffer = bytearray()
        self.ended = None

    def send(self, message, seconds=10):
        """raises ChildDied, TimedOut: a child that does not read must not block the judge."""
        self._socket.settimeout(max(seconds, 0.01))
        try:
            self._socket.sendall(wire.dumps(message))
        except TimeoutError:
            raise TimedOut from None
        except OSError:
            raise ChildDied("the process ended") from None

    def receive(self, seconds):
        """The next message. raises ChildDied, TimedOut, wire.Refused"""
        return wire.loads(_read_line(self._socket, self._buffer, time.monotonic() + seconds))


def _read_line(sock, buffer, deadline):
    """One line, read with a deadline and a limit on its length; what came after it stays in the buffer."""
    sock.setblocking(False)
    searched = 0
    while True:
        end = buffer.find(b"\n", searched)
        if end >= 0:
            line = bytes(buffer[: end + 1])
            del buffer[: end + 1]
            return line
        searched = len(buffer)
        if len(buffer) > wire.MAX_LINE:
            raise ChildDied("it sent more than an answer may hold")
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            raise TimedOut
        try:
            data = sock.recv(65536)
        except (BlockingIOError, InterruptedError):
            continue
        except OSError:
            data = b""
        if not data:
            raise ChildDied("the process ended")
        buffer += data


def _readable(folder):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
