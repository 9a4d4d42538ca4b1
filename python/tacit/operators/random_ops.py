"""Operators that draw random numbers for secret tensors.

No party knows these samples (``distributions``); an example is the mask of a dropout. Inside
``tacit.public_random()`` all parties draw the same public samples, without interaction.
"""

from typing import Any

import torch

from tacit import checks, fixed
from tacit.errors import MisuseError
from tacit.fixed import WHOLE, Scale
from tacit.operators.arithmetic import add, mul
from tacit.operators.comparison import lt
from tacit.operators.dispatch.operands import as_words, secret_of
from tacit.operators.dispatch.scales import of_product, of_session, of_target
from tacit.operators.dispatch.table import assign, implements, unsupported
from tacit.operators.selection import one_hot
from tacit.operators.view_ops import cat
from tacit.operators.where import where
from tacit.randomness import distributions, generators, sampling
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _of_normal(session: Scale, mean: Scale, std: Scale = WHOLE) -> Scale:
    """Returns the scale of std·x + mean."""
    return fixed.of_sum([of_product(session, session, std), mean])


def _publicly(generator: torch.Generator | None) -> bool:
    """Returns whether all parties draw the same samples here."""
    if generator is not None:
        unsupported(
            "drawing for a secret tensor from a generator that is named",
            "pass no generator: samples are secret, or public inside tacit.public_random()",
        )
    return generators.draws_publicly()


def _secret(x: SecretTensor, words: Parts, dtype: torch.dtype | None = None) -> SecretTensor:
    """Returns words at the session's scale as a secret tensor with the dtype of x."""
    return x.like(
        words, x._session.scale, dtype or (x.dtype if x.dtype.is_floating_point else torch.float32)
    )


def _uniform(x: SecretTensor) -> SecretTensor:
    session = x._session
    return _secret(x, distributions.uniform(session, tuple(x.shape), session.scale.bits))


def _normal(x: SecretTensor) -> SecretTensor:
    session = x._session
    return _secret(x, distributions.normal(session, tuple(x.shape), session.scale.bits))


def _moved(x: SecretTensor, start: Any, factor: Any) -> SecretTensor:
    return add(mul(x, factor), start)


@implements(aten.rand_like.default, scale=of_session)
def rand_like(x: SecretTensor, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """Returns uniform samples from 0 to before 1. Rounds as ``tacit.random.uniform``."""
    if _publicly(None):
        return torch.rand(x.shape, dtype=dtype or x.dtype)
    drawn = _uniform(x)
    return drawn.like(drawn._parts, dtype=dtype or x.dtype)


@implements(aten.randn_like.default, scale=of_session)
def randn_like(x: SecretTensor, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """Returns normal samples of mean 0 and variance 1. Rounds as ``tacit.random.normal``."""
    if _publicly(None):
        return torch.randn(x.shape, dtype=dtype or x.dtype)
    drawn = _normal(x)
    return drawn.like(drawn._parts, dtype=dtype or x.dtype)


@implements(aten.uniform.default, scale=of_session)
def uniform(
    x: SecretTensor,
    start: float = 0.0,
    end: float = 1.0,
    *,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Returns uniform samples from ``start`` to before ``end``.

    Rounds as ``tacit.random.uniform``.
    """
    if _publicly(generator):
        return torch.empty(x.shape, dtype=x.dtype).uniform_(start, end)
    return _moved(_uniform(x), start, end - start)


@implements(aten.normal_.default, scale=of_target)
def normal_(
    x: SecretTensor,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    generator: torch.Generator | None = None,
) -> SecretTensor:
    """Writes normal samples in place. Rounds as ``tacit.random.normal``."""
    if _publicly(generator):
        return assign(x, torch.empty(x.shape, dtype=x.dtype).normal_(mean, std))
    return assign(x, _moved(_normal(x), mean, std))


@implements(
    aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor, scale=_of_normal
)
def normal(mean: Any, std: Any = 1.0, *, generator: torch.Generator | None = None) -> SecretTensor:
    """Returns normal samples. The means, the standard deviations, or both are secret.

    Rounds as ``tacit.random.normal``, and at most two.
    """
    shapes = [each.shape for each in (mean, std) if isinstance(each, torch.Tensor)]
    shape = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    x = secret_of(mean, std)
    if _publicly(generator):
        drawn: Any = torch.randn(shape, dtype=x.dtype)
    else:
        drawn = _secret(x, distributions.normal(x._session, tuple(shape), x._session.scale.bits))
    return add(drawn * std, mean)


@implements(aten.exponential.default, scale=of_session)
def exponential(
    x: SecretTensor, rate: float = 1.0, *, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Returns exponential samples of mean 1/rate. Rounds as ``tacit.random.exponential``."""
    if _publicly(generator):
        return torch.empty(x.shape, dtype=x.dtype).exponential_(rate)
    session = x._session
    drawn = distributions.exponential(session, tuple(x.shape), session.scale.bits)
    return _moved(_secret(x, drawn), 0, 1 / rate)


# Events with a probability
# --------------------------------------------------------------------------------


def _happens(
    x: SecretTensor, probability: float, generator: torch.Generator | None
) -> torch.Tensor:
    """Returns booleans of the shape of x that are true with the given probability."""
    if _publicly(generator):
        return torch.empty(x.shape).bernoulli_(probability) == 1
    known = torch.tensor(probability, dtype=torch.float64)
    drawn = sampling.happens(x._session, known, tuple(x.shape))
    return x.like(drawn, WHOLE, torch.bool)


def _as_numbers(x: SecretTensor, happens: torch.Tensor) -> torch.Tensor:
    """Returns booleans as 0 and 1 of the dtype of x, at the session's scale."""
    if not isinstance(happens, SecretTensor) or x.dtype == torch.bool:
        return happens.to(x.dtype)
    bits = x._session.scale.bits if x.dtype.is_floating_point else 0
    words = as_words(happens)._parts
    return x.like(
        tuple(word << bits for word in words), x._session.scale if bits else WHOLE, x.dtype
    )


@implements(aten.bernoulli.p, scale=of_session)
def bernoulli_p(
    x: SecretTensor, p: float = 0.5, *, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Returns 1 with a public probability, else 0.

    Rounds as ``tacit.random.bernoulli``, and two.
    """
    return _as_numbers(x, _happens(x, p, generator))


@implements(aten.bernoulli.default, scale=of_session)
def bernoulli(x: SecretTensor, *, generator: torch.Generator | None = None) -> torch.Tensor:
    """Returns 1 with secret probabilities, else 0.

    A uniform number is compared with each probability.
    """
    if _publicly(generator):
        drawn: Any = torch.rand(x.shape, dtype=torch.float64)
    else:
        session = x._session
        words = distributions.uniform(session, tuple(x.shape), x._scale.bits)
        drawn = x.like(words)
    return _as_numbers(x, lt(drawn, x))


@implements(aten.multinomial.default)
def multinomial(
    x: Any, count: int, replacement: bool = False, *, generator: torch.Generator | None = None
) -> SecretTensor:
    """Draws indices with probabilities in proportion to secret weights, to 2^-16.

    Rounds as ``tacit.random.uniform``, a product and a comparison. Without replacement indices are
    drawn one after another, so each of ``count`` takes these rounds and those of a one-hot vector.
    If no weight is left, which no party can see, the index is the last one.
    """
    size = x.shape[-1]
    if count < 1 or (count > size and not replacement):
        raise MisuseError(
            f"multinomial() of {size} weights draws 1 to {size} without replacement, not {count}"
        )
    x = as_words(x)
    if replacement or count == 1:
        return _drawn_by(x, count, generator)
    drawn: list[torch.Tensor] = []
    for _ in range(count):
        one = _drawn_by(x, 1, generator)
        drawn.append(one)
        x = where(one_hot(one, x.shape[-1]).squeeze(-2), 0, x)
    return cat(drawn, -1)


def _drawn_by(x: SecretTensor, count: int, generator: torch.Generator | None) -> SecretTensor:
    """Draws indices in proportion to weights.

    An index is the number of cumulative sums that a uniform fraction of the total has reached. The
    fraction of the total is not rounded. So it never equals the total, and an index without weight
    is never drawn.
    """
    session, bits, shape = x._session, fixed.ROOM, (*x.shape[:-1], count)
    if _publicly(generator):
        share = shares.trivial(session, torch.randint(1 << bits, shape))
    else:
        share = distributions.uniform(session, shape, bits)
    checks.hold_summands(session, x._parts, x.shape[-1])
    sums = tuple(part.cumsum(-1) for part in x._parts)
    total = tuple(part[..., -1:].expand(shape) for part in sums)
    reached = (part.unsqueeze(-1) for part in bilinear.multiply(session, share, total, 0))
    before = tuple(a - (b[..., None, :-1] << bits) for a, b in zip(reached, sums, strict=True))
    ones = shares.bit_to_ring(session, shares.complement(session, shares.sign(session, before, 64)))
    return x.like(tuple(one.sum(-1) for one in ones), WHOLE, torch.int64)


def _of_input(session: Scale, x: Scale, *_: Scale, **__: Scale) -> Scale:
    return of_product(session, x, session)


@implements(aten.native_dropout.default, scale=_of_input)
def native_dropout(
    x: SecretTensor, p: float, train: bool | None
) -> tuple[SecretTensor, torch.Tensor]:
    """Returns zero with probability p and x/(1 − p) otherwise, and which elements were kept.

    Rounds as ``tacit.random.bernoulli`` and four; two inside ``tacit.public_random()``.
    """
    if train is False:
        p = 0.0
    keeps = _happens(x, 1 - p, None)
    return _kept(x, keeps, 1 / (1 - p) if p < 1 else 0.0), keeps


@implements(aten.native_dropout_backward.default, scale=_of_input)
def native_dropout_backward(grad: SecretTensor, mask: torch.Tensor, scale: float) -> SecretTensor:
    """Returns the gradient of the elements that were kept. At most four rounds."""
    return _kept(grad, mask, scale)


def _kept(x: Any, keeps: torch.Tensor, factor: float) -> SecretTensor:
    return mul(where(keeps, x, 0), factor)
