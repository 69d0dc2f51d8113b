"""Showing an environment while it runs: paced, late frames dropped, one output that is overwritten."""

import base64
import html
import io
import time

from rl_pictures.frames import box_of, check_render_mode, frame_source, frames_per_second
from rl_pictures.screen import Screen, escape, is_live
from rl_pictures.video import Recorder

# Jupyter's server drops ALL output of a cell that sends more than 1 MB/s (ServerApp.iopub_data_rate_limit).
BYTES_PER_SECOND = 800_000
# A picture at least this often, however late the loop is, so that slow drawing looks slow and not frozen.
LONGEST_SILENCE = 0.25


class Renderer:
    """What create_renderer returns: call it once after every step."""

    def __init__(self, env, fps=None, figsize=(4, 3), mode="auto", record=False):
        check_render_mode(env)
        self.fps = frames_per_second(env, fps)
        self._live = is_live()
        self._idle = not (self._live or record)
        self._recorder = Recorder(self.fps) if record else None
        self._box = box_of(figsize)
        # Where nobody watches and nothing is kept, no frame is ever made: not even OpenGL is looked for.
        self._frame = None if self._idle else frame_source(env, mode, figsize)
        self._screen = Screen()
        self._encoder = JpegEncoder(self.fps)
        self._due = None
        self._last_shown = float("-inf")

    def __call__(self, text=""):
        """Show the environment as it is now, with `text` above it. Returns at the pace of `fps`."""
        if self._idle:
            return
        frame = None
        if self._recorder is not None:
            frame = self._frame()
            self._recorder.add(frame, str(text))
        if self._live and self._wait_for_turn():
            self._show(self._frame() if frame is None else frame, text)

    def replay(self):
        """-> Replay of everything drawn since the beginning or the last replay(); needs record=True."""
        if self._recorder is None:
            raise ValueError("Nothing was recorded. Make the renderer with create_renderer(env, record=True).")
        return self._recorder.finish()

    def save(self, path):
        """Write what replay() gives as an MP4 file; -> the path."""
        return self.replay().save(path)

    def _wait_for_turn(self):
        """Sleep until this step is due; -> False if it is so late that its frame should be dropped."""
        now = time.perf_counter()
        step = 1 / self.fps
        # A loop that is slower than real time (a network that thinks) is not chased: the clock starts again from here.
        if self._due is None or now > self._due + 2 * LONGEST_SILENCE:
            self._due = now
        late = now > self._due + step
        if now < self._due:
            time.sleep(self._due - now)
        self._due += step
        return not late or now > self._last_shown + LONGEST_SILENCE

    def _show(self, frame, text):
        now = time.perf_counter()
        jpeg = self._encoder(frame, now)
        if jpeg is not None:
            size = frame.shape[1], frame.shape[0]
            self._screen.show(*framed(jpeg, size, self._box, text))
            self._last_shown = now


class JpegEncoder:
    """uint8 [H, W, 3] -> JPEG bytes, within the data rate that the notebook server lets through."""

    def __init__(self, fps):
        # base64 makes 4 bytes of 3, and the message around it is some 500 bytes
        self._target = max(3_000, 0.75 * (BYTES_PER_SECOND / fps - 500))
        self._quality = 75
        self._allowance = BYTES_PER_SECOND
        self._then = None

    def __call__(self, frame, now):
        """-> bytes, or None where sending this frame would exceed the rate."""
        from PIL import Image

        if self._then is not None:
            self._allowance = min(BYTES_PER_SECOND, self._allowance + (now - self._then) * BYTES_PER_SECOND)
        self._then = now
        if self._allowance < 0:
            return None
        buffer = io.BytesIO()
        Image.fromarray(frame).save(buffer, "JPEG", quality=self._quality)
        jpeg = buffer.getvalue()
        self._allowance -= len(jpeg) * 4 / 3 + 500
        if len(jpeg) > self._target:
            self._quality = max(35, self._quality - 8)
        elif len(jpeg) < 0.7 * self._target:
            self._quality = min(75, self._quality + 2)
        return jpeg


def framed(jpeg, size, box, text):
    """-> (HTML, plain text) of one picture with its caption, in a box whose height never changes."""
    scale = min(box[0] / size[0], box[1] / size[1])
    width, height = round(size[0] * scale), round(size[1] * scale)
    source = "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
    described = html.escape(str(text)) or "the environment"
    markup = (
        f'<div style="width:{box[0]}px;max-width:100%">'
        f'<div style="min-height:1.4em;font-family:monospace;white-space:nowrap;overflow:hidden">'
        f"{escape(text) or '&nbsp;'}</div>"
        f'<img src="{source}" width="{width}" height="{height}" alt="{described}"></div>'
    )
    return markup, str(text) or "(a picture of the environment)"
