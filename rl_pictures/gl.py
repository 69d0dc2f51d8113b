"""Drawing with OpenGL in a process of its own, which may die or hang without harm."""

import contextlib
import ctypes
import ctypes.util
import os
import queue
import struct
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np

FIRST_FRAME_SECONDS = 20  # importing mujoco and making an OpenGL context, on a busy machine
FRAME_SECONDS = 5
# MUJOCO_GL: what PyOpenGL loads for it, one library of each group
LIBRARIES = {"egl": [("EGL",), ("OpenGL", "GL")], "osmesa": [("OSMesa",)]}


class GlDied(Exception):
    """The drawing process ended, hung, or belongs to another process."""


def backends():
    """The values of MUJOCO_GL worth trying here, the wished one first. An empty string leaves the choice to MuJoCo."""
    wish = os.environ.get("MUJOCO_GL", "").lower()
    if sys.platform != "linux":
        return list(dict.fromkeys([wish, ""]))
    display = "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    usual = ["egl", "osmesa"] + (["glfw"] if display else [])
    return [name for name in dict.fromkeys([wish, *usual]) if name]


def forget_missing_library():
    """Unset MUJOCO_GL where it names a library that is not there: with it, not even `import mujoco` works.

    Robots are then drawn by another backend or as a sketch. Nothing happens once mujoco has been imported.
    """
    alternatives = LIBRARIES.get(os.environ.get("MUJOCO_GL", "").lower())
    if alternatives is None or sys.platform != "linux" or "mujoco" in sys.modules:
        return
    if not all(any(map(_loads, names)) for names in alternatives):
        del os.environ["MUJOCO_GL"]


def _loads(name):
    try:
        ctypes.CDLL(ctypes.util.find_library(name) or f"lib{name}.so")
    except OSError:
        return False
    return True


class GlPainter:
    """painter(qpos) -> uint8 [height, width, 3], drawn by a helper process (gl_worker.py)."""

    def __init__(self, model, backend, size):
        import mujoco

        self._size = size
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", os.fspath(Path(__file__).with_name("gl_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MUJOCO_GL": backend} if backend else {k: v for k, v in os.environ.items() if k != "MUJOCO_GL"},
        )
        self._frames = queue.Queue()
        self.close = weakref.finalize(self, _end, self._process)
        threading.Thread(target=_read, args=(self._process.stdout, self._frames, size), daemon=True).start()
        binary = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, binary)
        self._send(struct.pack("<qqq", *size, binary.size) + binary.tobytes())
        self._receive(FIRST_FRAME_SECONDS)

    def __call__(self, qpos):
        # A forked child shares the pipe with its parent: two askers would get each other's pictures.
        if os.getpid() != self._owner:
            raise GlDied("the drawing process belongs to another process")
        self._send(np.asarray(qpos, np.float64).tobytes())
        return self._receive(FRAME_SECONDS)

    def _send(self, message):
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            self.close()
            raise GlDied(str(error)) from error

    def _receive(self, seconds):
        try:
            frame = self._frames.get(timeout=seconds)
        except queue.Empty:
            frame = None
        if frame is None:
            self.close()
            raise GlDied("the drawing process ended or hangs")
        return np.frombuffer(frame, np.uint8).reshape(self._size[1], self._size[0], 3)


def _read(stream, frames, size):
    """Put every frame that arrives into the queue, and None when no more will come."""
    length = size[0] * size[1] * 3
    try:
        while len(frame := stream.read(length)) == length:
            frames.put(frame)
    except (OSError, ValueError):
        pass
    frames.put(None)


def _end(process):
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()
