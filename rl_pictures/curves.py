"""Learning curves as one small picture, drawn quickly enough to be drawn while training."""

import base64
import html
import io
import math

from rl_pictures.figures import LINES, STYLE

POINTS = 300  # a curve on the screen is some 300 pixels wide
AVERAGE_OVER = 20  # episodes or updates in the moving average of the return
PANEL = (320, 200)  # pixels
COLOURS = 48  # of the picture's palette: a quarter of the bytes, and nobody sees a difference
# What the loop reports -> the title of its panel. Other names get panels of their own, after these.
TITLES = {
    "episode_return": "return",
    "kl": "KL divergence",
    "clipfrac": "clip fraction",
    "entropy": "entropy",
    "explained_variance": "explained variance",
}


class Curves:
    """curves(history) -> HTML image with one panel per metric. Keeps its figure: only the lines change."""

    def __init__(self, total_steps):
        self._total_steps = total_steps
        self._names = None

    def __call__(self, history):
        """history: {name: ([steps], [values])}"""
        names = ordered(history)
        if names != self._names:
            self._lay_out(names)
        for name, axes in zip(names, self._axes):
            self._fill(axes, name, *history[name])
        told = "; ".join(f"{title(name)}: last value {history[name][1][-1]:.3g}" for name in names)
        source = "data:image/png;base64," + base64.b64encode(self._png()).decode("ascii")
        width = self._canvas.get_width_height()[0]
        alt = html.escape(f"Learning curves. {told}")
        return f'<img src="{source}" width="{width}" style="max-width:100%" alt="{alt}">'

    def _lay_out(self, names):
        from matplotlib import style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        self._names = names
        columns = min(3, len(names))
        rows = math.ceil(len(names) / columns)
        # Fixed margins: a layout engine takes longer than all the drawing.
        width, height = PANEL[0] * columns, PANEL[1] * rows
        with style.context([STYLE, {"figure.constrained_layout.use": False, "lines.linewidth": 1.2}]):
            figure = Figure(figsize=(width / 100, height / 100), dpi=100)
            self._canvas = FigureCanvasAgg(figure)
            figure.subplots_adjust(
                left=50 / width, right=1 - 14 / width, top=1 - 24 / height, bottom=40 / height, wspace=0.25, hspace=0.55
            )
            self._axes = [figure.add_subplot(rows, columns, place + 1) for place in range(len(names))]
            for name, axes in zip(names, self._axes):
                axes.set_title(title(name), fontsize=9)
                axes.set_xlabel("environment steps", fontsize=8)
                axes.set_xlim(0, self._total_steps)
                axes.xaxis.set_major_locator(MaxNLocator(4))
                axes.yaxis.set_major_locator(MaxNLocator(4))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: short(steps)))
                axes.tick_params(labelsize=7)
                if name == "episode_return":
                    axes.plot([], [], "-", color="0.75", linewidth=0.8)
                    axes.plot([], [], "-", color=LINES["color"][1], linewidth=1.8, label=f"mean of {AVERAGE_OVER}")
                    axes.legend(loc="upper left", fontsize=7)
                else:
                    axes.plot([], [], "-", color=LINES["color"][0])

    def _fill(self, axes, name, steps, values):
        stride = max(1, len(steps) // POINTS)
        curves = [values] if name != "episode_return" else [values, moving_average(values, AVERAGE_OVER)]
        for line, curve in zip(axes.lines, curves):
            line.set_data(steps[::stride], curve[::stride])
        axes.relim()
        axes.autoscale_view(scalex=False)

    def _png(self):
        from PIL import Image

        self._canvas.draw()
        picture = Image.frombuffer("RGBA", self._canvas.get_width_height(), self._canvas.buffer_rgba()).convert("RGB")
        buffer = io.BytesIO()
        picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "PNG")
        return buffer.getvalue()


def ordered(names):
    """The usual metrics in their usual order, then the others as they came."""
    return [name for name in TITLES if name in names] + [name for name in names if name not in TITLES]


def title(name):
    """What a metric is called on the screen."""
    return TITLES.get(name, name.replace("_", " "))


def short(steps):
    """150000 -> "150k"; 2500000 -> "2.5M"."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if abs(steps) >= size:
            return f"{steps / size:g}{letter}"
    return f"{steps:g}"


def moving_average(values, width):
    """Means of the last `width` values at every place, of fewer at the beginning."""
    total, means = 0.0, []
    for i, value in enumerate(values):
        total += value - (values[i - width] if i >= width else 0.0)
        means.append(total / min(i + 1, width))
    return means
