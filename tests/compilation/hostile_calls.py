"""Calls operators that programs may use with arguments of any kind.

Each call is a program of one node. The tests run this file in a separate process with the names of
operators as arguments. It prints each name on its own line before it calls the operator, so that a
crash names its cause.
"""

import json
import math
import random
import resource
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from written import node, program

from tacit.compilation.allowlist import ITEM, PLACES, by_name
from tacit.compilation.format import dtype_of
from tacit.compilation.graph import Value, walk
from tacit.compilation.program import Program
from tacit.errors import TacitError

#: Calls per operator.
CALLS = 80

#: Limits of the process as Linux counts them: bytes of address space, so that it takes no memory
#: from other processes, and kilobytes of resident memory.
MOST_MEMORY, MOST_HELD = 8 << 30, 2 << 20

#: Most elements of a value for which a program is executed.
SMALL = 1 << 16

EDGES = (
    0,
    1,
    2,
    3,
    -1,
    -2,
    7,
    64,
    65,
    1 << 14,
    1 << 31,
    1 << 40,
    -(1 << 40),
    1 << 62,
    2**63 - 1,
    -(2**63),
)
FRACTIONS = (0.0, 1.0, -1.0, 0.5, 1e-45, 1e30, 1e308, math.inf, -math.inf, 2.0**63)
WORDS = (
    "",
    "mean",
    "sum",
    "none",
    "tanh",
    "constant",
    "reflect",
    "floor",
    "amax",
    "ij,jk->ik",
    "cpu",
    "x" * 99,
)
DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool")
SHAPES = (
    (),
    (0,),
    (1,),
    (2,),
    (4,),
    (2, 3),
    (4, 4),
    (2, 0, 3),
    (2, 3, 4),
    (1, 2, 6, 6),
    (1, 2, 4, 4, 4),
)

Draw = random.Random


class Caller:
    """Draws the arguments of a call and the constants among them."""

    def __init__(self, draw: Draw) -> None:
        self.constants: list[torch.Tensor] = []
        self._draw, self._shape = draw, draw.choice(SHAPES)

    def any_of(self, kind: str) -> Any:
        """Draws an argument of the kind that the schema names. One in ten is of another kind."""
        if self._draw.random() < 0.1:
            return self._anything(2)
        if kind.startswith("Optional["):
            return None if self._draw.random() < 0.4 else self.any_of(kind[9:-1])
        if kind.startswith("List["):
            return [
                self.any_of(kind[5:-1]) for _ in range(self._draw.choice((0, 1, 2, 2, 3, 4, 6)))
            ]
        return self._known.get(kind, lambda: self._anything(2))()

    @property
    def _known(self) -> dict[str, Callable[[], Any]]:
        draw = self._draw
        return {
            "Tensor": self._constant,
            "int": lambda: draw.choice(draw.choice((EDGES[:5], EDGES))),
            "SymInt": lambda: draw.choice(draw.choice((EDGES[:5], EDGES))),
            "number": lambda: _fraction(draw.choice((*EDGES, *FRACTIONS))),
            "float": lambda: _fraction(draw.choice(FRACTIONS)),
            "bool": lambda: draw.random() < 0.5,
            "str": lambda: draw.choice(WORDS),
            "ScalarType": lambda: {"dtype": draw.choice(DTYPES)},
        }

    def _anything(self, depth: int) -> Any:
        draw = self._draw
        if depth and draw.random() < 0.3:
            return [self._anything(depth - 1) for _ in range(draw.choice((0, 1, 3, 70)))]
        kind = draw.choice(("Tensor", "int", "float", "bool", "str", "ScalarType", "nothing"))
        return self._known[kind]() if kind != "nothing" else None

    def _constant(self) -> Any:
        draw = self._draw
        shape = self._shape if draw.random() < 0.6 else draw.choice(SHAPES)
        dtype = dtype_of(draw.choice(("float32", *DTYPES)))
        highest = draw.choice((2, 5, 2**62))
        value = torch.randint(-highest * draw.choice((0, 1)), highest, shape)
        self.constants.append((value != 0) if dtype == torch.bool else value.to(dtype))
        return {"of": f"c{len(self.constants) - 1}"}


def _fraction(number: Any) -> Any:
    return number if isinstance(number, int) or math.isfinite(number) else {"number": str(number)}


def drawn(name: str, draw: Draw) -> bytes:
    """Draws a program that calls the operator with constants only."""
    caller = Caller(draw)
    schema = getattr(by_name()[name], "_schema", None)
    wanted = [each for each in schema.arguments if each.name not in PLACES] if schema else []
    arguments, named = [], {}
    for each in wanted:
        if each.kwarg_only and draw.random() < 0.5:
            named[each.name] = caller.any_of(str(each.real_type))
        elif not each.kwarg_only:
            arguments.append(caller.any_of(str(each.real_type)))
    if not schema or draw.random() < 0.1:
        arguments = [*arguments, caller.any_of("int")][draw.choice((0, 0, 1)) :]
    several = schema is not None and (
        len(schema.returns) != 1 or "List" in str(schema.returns[0].type)
    )
    calls = [(name, arguments, named), *([(ITEM, [{"of": "n0"}, 0], {})] if several else [])]
    nodes = [
        node(f"n{at}", operator, *taken, **by_names)
        for at, (operator, taken, by_names) in enumerate(calls)
    ]
    constants = {f"c{at}": value for at, value in enumerate(caller.constants)}
    return program(*nodes, shapes={"x": (1,)}, constants=constants)


def call(name: str, draw: Draw) -> tuple[bool, bool]:
    """Loads a drawn program, and executes it if its values are small.

    Returns:
        Whether it loaded, and whether it was executed.

    Raises:
        Exception: Loading ended in anything but an error of tacit.
    """
    try:
        loaded = Program.parsed(drawn(name, draw), "the file")
    except TacitError:
        return False, False
    made = [node.meta["value"] for node in loaded.graph.nodes if "value" in node.meta]
    leaves = pytree.tree_leaves(made, is_leaf=lambda leaf: isinstance(leaf, Value))
    if any(isinstance(leaf, Value) and math.prod(leaf.shape) > SMALL for leaf in leaves):
        return True, False
    try:
        for result in walk(loaded.graph, {"x": torch.zeros(1), **loaded.constants}):
            result.clone()
    except Exception:  # In a session this ends in an error of tacit.
        return True, False
    return True, True


def main(names: list[str]) -> None:
    """Calls operators, and reports how many programs were loaded and executed."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    counts = {"loaded": 0, "carried out": 0}
    for name in names:
        print(name, flush=True)
        draw = random.Random(name)
        torch.manual_seed(0)
        for _ in range(CALLS):
            loaded, carried_out = call(name, draw)
            counts["loaded"] += loaded
            counts["carried out"] += carried_out
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if sys.platform == "linux" and held > MOST_HELD:
            sys.exit(f"it took {held} kB")
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
