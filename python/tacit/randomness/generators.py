"""PyTorch's generators in a session: each party draws for itself, or all draw the same values.

PyTorch has one default generator to a process, and parties that are threads would draw from it in
turn. So in the thread of such a party every operator that draws takes a generator of the party's
own, seeded by the operating system. ``torch.manual_seed``, ``get_rng_state``, ``fork_rng`` and the
like mean that one, as they would in a process of its own. Any other generator that is named is
taken as it is.

What a party draws is known to nobody else, but PyTorch's generators are no cryptographic ones:
noise that a secret rests on is drawn elsewhere.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch

from tacit.errors import DeviationError
from tacit.sessions import session

#: ATen's operators that draw; all others draw by these.
DRAWING = (
    "_sample_dirichlet",
    "_standard_gamma",
    "bernoulli",
    "bernoulli_",
    "binomial",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "random_",
    "randperm",
    "rrelu_with_noise",
    "rrelu_with_noise_",
    "uniform_",
)

#: Where the parties compute.
CPU = torch._C.DispatchKey.CPU

#: Bytes of the coin that PyTorch's generator is seeded with.
COIN = 8

_own: ContextVar[torch.Generator | None] = ContextVar("tacit_generator", default=None)

_is_public: ContextVar[bool] = ContextVar("tacit_public_random", default=False)


def draws_publicly() -> bool:
    """Whether all parties draw the same here."""
    return _is_public.get()


def _generator() -> torch.Generator:
    """What this code draws from by default."""
    return _own.get() or torch.default_generator


@contextmanager
def own_generator() -> Iterator[None]:
    """Within it, this thread draws from a generator of its own."""
    divert()
    generator = torch.Generator()
    generator.seed()
    token = _own.set(generator)
    try:
        yield
    finally:
        _own.reset(token)


class _Default:
    """In the place of the default generator, where ``torch.random`` looks for it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_generator(), name)


@cache
def divert() -> None:
    """Has PyTorch draw from ``_generator()``; where nobody has one of its own, that changes
    nothing. It registers kernels, which PyTorch bears while no other thread computes: so it comes
    before they begin."""
    torch.random.default_generator = _Default()  # type: ignore[assignment, attr-defined]
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for operator in _drawing():
        library.impl(operator, _diverted(operator), "CPU", with_keyset=True)  # type: ignore[no-untyped-call]
    _libraries.append(library)


#: What is registered lasts as long as its library.
_libraries: list[torch.library.Library] = []


def _drawing() -> list[torch._ops.OpOverload]:
    """All forms of these operators that take a generator and draw from it on the CPU."""
    packets = [getattr(torch.ops.aten, name) for name in DRAWING]
    forms = [getattr(packet, overload) for packet in packets for overload in packet.overloads()]
    return [
        form for form in forms if _takes_generator(form) and form.has_kernel_for_dispatch_key(CPU)
    ]


def _takes_generator(form: torch._ops.OpOverload) -> bool:
    return any(argument.name == "generator" for argument in form._schema.arguments)


def _diverted(form: torch._ops.OpOverload) -> Callable[..., Any]:
    """PyTorch's kernel, which draws from this thread's own generator in the place of the default
    one."""
    kernel = torch.library.get_kernel(form, CPU)

    def draw(keys: Any, *args: Any, **kwargs: Any) -> Any:
        own = _own.get()
        if own is not None:
            if isinstance(args[-1], torch.Generator):
                *args, kwargs["generator"] = args  # type: ignore[assignment]
            named = kwargs.get("generator")
            if named is None or named._cdata == torch.default_generator._cdata:  # type: ignore[attr-defined]
                kwargs["generator"] = own
        return kernel.call_boxed(keys, *args, **kwargs)

    return draw


def public_coin(size: int) -> bytes:
    """So many bytes that every party knows, and none before this. One round.

    Each party draws as many from its operating system, now, and tells them to all; the coin is the
    XOR of what all drew. So it is uniform as long as one party draws well, and whoever knows all
    that one party knows before this, the parties' common key among it, knows nothing of the coin.
    (A party that deviates may wait for what the others drew, and choose the coin then.)

    Raises:
        PeerError: a party failed, or told something else.
    """
    coin = 0
    for party, drawn in enumerate(session().told_by_all(os.urandom(size))):
        if len(drawn) != size:
            raise DeviationError.of(party, "told what is not its part of a coin", session().member)
        coin ^= int.from_bytes(drawn, "little")
    return coin.to_bytes(size, "little")


@contextmanager
def public_random() -> Iterator[int]:
    """Within it, ``torch.rand`` and all else that draws from PyTorch's default generator give the
    same values in every party, other ones each time; afterwards each party goes on with what it
    would have drawn.

    One round. For what is meant to be public and is drawn: a plain ``nn.Linear``, a random
    projection. All parties must draw the same, in the same order. What is drawn for secret tensors,
    such as a dropout's mask, is public too, where it is otherwise drawn so that nobody knows it. It
    gives the coin itself, 64 bits that
    every party knows: for other libraries' generators (``numpy.random.default_rng(coin)``).

    The coin is ``public_coin``'s. Nothing secret may rest on it.

    Raises:
        MisuseError: outside of a session.
        PeerError: a party failed, or told something else.
    """
    coin = int.from_bytes(public_coin(COIN), "little")
    generator = _generator()
    state = generator.get_state()
    generator.manual_seed(coin)
    token = _is_public.set(True)
    try:
        yield coin
    finally:
        _is_public.reset(token)
        generator.set_state(state)
