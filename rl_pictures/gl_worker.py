"""Run as a process by gl.py: reads a MuJoCo model and then joint positions from stdin, writes pictures to stdout."""

import os
import struct
import sys

import mujoco

CAMERA = "track"  # the camera that follows the robot in gymnasium's models


def main():
    pictures = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a graphics library prints must not end up between the pictures
    width, height, length = struct.unpack("<qqq", _read(24))
    model = mujoco.MjModel.from_binary_path("robot.mjb", {"robot.mjb": _read(length)})
    # Softened edges and shadows are most of the time without a graphics card: 76 ms a picture with, 8 ms without.
    model.vis.quality.offsamples = 0
    model.vis.quality.shadowsize = 0
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    data = mujoco.MjData(model)
    renderer = mujoco.Renderer(model, height, width)
    camera = CAMERA if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, CAMERA) >= 0 else following(model)
    while True:
        mujoco.mj_fwdPosition(model, data)
        renderer.update_scene(data, camera)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        pictures.write(renderer.render().tobytes())
        pictures.flush()
        data.qpos[:] = struct.unpack(f"<{model.nq}d", _read(8 * model.nq))


def following(model):
    """A camera that looks at the first body from the side, for models without one."""
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    camera.trackbodyid = min(1, model.nbody - 1)
    camera.distance = 1.5 * model.stat.extent
    camera.azimuth, camera.elevation = 90, -20
    return camera


def _read(length):
    message = sys.stdin.buffer.read(length)
    if len(message) < length:  # the notebook closed the pipe or ended
        os._exit(0)
    return message


if __name__ == "__main__":
    main()
