"""Examples of a batch, and independent steps of each example (``stages.py``), run side by side.

While the messages of one are in transit, another one is computed.

An *example* is what the program was compiled for, one row or several. With k *streams*, k examples
go through each stage together. A *fiber* (crates/mpc/src/fibers.rs) is a set of steps of one
example that use one another. Each fiber has its own thread; the first one uses the thread that
starts them. Only one fiber runs at a time. It has all that the party has (links, masks, and
Python's objects) until it has sent what it can and needs an answer. Then the next fiber runs.

Why this is as correct and as secret as one step after another:

- **Order.** The order of turns follows from the numbers of streams and examples, and from the
  program's steps; these are the same in every party. So the draws of randomness and the messages
  have one order, on the links that exist anyway: no mask, triple or record number is used twice.
  The parties compare what all of them must have in common.
- **State.** The state of a fiber (layer, widths, series) is in a session object of its own
  (``Session.beside``). What all fibers share (weights, the names of operands) changes only within a
  turn.
- **Openings.** Inputs are shared before all fibers, and results are revealed after them. No fiber
  does either.
- **Failures.** The first failure ends the session with its cause, in all fibers and parties.

The rounds are those of the longest fiber of each stage. The bytes are those of one step after
another. The intermediate values of as many examples as there are streams are in memory at once, in
addition to all inputs and results."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from itertools import zip_longest

import torch

from tacit.compilation.signature import Input
from tacit.errors import MisuseError, told
from tacit.modes import is_tracing
from tacit.sessions import Session
from tacit.sharing import MOST_ELEMENTS
from tacit.tensor import SecretTensor
from tacit.trace import module_paths

#: Steps that run one after another, each called with the session that it runs in.
Fiber = Sequence[Callable[[Session], None]]

#: Carries out fibers.
Way = Callable[[Session, Sequence[Fiber]], None]

#: Greatest number of streams: each is a thread in every party.
MOST = 64


def check(streams: int) -> None:
    """Checks that there can be this number of streams.

    Raises:
        MisuseError: there cannot.
    """
    if type(streams) is not int or not 1 <= streams <= MOST:
        raise MisuseError(
            f"streams are 1 to {MOST}, not {streams!r}: each keeps an example in memory"
        )


def examples(inputs: Mapping[str, Input], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Returns the number of examples that are given, which is the same for every input.

    An input whose shape is not a batch of what the program was compiled for counts as one example.

    Raises:
        MisuseError: the number is not whole, or not the same for all inputs.
    """
    found = {inputs[name].name: _examples(inputs[name], shape) for name, shape in shapes.items()}
    if len(set(found.values())) > 1:
        said = ", ".join(f"{count} of {name}" for name, count in found.items())
        raise MisuseError(
            f"the inputs are different numbers of examples, {said}: give as many of each"
        )
    return next(iter(found.values()), 1)


def _examples(wanted: Input, shape: tuple[int, ...]) -> int:
    rows = wanted.shape[0] if wanted.shape else 0
    if not rows or not shape or shape[0] <= rows or shape[1:] != wanted.shape[1:]:
        return 1
    count, left = divmod(shape[0], rows)
    if left:
        raise MisuseError(
            f"the input {wanted.name} has {shape[0]} rows, which is no multiple of the {rows} that "
            f"the "
            "program was compiled for: fill it up with rows of any kind, or compile the program "
            "for one row"
        )
    return count


def batch(wanted: Input, count: int) -> tuple[int, ...]:
    """Returns the shape of ``count`` examples.

    Raises:
        MisuseError: there cannot be this number of examples.
    """
    if count == 1:
        return wanted.shape
    shape = tuple(count * size if at == 0 else size for at, size in enumerate(wanted.shape))
    if type(count) is not int or count < 1 or not shape or math.prod(shape) > MOST_ELEMENTS:
        raise MisuseError(
            f"the input {wanted.name} cannot be {count!r} examples of shape {wanted.shape}: it is "
            f"at least "
            f"one, and {MOST_ELEMENTS} numbers at most; run the program several times"
        )
    return shape


def check_batch(inputs: Mapping[str, Input], results: Sequence[tuple[int, ...]]) -> None:
    """Checks that all inputs and results consist of the same number of rows, so that a batch can be
    split and joined again.

    Raises:
        MisuseError: they do not.
    """
    shapes = [each.shape for each in inputs.values()]
    rows = {shape[0] if shape else 0 for shape in (*shapes, *results)}
    if len(rows) > 1 or 0 in rows:
        raise MisuseError(
            f"the program takes one example at a time: of shapes {shapes} it makes "
            f"{list(results)}, which do "
            "not all begin with as many rows"
        )


def one_of(x: torch.Tensor, at: int, count: int) -> torch.Tensor:
    """Returns an example of a batch."""
    if count == 1:
        return x
    rows = x.shape[0] // count
    return x[at * rows : (at + 1) * rows]


def beside(x: torch.Tensor, current: Session) -> torch.Tensor:
    """Returns a tensor in a session beside its own. A plain tensor belongs to no session and is
    returned as it is."""
    return x.beside(current) if isinstance(x, SecretTensor) else x


def joined(parts: Sequence[torch.Tensor], current: Session) -> torch.Tensor:
    """Concatenates the results of examples, in the session that their streams ran beside."""
    parts = [beside(part, current) for part in parts]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def side_by_side(current: Session, fibers: Sequence[Fiber]) -> None:
    """Carries out fibers that share rounds; each step is called with the session of its fiber.

    Raises:
        Exception: the first exception that a step raises. If there are several fibers, it ends the
            session.
    """
    # The reference sends no messages. A tracer records one operation after another.
    if len(fibers) == 1 or current.is_plain or is_tracing():
        by_turns(current, fibers)
        return

    def carry_out(fiber: Fiber) -> None:
        try:
            # Each thread has its own setting of whether gradients are computed.
            with current.beside() as own, torch.no_grad():
                for step in fiber:
                    step(own)
        except BaseException as error:
            # Other fibers wait for messages that this one would have sent.
            current.core.abort(*told(error))
            raise

    _in_threads(current, [partial(copy_context().run, carry_out, fiber) for fiber in fibers])


# Traces do not look into fibers, because their spans would mix.
@module_paths.step("side by side")
def _in_threads(current: Session, works: list[Callable[[], None]]) -> None:
    current.core.side_by_side(works)


def by_turns(current: Session, fibers: Sequence[Fiber]) -> None:
    """Carries out fibers in one thread: a step of each fiber in turn, in the order in which they
    would begin side by side."""
    for steps in zip_longest(*fibers):
        for step in steps:
            if step is not None:
                step(current)
