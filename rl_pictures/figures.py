"""One look for all figures, and sliders for those that have a question in them."""

import importlib.util

from cycler import cycler

from rl_pictures.screen import is_live

# Five colours after Okabe and Ito, each at least 3:1 against white, and each with its own dashes, so that colour never
# speaks alone.
LINES = {
    "color": ["#0072B2", "#D55E00", "#007A5A", "#A8508A", "#333333"],
    "linestyle": ["-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1))],
}
GROUND, INK, PALE_INK = "white", "#222222", "#444444"
STYLE = {
    "figure.facecolor": GROUND,
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "axes.edgecolor": PALE_INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(**LINES),
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "xtick.color": PALE_INK,
    "ytick.color": PALE_INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
}


def use_style():
    """Draw all matplotlib figures from here on in the style of the kit.

    Its colours can be told apart by colour-blind readers, and its ground is white in light and dark themes alike.
    """
    from matplotlib import pyplot

    pyplot.style.use(STYLE)


def explore(draw, **sliders):
    """Draw a figure with sliders; where there can be none, draw it once.

    draw     draws with matplotlib, given a number for every slider
    sliders  name=(lowest, highest, start)
    """
    if not is_live() or importlib.util.find_spec("ipywidgets") is None:
        draw(**{name: start for name, (_, _, start) in sliders.items()})
        return
    import ipywidgets

    widgets = {
        name: ipywidgets.FloatSlider(
            start, min=low, max=high, step=(high - low) / 40, description=name, continuous_update=False
        )
        for name, (low, high, start) in sliders.items()
    }
    ipywidgets.interact(draw, **widgets)
