"""Plots, as PNG files."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tacit.atomic_write import write
from tacit.errors import setup_error

#: A line of a plot: places and heights.
Line = tuple[Sequence[float], Sequence[float]]

#: Styles of lines that have the same colour, and markers of points, which may coincide.
STYLES, DOTS = ("-", "--", ":"), ("o", "s", "^", "v", "D", "x", "P")

#: Two lines meet if this fraction of their points coincides: if these are closer than this fraction
#: of the height.
MEETING, CLOSE = 0.25, 0.005

#: Widths of lines and sizes of points, and by how much they grow for each line that lies on one, so
#: that both stay visible.
WIDTH, SIZE, WIDER, WIDEST = 1.3, 4.0, 3.0, 9.0

#: The most integers on a logarithmic axis that are written out.
FEW = 6


def check_plots() -> None:
    """Checks that plots can be drawn, before anything takes long.

    Raises:
        SetupError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise setup_error("plots need matplotlib: pip install 'tacit-mpc[federated]'") from None
    # The plots are files, not windows.
    matplotlib.use("Agg")


def covering(drawn: Sequence[Line]) -> list[set[int]]:
    """Returns for each line which earlier lines it coincides with, at least in part, and would
    hide."""
    every = [height for _, heights in drawn for height in heights if math.isfinite(height)]
    near = CLOSE * (max(every) - min(every)) if every else 0.0
    found = []
    for number, line in enumerate(drawn):
        found.append({before for before in range(number) if _meet(drawn[before], line, near)})
    return found


def _meet(one: Line, other: Line, near: float) -> bool:
    heights = dict(zip(*one, strict=True))
    apart = [
        abs(heights[place] - height)
        for place, height in zip(*other, strict=True)
        if place in heights
    ]
    # A single common point among many is a crossing.
    return sum(each <= near for each in apart) >= max(
        min(2, len(other[0])), MEETING * len(other[0]), 1
    )


def lines(
    path: Path, title: str, labels: tuple[str, str], drawn: Mapping[str, Line], *, log: str = ""
) -> Path:
    """Draws lines by name, with a label for each axis, into a file, and returns its path.

    ``log`` names the axes that are logarithmic, "x", "y" or "xy".

    Raises:
        SetupError: it cannot be drawn or written.
    """
    check_plots()
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    covers = covering(list(drawn.values()))
    for number, (name, (places, heights)) in enumerate(drawn.items()):
        # Colours repeat after ten lines; the next ten have another style.
        style, dot = STYLES[number // 10 % len(STYLES)], DOTS[number % len(DOTS)]
        on_it = min(WIDEST, WIDER * sum(number in covered for covered in covers))
        axes.plot(
            places,
            heights,
            # A line on another one is dashed, so that the other one is visible in its gaps.
            linestyle=(0, (3, 3)) if covers[number] else style,
            marker=dot,
            markersize=SIZE + on_it,
            linewidth=WIDTH + on_it,
            alpha=0.5 if on_it else 1.0,
            label=name,
        )
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
    for axis in log:
        axes.set(**{f"{axis}scale": "log"})
    measured = sorted({place for places, _ in drawn.values() for place in places})
    if "x" in log and len(measured) <= FEW and all(isinstance(place, int) for place in measured):
        axes.set_xticks(measured, [f"{place:,}" for place in measured])
        axes.set_xticks([], minor=True)
    elif "x" not in log and all(isinstance(place, int) for place in measured):
        # Avoids half rounds.
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    # Next to the lines, so that it hides none.
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    try:
        write(path, partial(figure.savefig, dpi=120, format="png"))
    finally:
        pyplot.close(figure)
    return path
