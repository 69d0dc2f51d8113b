"""One look for all figures: colours that colour-blind readers can tell apart, on white in light and dark themes."""

from pathlib import Path

STYLE = str(Path(__file__).with_name("kit.mplstyle"))


def use_style():
    """Draw all matplotlib figures from here on in the style of the kit."""
    from matplotlib import pyplot

    pyplot.style.use(STYLE)
