"""Showing an environment while it runs: paced, late frames dropped, one output that is overwritten."""

import base64
import html
import io
import time

from rl_pictures.frames import check_render_mode, frame_source, frames_per_second
from rl_pictures.screen import Screen, escape, is_live

PIXELS_PER_INCH = 100
# Jupyter's server drops ALL output of a cell that sends more than 1 MB/s (ServerApp.iopub_data_rate_limit).
BYTES_PER_SECOND = 800_000
# A picture at least this often, however late the loop is, so that slow drawing looks slow and not frozen.
LONGEST_SILENCE = 0.25


class Renderer:
    """What create_renderer returns: call it once after every step."""

    def __init__(self, env, fps=None, figsize=(4, 3)):
        check_render_mode(env)
        self.fps = frames_per_second(env, fps)
        self._box = tuple(round(PIXELS_PER_INCH * inches) for inches in figsize)
        self._live = is_live()
        self._frame = frame_source(env) if self._live else None
        self._screen = Screen()
        self._encoder = JpegEncoder(self.fps)
        self._due = None
        self._last_shown = float("-inf")

    def __call__(self, text=""):
        """Show the environment as it is now, with `text` above it. Returns at the pace of `fps`."""
        if not self._live:
            return
        now = time.perf_counter()
        step = 1 / self.fps
        # A loop that is slower than real time (a network that thinks) is not chased: the clock starts again from here.
        if self._due is None or now > self._due + 2 * LONGEST_SILENCE:
            self._due = now
        late = now > self._due + step
        if not late and now < self._due:
            time.sleep(self._due - now)
        self._due += step
        if not late or now > self._last_shown + LONGEST_SILENCE:
            self._show(text)

    def _show(self, text):
        jpeg = self._encoder(self._frame(), time.perf_counter())
        if jpeg is None:
            return
        self._screen.show(*framed(jpeg, self._encoder.size, self._box, text))
        self._last_shown = time.perf_counter()


class JpegEncoder:
    """uint8 [H, W, 3] -> JPEG bytes, within the data rate that the notebook server lets through."""

    def __init__(self, fps):
        # base64 makes 4 bytes of 3, and the message around it is some 300 bytes
        self._target = 0.75 * BYTES_PER_SECOND / fps - 300
        self._quality = 75
        self._allowance = BYTES_PER_SECOND
        self._then = None
        self.size = (1, 1)

    def __call__(self, frame, now):
        """-> bytes, or None where sending this frame would exceed the rate."""
        from PIL import Image

        if self._then is not None:
            self._allowance = min(BYTES_PER_SECOND, self._allowance + (now - self._then) * BYTES_PER_SECOND)
        self._then = now
        if self._allowance < 0:
            return None
        image = Image.fromarray(frame)
        self.size = image.size
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=self._quality)
        jpeg = buffer.getvalue()
        self._allowance -= len(jpeg) * 4 / 3 + 400
        if len(jpeg) > self._target:
            self._quality = max(35, self._quality - 8)
        elif len(jpeg) < 0.7 * self._target:
            self._quality = min(75, self._quality + 2)
        return jpeg


def framed(jpeg, size, box, text):
    """-> (HTML, plain text) of one picture with its caption, in a box whose height never changes."""
    width, height = fit(size, box)
    source = "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
    caption = escape(text) or "&nbsp;"
    markup = (
        f'<div style="width:{box[0]}px;max-width:100%">'
        f'<div style="min-height:1.4em;font-family:monospace;white-space:nowrap;overflow:hidden">{caption}</div>'
        f'<img src="{source}" width="{width}" height="{height}" alt="{html.escape(str(text)) or "the environment"}"></div>'
    )
    return markup, str(text) or "(a picture of the environment)"


def fit(size, box):
    """The largest (width, height) with the proportions of `size` inside `box`."""
    scale = min(box[0] / size[0], box[1] / size[1])
    return round(size[0] * scale), round(size[1] * scale)
