"""Plots, as PNG files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tacit.errors import SetupError

#: A line of a plot: places and heights.
Line = tuple[Sequence[float], Sequence[float]]


def check_plots() -> None:
    """Whether plots can be drawn, before anything takes long.

    Raises:
        SetupError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise SetupError("plots need matplotlib: pip install 'tacit[federated]'") from None
    # It writes files and opens no windows.
    matplotlib.use("Agg")


def lines(
    path: Path, title: str, labels: tuple[str, str], drawn: Mapping[str, Line], *, log: bool = False
) -> Path:
    """Draws lines by name, with a label for each axis, into a file, and returns its path.

    Raises:
        SetupError: it cannot be drawn or written.
    """
    check_plots()
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, (places, heights) in drawn.items():
        axes.plot(places, heights, marker="o", markersize=3, label=name)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
    if log:
        axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from None
    finally:
        pyplot.close(figure)
    return path
