"""MuJoCo robots: drawn with and without OpenGL, and never at the cost of the kernel."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from painted import PaintedEnv

import rl_gui
from rl_pictures import robot

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("env_id", ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5"])
def test_a_sketch_shows_the_robot_and_needs_no_opengl(env_id, watched, monkeypatch):
    monkeypatch.setattr(robot, "GlPainter", None)
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    frame = robot.robot_source(robot.robot_of(env), "sketch", (400, 300))()
    assert frame.shape == (300, 400, 3) and frame.dtype == np.uint8
    orange = (frame[..., 0] > 180) & (frame[..., 2] < 110)
    assert 0.005 < orange.mean() < 0.3
    rows, columns = np.nonzero(orange)
    assert 100 < columns.mean() < 300 and 50 < rows.mean() < 250


def test_the_sketch_moves_with_the_robot_over_a_floor_that_stays():
    env = gym.make("Ant-v5", render_mode="rgb_array")
    env.reset(seed=0)
    found = robot.robot_of(env)
    paint = robot.robot_source(found, "sketch", (200, 150))
    before = paint()
    env.unwrapped.data.qpos[0] += 0.3
    after = paint()
    assert not np.array_equal(before[100:], after[100:])
    centre = [np.nonzero((f[..., 0] > 180) & (f[..., 2] < 110))[1].mean() for f in (before, after)]
    assert abs(centre[0] - centre[1]) < 2


def test_drawing_a_robot_never_calls_env_render(watched):
    env = gym.make("Ant-v5", render_mode="rgb_array")
    env.reset(seed=0)
    env.unwrapped.render = None
    rl_gui.create_renderer(env, mode="sketch")("Ant")
    assert len(watched) == 1


def test_a_drawing_process_that_dies_is_followed_by_the_sketch():
    if robot.working_backend() is None:
        pytest.skip("no OpenGL here")
    env = gym.make("Ant-v5", render_mode="rgb_array")
    env.reset(seed=0)
    paint = robot.robot_source(robot.robot_of(env), "auto", (200, 150))
    assert type(paint._paint).__name__ == "GlPainter"
    paint()
    paint._paint._process.kill()
    assert paint().shape == (150, 200, 3)
    assert type(paint._paint).__name__ == "Sketcher"


def test_modes_that_cannot_be_are_refused(watched):
    with pytest.raises(ValueError, match="must be one of auto, gl, sketch, env"):
        rl_gui.create_renderer(PaintedEnv(), mode="opengl")
    with pytest.raises(ValueError, match="MuJoCo robots only"):
        rl_gui.create_renderer(PaintedEnv(), mode="sketch")


KERNEL = """
import sys
import gymnasium as gym
import rl_gui

def watch(env):
    env.reset(seed=0)
    render = rl_gui.create_renderer(env, record=True, figsize=(2, 1.5))
    for _ in range(2):
        env.step(env.action_space.sample())
        render()
    assert render.replay().steps == 2
    return type(render._frame._paint).__name__

if __name__ == "__main__":
    before = watch(gym.make("Ant-v5", render_mode="rgb_array"))
    workers = gym.make_vec("Ant-v5", 2, vectorization_mode="async", render_mode="rgb_array")
    among = watch(workers)
    after = watch(gym.make("Ant-v5", render_mode="rgb_array"))
    workers.close()
    print(before, among, after)
"""


# What Python meets where no OpenGL library is installed; read by every Python process that starts with it in its path.
NO_OPENGL = """
import ctypes, ctypes.util

class Lacking(ctypes.CDLL):
    def __init__(self, name, *args, **kwargs):
        if name and any(library in str(name) for library in ("EGL", "OSMesa", "libGL", "OpenGL")):
            raise OSError(f"{name}: cannot open shared object file")
        super().__init__(name, *args, **kwargs)

found = ctypes.util.find_library
ctypes.CDLL = Lacking
ctypes.cdll._dlltype = Lacking
ctypes.util.find_library = lambda name: None if name in ("EGL", "OSMesa", "GL", "OpenGL") else found(name)
"""


@pytest.mark.parametrize("library", ["there", "missing"])
@pytest.mark.parametrize("wish", [None, "egl", "osmesa", "glfw"])
def test_no_setting_of_opengl_kills_or_hangs_the_kernel(wish, library, tmp_path):
    """Draws before, with and after worker processes, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "RL_GUI")}
    if wish:
        environment["MUJOCO_GL"] = wish
    environment["PYTHONPATH"] = str(ROOT)
    if library == "missing":
        (tmp_path / "sitecustomize.py").write_text(NO_OPENGL)
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    painters = done.stdout.split()
    assert len(set(painters)) == 1
    if library == "missing" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        assert painters[0] == "Sketcher"
