"""Watching a training run: one status line, learning curves, and nothing that slows the loop down."""

import math
import time

from rl_pictures.curves import AVERAGE_OVER, Curves, ordered, title
from rl_pictures.screen import Screen, escape, is_live

STATUS_SECONDS = 0.2
CURVES_SECONDS = 1.0
# Drawing the curves may cost this part of the run and no more, so a slow machine sees fewer of them.
CURVES_SHARE = 0.05
PLAIN_SECONDS = 5.0


class Training:
    """What rl_gui.training returns; see there."""

    def __init__(self, total_steps, title=""):
        if not total_steps > 0:
            raise ValueError(f"total_steps={total_steps!r} must be a positive number of environment steps.")
        self.total_steps = total_steps
        self.history = {}  # name -> ([steps], [values])
        self._title = title
        self._live = is_live()
        self._screen = Screen()
        self._curves = Curves(total_steps)
        self._picture = ""
        self._begun = time.perf_counter()
        self._step = 0
        self._next_status = self._begun + (STATUS_SECONDS if self._live else 0.0)
        self._next_curves = self._begun + CURVES_SECONDS
        self._closed = False

    def __call__(self, step, **metrics):
        """Report that `step` environment steps are done, with any numbers worth a curve."""
        self._step = step
        for name, value in metrics.items():
            value = float(value)
            if math.isfinite(value):
                steps, values = self.history.setdefault(name, ([], []))
                steps.append(step)
                values.append(value)
        now = time.perf_counter()
        if step >= self.total_steps and not self._closed:
            self.close()
        elif now >= self._next_status:
            self._update(now)

    def close(self):
        """Show the last state. Called by itself when `total_steps` are reached, or at the end of a `with` block."""
        if not self._closed:
            self._closed = True
            self._next_curves = 0.0
            self._update(time.perf_counter())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def status(self):
        """The state of the run in one line."""
        seconds = max(time.perf_counter() - self._begun, 1e-9)
        rate = self._step / seconds
        parts = [f"{self._title}: " if self._title else ""]
        parts[0] += f"{self._step:,} of {self.total_steps:,} steps ({min(1, self._step / self.total_steps):.0%})"
        for name in ordered(self.history):
            values = self.history[name][1]
            recent = values[-AVERAGE_OVER:] if name == "episode_return" else values[-1:]
            parts.append(f"{title(name)} {sum(recent) / len(recent):.3g}")
        parts.append(f"{rate:,.0f} steps/s")
        if self._step >= self.total_steps:
            parts.append(f"done in {_clock(seconds)}")
        elif self._closed:
            parts.append(f"stopped after {_clock(seconds)}")
        elif rate > 0:
            parts.append(f"{_clock((self.total_steps - self._step) / rate)} left")
        return " · ".join(parts)

    def _update(self, now):
        status = self.status()
        if not self._live:
            print(status, flush=True)
            self._next_status = now + PLAIN_SECONDS
            return
        self._next_status = now + STATUS_SECONDS
        if now >= self._next_curves and any(len(steps) > 1 for steps, _ in self.history.values()):
            began = time.process_time()
            self._picture = self._curves(self.history)
            took = time.process_time() - began
            self._next_curves = now + max(CURVES_SECONDS, took / CURVES_SHARE)
        # Two lines are kept free: a status that grows must not push the curves up and down.
        line = f'<div style="font-family:monospace;min-height:2.8em">{escape(status)}</div>'
        self._screen.show(line + self._picture, status)


def _clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
