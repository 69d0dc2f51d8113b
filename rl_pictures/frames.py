"""Where pictures come from: a function that gives the current frame of an environment, whatever kind it is."""

import os

import numpy as np

# pygame greets on stdout when it is first imported; a notebook that a student hands in should not start with that.
_QUIET = {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}


def frame_source(env):
    """-> frame(): uint8 [height, width, 3], the current picture of `env` (of its first member if it is a vector env).

    raises ValueError if `env` cannot be drawn without opening a window
    """
    check_render_mode(env)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    first = first_member(env)
    return lambda: as_frame((env if first is None else first).render())


def check_render_mode(env):
    """raises ValueError, naming the way out, unless `env` draws into arrays."""
    render_mode = getattr(env, "render_mode", None)
    if render_mode == "rgb_array":
        return
    if not hasattr(env, "step"):
        raise ValueError(
            f"rl_gui draws gymnasium environments, and this is a {type(env).__name__}. Pass the environment itself."
        )
    make = "gym.make_vec" if hasattr(env, "num_envs") else "gym.make"
    name = getattr(getattr(env, "spec", None), "id", None)
    way_out = f'env = {make}("{name or "..."}", render_mode="rgb_array")'
    raise ValueError(f"rl_gui cannot draw an environment with render_mode={render_mode!r}. Make it with: {way_out}")


def first_member(env):
    """The first environment inside a vector env of this process; None for a single environment and for workers."""
    inner = getattr(env, "unwrapped", env)
    members = getattr(inner, "envs", None)
    return members[0] if hasattr(env, "num_envs") and members else None


def as_frame(picture):
    """What render() gave -> uint8 [height, width, 3]; vector envs give a tuple of pictures, of which the first is taken."""
    while isinstance(picture, (tuple, list)) and picture:
        picture = picture[0]
    frame = np.asarray(picture)
    if frame.ndim == 4:
        frame = frame[0]
    if frame.ndim != 3 or frame.shape[2] < 3:
        raise ValueError(f"env.render() gave {_describe(picture)}, and rl_gui needs a picture [height, width, 3].")
    if frame.dtype != np.uint8:
        frame = np.clip(frame, 0, 255).astype(np.uint8)
    return frame[:, :, :3]


def _describe(picture):
    shape = getattr(picture, "shape", None)
    return f"{type(picture).__name__}" if shape is None else f"an array of shape {tuple(shape)}"


def frames_per_second(env, fps=None):
    """`fps` if given, else what the environment says of itself, else 30."""
    if fps is None:
        fps = (getattr(env, "metadata", None) or {}).get("render_fps") or 30
    if not 0 < fps < float("inf"):
        raise ValueError(f"fps={fps!r} must be a positive number of frames per second.")
    return float(fps)
