"""What is missing on this machine for pictures, one line each, with the fix."""

import importlib.util
import os
import subprocess
import sys

from rl_pictures.screen import ipython_kernel, is_live

# module: (what needs it, the package to install)
MODULES = {
    "gymnasium": ("every environment", "gymnasium"),
    "PIL": ("every picture", "pillow"),
    "matplotlib": ("figures and learning curves", "matplotlib"),
    "pygame": ("pictures of Box2D and classic control", "pygame-ce"),
    "Box2D": ("LunarLander", "box2d"),
    "mujoco": ("Ant, HalfCheetah, Humanoid", "mujoco"),
    "imageio": ("gymnasium's MuJoCo environments", "imageio"),
    "imageio_ffmpeg": ("replays", "imageio-ffmpeg"),
}


def examine():
    """-> ([problem with its fix], [what works]), each a line of text."""
    problems, works = [], []
    for module, (needed_for, package) in MODULES.items():
        if importlib.util.find_spec(module) is None:
            problems.append(f"{module} is missing ({needed_for} needs it): {sys.executable} -m pip install {package}")
    if importlib.util.find_spec("mujoco"):
        _examine_opengl(problems, works)
    if importlib.util.find_spec("imageio_ffmpeg"):
        _examine_ffmpeg(problems, works)
    if ipython_kernel() is None:
        works.append("no notebook here: pictures stay off, replays can be saved as files")
    elif is_live():
        works.append("live pictures are on")
    else:
        problems.append("nobody seems to watch this notebook, so live pictures are off: set RL_GUI=live if that is wrong")
    return problems, works


def _examine_opengl(problems, works):
    from rl_pictures.robot import working_backend

    wish = os.environ.get("MUJOCO_GL", "")
    try:
        backend = working_backend()
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        # Importing mujoco already loads the library that MUJOCO_GL names, and fails in many ways without it.
        fix = "unset MUJOCO_GL and restart the kernel" if wish else f"{sys.executable} -m pip install -U mujoco"
        problems.append(f"mujoco cannot be imported with MUJOCO_GL={wish or 'unset'} ({error}): {fix}")
        return
    if backend is None:
        fix = "apt-get install libegl1 libgl1" if sys.platform == "linux" else "update the graphics driver"
        problems.append(f"OpenGL does not work, robots are drawn as sketches: {fix}, then restart the kernel")
    elif wish and wish != backend:
        problems.append(f"MUJOCO_GL={wish} does not work here and {backend} does: set MUJOCO_GL={backend} or unset it")
    else:
        works.append(f"OpenGL for MuJoCo: {backend or 'the system default'}")


def _examine_ffmpeg(problems, works):
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        subprocess.run([get_ffmpeg_exe(), "-version"], check=True, capture_output=True, timeout=20)
        works.append("ffmpeg for replays")
    except (RuntimeError, OSError, subprocess.SubprocessError):
        fix = f"{sys.executable} -m pip install --force-reinstall imageio-ffmpeg, or install ffmpeg and put it in PATH"
        problems.append(f"ffmpeg does not run, so there are no replays: {fix}")


def doctor():
    """Print one line per problem with its fix, then what works; -> True if there is no problem."""
    problems, works = examine()
    for line in problems:
        print(f"PROBLEM  {line}")
    for line in works:
        print(f"ok       {line}")
    return not problems
