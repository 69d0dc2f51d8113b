"""Watching a training run: one status line, learning curves, and nothing that slows the loop down."""

import base64
import io
import math
import time

from rl_pictures.screen import Screen, escape, is_live

STATUS_SECONDS = 0.2
CURVES_SECONDS = 1.0
# Drawing curves takes 50-150 ms; they may cost this part of the run and no more, so a slow machine sees fewer of them.
CURVES_SHARE = 0.04
PLAIN_SECONDS = 5.0
POINTS = 400  # a curve on the screen is some 300 pixels wide
AVERAGE_OVER = 20  # episodes or updates in the moving average of the return
# key: (title, what a healthy run looks like). The keys are the names the loop reports under.
PANELS = {
    "episode_return": "return",
    "kl": "KL divergence",
    "clipfrac": "clip fraction",
    "entropy": "entropy",
    "explained_variance": "explained variance",
}


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
        self._curves = ("", 0.0)
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
        for name, (_, values) in self.history.items():
            recent = values[-AVERAGE_OVER:] if name == "episode_return" else values[-1:]
            parts.append(f"{PANELS.get(name, name.replace('_', ' '))} {sum(recent) / len(recent):.3g}")
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
            began = time.perf_counter()
            self._curves = picture_of_curves(self.history, self.total_steps)
            took = time.perf_counter() - began
            self._next_curves = now + max(CURVES_SECONDS, took / CURVES_SHARE)
        self._screen.show(f'<div style="font-family:monospace">{escape(status)}</div>{self._curves[0]}', status)


def picture_of_curves(history, total_steps):
    """{name: ([steps], [values])} -> (HTML image of one small panel per name, its width)."""
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from rl_pictures.figures import STYLE

    known = [name for name in PANELS if name in history]
    names = known + [name for name in history if name not in PANELS]
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    with style.context(STYLE):
        figure = Figure(figsize=(3.2 * columns, 2.1 * rows), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        for place, name in enumerate(names, start=1):
            axes = figure.add_subplot(rows, columns, place)
            _draw_curve(axes, name, *history[name])
            axes.set_xlim(0, total_steps)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
    width = round(320 * columns)
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    told = "; ".join(f"{PANELS.get(name, name)}: last {history[name][1][-1]:.3g}" for name in names)
    return f'<img src="{source}" width="{width}" style="max-width:100%" alt="learning curves. {escape(told)}">', width


def _draw_curve(axes, name, steps, values):
    stride = max(1, len(steps) // POINTS)
    if name == "episode_return":
        axes.plot(steps[::stride], values[::stride], color="0.75", linewidth=0.8)
        smooth = moving_average(values, AVERAGE_OVER)
        axes.plot(steps[::stride], smooth[::stride], label=f"mean of {AVERAGE_OVER}")
        axes.legend(loc="upper left", fontsize=7)
    else:
        axes.plot(steps[::stride], values[::stride])
    axes.set_title(PANELS.get(name, name.replace("_", " ")), fontsize=9)
    axes.set_xlabel("environment steps", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 4), useMathText=True)


def moving_average(values, width):
    """Means of the last `width` values at every place, of fewer at the beginning."""
    total, means = 0.0, []
    for i, value in enumerate(values):
        total += value - (values[i - width] if i >= width else 0.0)
        means.append(total / min(i + 1, width))
    return means


def _clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
