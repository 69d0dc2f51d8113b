"""Keeping pictures: a small MP4 that plays inside a saved notebook, in nbgrader's feedback and from a file."""

import base64
import html
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

# A notebook with three replays should still open at once; larger videos are compressed again until they fit.
MAX_BYTES = 300_000
# Constant rate factor, largest width: what is tried until a video fits. The first pair is the usual one.
LADDER = ((28, 640), (34, 480), (38, 320), (42, 240))


class Recorder:
    """Takes frames one by one and gives a Replay. Frames go straight to the encoder, so a long run needs no memory."""

    def __init__(self, fps):
        self.fps = fps
        self.steps = 0
        self._folder = self._encoder = self._size = None

    def add(self, frame, caption=""):
        """frame: uint8 [H, W, 3]; all frames of one recording are brought to the size of the first."""
        if self._encoder is None:
            self._open(frame)
        self._encoder.stdin.write(_written_on(frame, caption, self._size).tobytes())
        self.steps += 1

    def _open(self, frame):
        self._size = (frame.shape[1] // 2 * 2, frame.shape[0] // 2 * 2)  # yuv420p wants even numbers
        self._folder = tempfile.TemporaryDirectory(prefix="rl_gui_", ignore_cleanup_errors=True)
        width, height = self._size
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{self.fps:g}", "-i", "-"]
        command = _ffmpeg(raw, Path(self._folder.name) / "0.mp4", *LADDER[0])
        self._encoder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def finish(self, about=""):
        """-> Replay of all frames so far; the next frame begins a new recording."""
        if self._encoder is None:
            raise ValueError("Nothing was recorded yet. Run some steps with record=True, then ask for the replay.")
        self._encoder.stdin.close()
        failed = self._encoder.wait() != 0
        folder, steps = self._folder, self.steps
        self._folder = self._encoder = None
        self.steps = 0
        with folder:
            if failed:
                raise RuntimeError("ffmpeg could not encode the frames; rl_gui.doctor() says what is missing.")
            return Replay(_fitting(Path(folder.name)), self._size, steps, about)


class Replay:
    """A video that a notebook shows with controls. `save(path)` writes it as an MP4 file."""

    def __init__(self, mp4, size, steps, about=""):
        self.mp4 = mp4
        self.steps = steps
        self._size = size
        self._about = about

    def save(self, path):
        """Write the MP4 to `path`; -> the path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.mp4)
        return path

    def __repr__(self):
        about = f"{self._about}, " if self._about else ""
        return f"<replay: {about}{self.steps} frames, {len(self.mp4) / 1000:.0f} kB of MP4>"

    def _repr_html_(self):
        source = "data:video/mp4;base64," + base64.b64encode(self.mp4).decode("ascii")
        about = html.escape(self._about or f"{self.steps} frames")
        return (
            f'<div style="width:{self._size[0]}px;max-width:100%">'
            f'<video controls loop muted playsinline width="{self._size[0]}" style="max-width:100%" '
            f'src="{source}" title="{about}"></video>'
            f'<div style="font-family:monospace">{about}</div></div>'
        )


class ReplayOfEpisode(Replay):
    """A replay that also knows how the episode went: `episode_return` and `steps`."""

    def __init__(self, replay, episode_return):
        super().__init__(replay.mp4, replay._size, replay.steps, replay._about)
        self.episode_return = episode_return


def _ffmpeg(source, target, crf, width):
    from imageio_ffmpeg import get_ffmpeg_exe

    # -2: the height follows, rounded to an even number; faststart lets a browser begin before it has everything.
    scale = ["-vf", f"scale='min({width},iw)':-2"]
    codec = [
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-crf",
        str(crf),
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
    ]
    return [get_ffmpeg_exe(), "-y", "-loglevel", "error", *source, *scale, *codec, "-an", os.fspath(target)]


def _fitting(folder):
    """The bytes of folder/0.mp4, compressed more strongly until they are at most MAX_BYTES."""
    first = folder / "0.mp4"
    mp4 = first.read_bytes()
    for rung, (crf, width) in enumerate(LADDER[1:], start=1):
        if len(mp4) <= MAX_BYTES:
            break
        smaller = folder / f"{rung}.mp4"
        subprocess.run(_ffmpeg(["-i", os.fspath(first)], smaller, crf, width), check=True, stdin=subprocess.DEVNULL)
        mp4 = smaller.read_bytes()
    return mp4


def _written_on(frame, caption, size):
    """`frame` at `size`, with `caption` in its upper left corner."""
    from PIL import Image, ImageDraw, ImageFont

    if not caption and (frame.shape[1], frame.shape[0]) == size:
        return np.ascontiguousarray(frame)
    image = Image.fromarray(np.ascontiguousarray(frame[: size[1], : size[0]]))
    image = image if image.size == size else image.resize(size)
    if caption:
        draw = ImageDraw.Draw(image)
        font = ImageFont.load_default(max(12, size[1] // 22))
        left, top, right, bottom = draw.multiline_textbbox((8, 6), caption, font=font)
        draw.rectangle((left - 5, top - 4, right + 5, bottom + 4), fill=(20, 20, 20))
        draw.multiline_text((8, 6), caption, font=font, fill=(255, 255, 255))
    return np.asarray(image)
