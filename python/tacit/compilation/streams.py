"""What goes side by side in a program: examples of a batch, and steps of each that do not use one
another (``stages.py``). While the messages of one are on their way, another one is computed.

An *example* is what the program was compiled for, one row or several. With k *streams* k examples
go through each stage together. A *fiber* (crates/mpc/src/fibers.rs) is the steps of one example
that use one another, on a thread to itself, the first on the one that begins them. Only one goes on
at a time: it has all that the party has (links, masks, and whatever Python works on) until it has
sent what it can and needs an answer; then the next one has it.

Why that is as right and as secret as one step after another:

- **Order.** Whose turn it is follows from how many streams and examples there are, and from the
  program's steps; these are the same in every party. So draws and messages have one order, on the
  links that are there
  anyway: no mask, triple or record number is used twice. What all parties must have alike is
  compared.
- **State.** What a fiber is in the middle of (layer, widths, series) is in a session object of its
  own (``Session.beside``). What belongs to all (weights, the names of operands) changes within a
  turn alone.
- **Openings.** Inputs are shared before, results revealed after all: in a fiber nothing is.
- **Failures.** The first one ends the session with its cause, in all fibers and parties.

Rounds are those of the longest fiber of each stage. Bytes are those of one step after another. Of
what is computed on the way there are as many examples in memory as streams, besides all inputs and
results."""

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

#: What is done one after another, each with the session that it is done in.
Fiber = Sequence[Callable[[Session], None]]

#: How fibers are carried out.
Way = Callable[[Session, Sequence[Fiber]], None]

#: Streams at most: each is a thread in every party.
MOST = 64


def check(streams: int) -> None:
    """Whether there can be so many.

    Raises:
        MisuseError: not.
    """
    if type(streams) is not int or not 1 <= streams <= MOST:
        raise MisuseError(
            f"streams are 1 to {MOST}, not {streams!r}: each keeps an example in memory"
        )


def examples(inputs: Mapping[str, Input], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many examples are given: of every input as many. One where a shape is no batch of what
    the program was compiled for.

    Raises:
        MisuseError: it is no whole number, or not the same for all inputs.
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
    """The shape of so many examples.

    Raises:
        MisuseError: so many cannot be.
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
    """Whether all that goes in and comes out is rows, as many of each, so that a batch can be taken
    apart and put together again.

    Raises:
        MisuseError: it is not.
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
    """An example of a batch."""
    if count == 1:
        return x
    rows = x.shape[0] // count
    return x[at * rows : (at + 1) * rows]


def beside(x: torch.Tensor, current: Session) -> torch.Tensor:
    """The same in a session beside its own; a plain tensor belongs to none."""
    return x.beside(current) if isinstance(x, SecretTensor) else x


def joined(parts: Sequence[torch.Tensor], current: Session) -> torch.Tensor:
    """What examples gave as one, in the session that streams were beside."""
    parts = [beside(part, current) for part in parts]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def side_by_side(current: Session, fibers: Sequence[Fiber]) -> None:
    """Carries fibers out, sharing rounds; each step is called with the session of its fiber.

    Raises:
        Exception: the first that a step raises; where there are several fibers it ends the session.
    """
    # Under the reference nothing is on its way. A tracer takes one thing after another down.
    if len(fibers) == 1 or current.is_plain or is_tracing():
        by_turns(current, fibers)
        return

    def carry_out(fiber: Fiber) -> None:
        try:
            # Whether there are gradients, each thread says for itself.
            with current.beside() as own, torch.no_grad():
                for step in fiber:
                    step(own)
        except BaseException as error:
            # Other fibers wait for messages that this one would have sent.
            current.core.abort(*told(error))
            raise

    _in_threads(current, [partial(copy_context().run, carry_out, fiber) for fiber in fibers])


# A trace does not look into fibers: their spans would mix.
@module_paths.step("side by side")
def _in_threads(current: Session, works: list[Callable[[], None]]) -> None:
    current.core.side_by_side(works)


def by_turns(current: Session, fibers: Sequence[Fiber]) -> None:
    """The same in one thread: a step of each fiber after the other, as they would begin side by
    side."""
    for steps in zip_longest(*fibers):
        for step in steps:
            if step is not None:
                step(current)
