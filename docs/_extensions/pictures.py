"""Draws the pictures of the guides. ``python docs/_extensions/pictures.py`` writes them again.

Each has its own background, so that it can be read on light and on dark pages.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

STYLE = """
    .box { fill: #ffffff; stroke: #33475b; stroke-width: 1.6; }
    .own { fill: #e8f1fb; stroke: #3b78b5; stroke-width: 1.4; }
    .secret { fill: #f3f3f3; stroke: #8a8a8a; stroke-width: 1.4; stroke-dasharray: 4 3; }
    .link { stroke: #33475b; stroke-width: 1.6; fill: none; marker-end: url(#head); }
    .small { font-size: 13px; fill: #444444; }
    .name { font-weight: bold; fill: #1d2b3a; }
"""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#33475b"/></marker>'
)


class Box(NamedTuple):
    """A box: its kind, place and size, its name, and lines below that."""

    kind: str
    x: int
    y: int
    width: int
    height: int
    name: str
    lines: tuple[str, ...] = ()


class Arrow(NamedTuple):
    """An arrow, and the text at its middle."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str = ""


def drawn(title: str, size: tuple[int, int], boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Returns the picture as SVG."""
    width, height = size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14">',
        f"  <title>{title}</title>",
        f"  <style>{STYLE}  </style>",
        f"  <defs>{HEAD}</defs>",
        f'  <rect width="{width}" height="{height}" rx="8" fill="#fbfbfb"/>',
    ]
    for (x0, y0), (x1, y1), text in arrows:
        parts.append(f'  <path class="link" d="M{x0} {y0} L{x1} {y1}"/>')
        if text:
            place = f'x="{(x0 + x1) // 2}" y="{(y0 + y1) // 2 - 8}"'
            parts.append(f'  <text class="small" {place} text-anchor="middle">{text}</text>')
    for kind, x, y, wide, high, name, lines in boxes:
        parts.append(
            f'  <rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="{high}" rx="7"/>'
        )
        top = y + high // 2 - 9 * len(lines) + 5
        middle = f'x="{x + wide // 2}"'
        parts.append(f'  <text class="name" {middle} y="{top}" text-anchor="middle">{name}</text>')
        for number, line in enumerate(lines, 1):
            below = f'{middle} y="{top + 18 * number}" text-anchor="middle"'
            parts.append(f'  <text class="small" {below}>{line}</text>')
    return "\n".join([*parts, "</svg>", ""])


def federation() -> str:
    """A round of federated learning."""
    clients = [
        Box("own", 20, 20 + 80 * i, 170, 60, f"client {i}", ("trains on its own data",))
        for i in range(3)
    ]
    servers = [
        Box("secret", 320, 20 + 80 * i, 190, 60, f"server {i}", ("shares of all updates",))
        for i in range(3)
    ]
    result = Box("box", 620, 80, 160, 100, "one vector", ("the combined", "update of a round"))
    shares = [Arrow((192, 50 + 80 * i), (317, 50 + 80 * j)) for i in range(3) for j in range(3)]
    shown = [Arrow((512, 50 + 80 * i), (617, 130)) for i in range(3)]
    return drawn(
        "A round: clients send shares of their updates to three servers, which reveal one vector",
        (800, 260),
        [*clients, *servers, result],
        [*shares, *shown],
    )


def compilation() -> str:
    """What the compiler makes, and who gets it."""
    boxes = [
        Box("own", 20, 80, 170, 90, "model", ("PyTorch, ONNX,", "TensorFlow; its owner's")),
        Box("box", 290, 80, 160, 90, "tacit compile", ("in the clear,", "at the owner")),
        Box(
            "box",
            560,
            20,
            220,
            80,
            "program: public",
            ("graph, scales, widths;", "every party has it"),
        ),
        Box(
            "own",
            560,
            150,
            220,
            80,
            "weights: the owner's",
            ("shared in a session", "and not shown"),
        ),
        Box("own", 20, 200, 170, 40, "calibration data"),
    ]
    arrows = [
        Arrow((192, 125), (287, 125)),
        Arrow((192, 220), (290, 172)),
        Arrow((452, 115), (557, 62)),
        Arrow((452, 135), (557, 188)),
    ]
    return drawn(
        "The compiler makes a public program and weights that stay with the owner",
        (800, 260),
        boxes,
        arrows,
    )


def machine() -> str:
    """A compiled program on secret files."""
    boxes = [
        Box("box", 20, 30, 160, 70, "program.c", ("C, or Rust",)),
        Box(
            "box",
            260,
            30,
            190,
            70,
            "program.elf",
            ("RISC-V, by gcc or clang;", "every party has it"),
        ),
        Box("own", 20, 160, 160, 70, "secret files", ("each at its owner",)),
        Box(
            "secret",
            260,
            150,
            190,
            90,
            "all parties",
            ("run it in step, each on", "shares of secret words"),
        ),
        Box(
            "own", 560, 160, 220, 70, "output", ("opened at the end, to", "whom all have agreed on")
        ),
    ]
    arrows = [
        Arrow((182, 65), (257, 65)),
        Arrow((355, 102), (355, 147)),
        Arrow((182, 195), (257, 195)),
        Arrow((452, 195), (557, 195)),
    ]
    return drawn("A program for RISC-V runs on shares of secret files", (800, 260), boxes, arrows)


PICTURES = {"federation.svg": federation, "compilation.svg": compilation, "machine.svg": machine}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(__file__).parent.parent / name).write_text(draw())
