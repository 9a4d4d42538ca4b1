"""Plots show everything drawn, even if lines overlap."""

import math
from pathlib import Path

from matplotlib.image import imread

from tacit.federated.simulation.plots import covering, lines

ROUNDS = list(range(1, 11))
ACCURACY = [20.0, 40.0, 55.0, 63.0, 70.0, 74.0, 78.0, 81.0, 83.0, 84.5]

#: Least pixels of a line, without its points; and the right end of the axes, where the legend
#: begins.
SEEN, AXES = 1000, 820


def test_both_of_two_lines_that_agree_are_seen(tmp_path: Path) -> None:
    drawn = {"in secret": (ROUNDS, ACCURACY), "in the clear": (ROUNDS, ACCURACY)}
    pixels = imread(lines(tmp_path / "both.png", "Accuracy", ("round", "%"), drawn))[:, :AXES]
    red, blue = pixels[..., 0], pixels[..., 2]
    # The first line is blue, the second orange.
    assert (blue > red + 0.2).sum() > SEEN
    assert (red > blue + 0.3).sum() > SEEN


def test_lines_meet_where_they_agree_in_part() -> None:
    half = [x / 2 for x in ACCURACY]
    later_apart = [*ACCURACY[:5], *half[5:]]
    crossing = [100 - x for x in ACCURACY]
    missing = [math.nan] * 10
    others = [ACCURACY, half, later_apart, crossing, missing]
    found = covering([(ROUNDS, heights) for heights in others])
    assert found == [set(), set(), {0, 1}, set(), set()]
    assert covering([([1], [5.0]), ([1], [5.0])]) == [set(), {0}]
    assert covering([([1, 2], [5.0, 6.0]), ([3, 4], [5.0, 6.0])]) == [set(), set()]
    assert covering([]) == []
