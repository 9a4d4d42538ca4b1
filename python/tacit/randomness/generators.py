"""PyTorch's generators in a session: each party draws its own values, or all draw the same.

PyTorch has one default generator in a process. Parties that are threads would draw from it in turn.
So in the thread of such a party every operator that draws uses the party's own generator, seeded by
the operating system. ``torch.manual_seed``, ``get_rng_state``, ``fork_rng`` and similar functions
act on that generator, as they would in a separate process. A generator that is passed explicitly is
used as it is.

No other party knows what a party draws. But PyTorch's generators are not cryptographic. Noise that
a secret depends on is drawn elsewhere.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch

from tacit.sessions import session

#: ATen's operators that draw random numbers. All others draw by these.
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

#: Dispatch key of the device on which parties compute.
CPU = torch._C.DispatchKey.CPU

#: Bytes of the coin that seeds PyTorch's generator.
COIN = 8

_own: ContextVar[torch.Generator | None] = ContextVar("tacit_generator", default=None)

_is_public: ContextVar[bool] = ContextVar("tacit_public_random", default=False)


def draws_publicly() -> bool:
    """Returns whether all parties draw the same values here."""
    return _is_public.get()


def _generator() -> torch.Generator:
    """Returns the generator that this code draws from by default."""
    return _own.get() or torch.default_generator


@contextmanager
def own_generator() -> Iterator[None]:
    """Gives this thread its own generator while the context is active."""
    divert()
    generator = torch.Generator()
    generator.seed()
    token = _own.set(generator)
    try:
        yield
    finally:
        _own.reset(token)


class _Default:
    """Replaces the default generator where ``torch.random`` looks for it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_generator(), name)


@cache
def divert() -> None:
    """Makes PyTorch draw from ``_generator()``.

    For a thread without its own generator this changes nothing. It registers kernels, which PyTorch
    permits only while no other thread computes. So it must run before other threads begin.
    """
    torch.random.default_generator = _Default()  # type: ignore[assignment, attr-defined]
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for operator in _drawing():
        library.impl(operator, _diverted(operator), "CPU", with_keyset=True)  # type: ignore[no-untyped-call]
    _libraries.append(library)


#: Libraries, whose registrations last as long as they do.
_libraries: list[torch.library.Library] = []


def _drawing() -> list[torch._ops.OpOverload]:
    """Returns all overloads of these operators that draw from a generator on the CPU."""
    packets = [getattr(torch.ops.aten, name) for name in DRAWING]
    forms = [getattr(packet, overload) for packet in packets for overload in packet.overloads()]
    return [
        form for form in forms if _takes_generator(form) and form.has_kernel_for_dispatch_key(CPU)
    ]


def _takes_generator(form: torch._ops.OpOverload) -> bool:
    return any(argument.name == "generator" for argument in form._schema.arguments)


def _diverted(form: torch._ops.OpOverload) -> Callable[..., Any]:
    """Returns PyTorch's kernel, with this thread's own generator instead of the default one."""
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


def public_coin() -> bytes:
    """Returns 16 random bytes that every party knows, and no party knew before.

    Each party draws as many bytes from its operating system at this moment and sends them to all
    others. The coin is the XOR of all parties' bytes. So it is uniform as long as one party draws
    well. An observer who knows everything that one party knew before, including the parties' common
    key, knows nothing of the coin. One round.

    A party that deviates could wait for the others' bytes and then choose the coin. So under
    ``"replicated-malicious"`` each party first sends a hash of its bytes, and in the end one of the
    coin: three rounds.

    Raises:
        PeerError: a party failed, or sent something else.
    """
    return session().core.public_coin(os.urandom(16))


@contextmanager
def public_random() -> Iterator[int]:
    """Makes all parties draw the same values from PyTorch's default generator in the context.

    ``torch.rand`` and everything else that uses this generator give the same values in every party,
    and different values each time. Afterwards each party continues with the values that it would
    have drawn.

    One round. It is for random values that are meant to be public: a plain ``nn.Linear``, a random
    projection. All parties must draw the same, in the same order. Samples for secret tensors, such
    as a dropout's mask, are public too in the context; elsewhere no party knows them. The context
    gives the coin itself, 64 bits that every party knows, for other libraries' generators
    (``numpy.random.default_rng(coin)``).

    The coin is that of ``public_coin``. Nothing secret may depend on it.

    Raises:
        MisuseError: there is no session.
        PeerError: a party failed, or sent something else.
    """
    coin = int.from_bytes(public_coin()[:COIN], "little")
    generator = _generator()
    state = generator.get_state()
    generator.manual_seed(coin)
    token = _is_public.set(True)
    try:
        yield coin
    finally:
        _is_public.reset(token)
        generator.set_state(state)
