"""MuJoCo robots: found inside an environment, drawn by OpenGL in another process or as a sketch.

The notebook's own process never touches OpenGL. A missing library or a missing display aborts the process that asks for
it, and a process that has drawn and then forks can hang its children; both would cost a student the whole notebook.
"""

import contextlib
import functools
import sys
from typing import Any, NamedTuple

from rl_pictures.gl import GlDied, GlPainter, backends
from rl_pictures.sketch import Sketcher

# What gym.make_vec adds to the arguments of the environment itself.
VECTOR_ONLY = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")


class Robot(NamedTuple):
    """model: mujoco.MjModel; position() -> the joint positions qpos, float64 [nq], as they are now."""

    model: Any
    position: Any


def robot_of(env):
    """The robot of a MuJoCo environment, plain, wrapped or vectorised; None for all other environments."""
    if "mujoco" not in sys.modules:  # whoever made a MuJoCo environment has imported it
        return None
    inner = getattr(env, "unwrapped", env)
    members = getattr(inner, "envs", None) or [inner]
    single = getattr(members[0], "unwrapped", members[0])
    model = getattr(single, "model", None)
    if _is_model(model):
        data = getattr(single, "data", None)
        if data is None:
            data = getattr(single, "datas", [None])[0]
        if hasattr(data, "qpos"):
            return Robot(model, lambda: data.qpos)
    return _robot_in_worker(inner)


def _is_model(thing):
    return type(thing).__name__ == "MjModel"


def _robot_in_worker(inner):
    """The robot of an AsyncVectorEnv: its state is asked for over the pipe, and the model made once more here."""
    if type(inner).__name__ != "AsyncVectorEnv" or getattr(inner, "spec", None) is None:
        return None
    import gymnasium as gym

    kwargs = {name: value for name, value in inner.spec.kwargs.items() if name not in VECTOR_ONLY}
    model = getattr(gym.make(inner.spec.id, **{**kwargs, "render_mode": None}).unwrapped, "model", None)
    if not _is_model(model):
        return None
    return Robot(model, lambda: inner.call("state_vector")[0][: model.nq])


def robot_source(robot, mode, size):
    """-> frame source for `robot`; raises ValueError if mode is gl and no OpenGL works here."""
    backend = None if mode == "sketch" else working_backend()
    if backend is None and mode == "gl":
        raise ValueError('mode="gl": no OpenGL works here. rl_gui.doctor() says what to install; mode="sketch" needs none.')
    return RobotFrames(robot, backend, size)


@functools.lru_cache(maxsize=1)
def working_backend():
    """The first OpenGL backend that draws a ball in a process of its own; None if there is none. Asked once."""
    import mujoco

    ball = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    for backend in backends():
        try:
            painter = GlPainter(ball, backend, (32, 32))
            painter(ball.qpos0)
            painter.close()
            return backend
        except GlDied:
            continue
    return None


class RobotFrames:
    """Frames of a robot by OpenGL while that lives, and as a sketch from then on."""

    def __init__(self, robot, backend, size):
        self._robot = robot
        self._size = size
        self._paint = Sketcher(robot.model, size)
        if backend is not None:
            with contextlib.suppress(GlDied):
                self._paint = GlPainter(robot.model, backend, size)

    def __call__(self):
        position = self._robot.position()
        try:
            return self._paint(position)
        except GlDied:
            self._paint = Sketcher(self._robot.model, self._size)
            return self._paint(position)

    def close(self):
        self._paint.close()
