"""Gradients of the operators in PyTorch's database, for secret tensors and for plain ones."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gaps
import harness
import torch
from torch.utils import _pytree as pytree

import tacit
from tacit import fixed

#: Calls of each operator that are tested.
SAMPLES = 6

#: The maximum count of elements in all inputs of a call. Gradients of larger inputs take time and
#: show nothing new.
LARGEST = 4_000

#: The bound that inputs are scaled down to if they are larger.
LARGEST_VALUE = 9.0

#: The unit of fixed point at the default scale.
UNIT = 2.0**-16

#: Bounds on the gradients that are compared, as operators' docstrings state them near poles, at the
#: scale of gradients.
LARGEST_GRADIENT = {"polygamma": 2.0**19, "special.polygamma": 2.0**19}

#: Operators whose inputs are scaled down to this magnitude instead. One multiplies nested
#: quotients, each one unit off, by sums of squares in the hundreds. The others multiply attention
#: weights, each one unit off, by products of four matrices.
SMALLER = {
    "nn.functional.cosine_embedding_loss": 3.0,
    "nn.functional.multi_head_attention_forward": 3.0,
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": 3.0,
}


@dataclass(frozen=True)
class Sample(harness.Sample):
    """One call of an operator, and a function that selects the differentiable outputs."""

    outputs: Callable[[Any], Any]


def operators() -> list[tuple[str, str]]:
    """Returns the name and variant of every operator in the database with a float32 gradient."""
    found = [key for key in harness.operators() if harness.find(*key).supports_autograd]
    return [(name, variant) for name, variant in found if f"{name}/{variant}" not in gaps.ELSEWHERE]


def samples(name: str, variant: str) -> list[Sample]:
    """Returns calls with a secret input alone, and calls in which all fractions are secret.

    Only secret tensors get gradients.
    """
    torch.manual_seed(7)
    found: list[Sample] = []
    empty: list[Sample] = []
    for at, sample in enumerate(
        harness.find(name, variant).sample_inputs("cpu", torch.float32, requires_grad=True)
    ):
        first, others = _tensors(sample.input), _tensors((sample.args, sample.kwargs))
        if (
            not any(leaf.requires_grad for leaf in first)
            or sum(leaf.numel() for leaf in first + others) > LARGEST
        ):
            continue
        whole = name, variant, at, sample.input, sample.args, sample.kwargs
        which = found if all(leaf.numel() for leaf in first + others) else empty
        which.append(Sample(*whole, False, sample.output_process_fn_grad))
        if any(leaf.is_floating_point() for leaf in others):
            which.append(Sample(*whole, True, sample.output_process_fn_grad))
        if len(found) >= SAMPLES:
            break
    return [sample for sample in harness.with_few(empty, found, SAMPLES) if _has_gradient(sample)]


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _has_gradient(sample: Sample) -> bool:
    """Returns whether PyTorch itself computes a real gradient."""
    try:
        return not any(gradient.is_complex() for gradient in expected(sample)[0])
    except Exception:
        return False


def _renewed(
    value: Any, sample: Sample, secretly: bool, leaves: list[torch.Tensor] | None, shift: float
) -> Any:
    """Copies the arguments of a call, and shares the fractions if ``secretly`` is true.

    If ``leaves`` is a list, the fractions that require a gradient are shifted by ``shift`` and
    appended to it. If it is None, all tensors stay plain.
    """

    def renew(leaf: Any) -> Any:
        if not (isinstance(leaf, torch.Tensor) and leaf.is_floating_point()):
            return leaf
        plain = _encodable(leaf, SMALLER.get(sample.name, LARGEST_VALUE))
        if leaves is None:
            return plain
        plain = plain + shift if leaf.requires_grad else plain
        if secretly:
            # The error must arise in all parties, before any of them begins to share.
            fixed.encode(plain, fixed.DEFAULT)
        new = tacit.share(plain, owner=0) if secretly else plain
        if leaf.requires_grad:
            leaves.append(new.requires_grad_())
        return new

    return pytree.tree_map(renew, value)


def _encodable(leaf: torch.Tensor, largest: float) -> torch.Tensor:
    """Rounds values to fixed point, after scaling them down to the bound.

    Near a pole, a gradient differs between a number and its encoding. The squares of some samples
    would exceed the range of fixed point.
    """
    values = leaf.detach().double()
    if leaf.requires_grad and values.numel() and float(values.abs().max()) > largest:
        values = values * (largest / values.abs().max())
    return ((values / UNIT).round() * UNIT).to(leaf.dtype)


def _gradients(sample: Sample, secretly: bool, shift: float = 0.0) -> list[torch.Tensor]:
    """Returns the gradients of all inputs that are secret, or would be.

    Each output is weighted by fixed random numbers.
    """
    operator = harness.find(sample.name, sample.variant)
    leaves: list[torch.Tensor] = []
    first = _renewed(sample.input, sample, secretly, leaves, shift)
    others = leaves if sample.all_secret else None
    args, kwargs = _renewed((sample.args, sample.kwargs), sample, secretly, others, shift)
    result = sample.outputs(operator.op(first, *args, **kwargs))
    outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    outputs = [output for output in outputs if output.requires_grad]
    generator = torch.Generator().manual_seed(3)
    weights: list[Any] = [
        torch.randn(output.shape, generator=generator, dtype=output.dtype) for output in outputs
    ]
    if secretly:
        # In training, the loss is computed from secrets. Plain weights would make the gradients of
        # all linear operators plain.
        weights = [tacit.share(weight, owner=0) for weight in weights]
    return list(
        torch.autograd.grad(outputs, leaves, weights, allow_unused=True, materialize_grads=True)
    )


def expected(sample: Sample) -> tuple[list[torch.Tensor], bool]:
    """Returns the plain gradients, and whether the operator drew random numbers."""
    with harness.Draws() as draws:
        gradients = _gradients(sample, False)
    return gradients, draws.happened


def difference(sample: Sample, found: list[Any]) -> str | None:
    """Describes what is wrong with gradients, or returns None.

    Gradients are undefined where plain ones are not finite. Elsewhere they may be off by the change
    of plain ones within two units of the inputs. If the operator draws random numbers, only shapes
    and dtypes are compared.
    """
    plain, drawn = expected(sample)
    if drawn:
        return harness.difference(found, plain, values=False)
    moved = [_gradients(sample, False, shift) for shift in (2 * UNIT, -2 * UNIT)]
    held = []
    for mine, theirs, *around in zip(found, plain, *moved, strict=True):
        if mine.shape != theirs.shape:
            return f"shape {tuple(mine.shape)} in the place of {tuple(theirs.shape)}"
        slack = torch.stack([(each - theirs).abs() for each in around]).amax(0)
        near = (mine - theirs).clamp(-slack, slack)
        held.append(torch.where(theirs.isfinite() & slack.isfinite(), mine - near, theirs))
    return harness.difference(held, plain, largest=LARGEST_GRADIENT.get(sample.name, math.inf))


def attempt(all_samples: list[Sample]) -> list[Any]:
    """Runs in a party. Returns the revealed gradients of each sample, or the error."""
    outcomes: list[Any] = []
    for sample in all_samples:
        try:
            gradients = _gradients(sample, True)
            outcomes.append(
                [one.reveal() if isinstance(one, tacit.SecretTensor) else one for one in gradients]
            )
        except tacit.MisuseError as error:
            outcomes.append(error)
        except Exception as error:
            outcomes.append(RuntimeError(f"{type(error).__name__}: {error}"))
    return outcomes


class Verdict:
    """The results of an operator's samples."""

    def __init__(self) -> None:
        self.is_empty = False
        self.right = 0
        self.refusals: list[str] = []
        self.wrong: list[str] = []


def verdict(
    key: str, protocol: str = "plain", parties: int = 2, source: str | None = None
) -> Verdict:
    """Runs an operator's samples, and checks their gradients against the plain ones."""
    made = Verdict()
    name, _, variant = key.partition("/")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        all_samples = samples(name, variant)
        made.is_empty = not all_samples
        if made.is_empty:
            return made
        outcomes = tacit.launch(
            attempt, all_samples, parties=parties, protocol=protocol, source=source
        )[0]
        for sample, found in zip(all_samples, outcomes, strict=True):
            place = f"sample {sample.at}, all secret: {sample.all_secret}"
            if isinstance(found, tacit.MisuseError):
                made.refusals.append(str(found))
            elif isinstance(found, Exception):
                made.wrong.append(f"{place}: {found}")
            elif wrong := difference(sample, found):
                made.wrong.append(f"{place}: {wrong}")
            else:
                made.right += 1
    return made


#: Every operator with a gradient, by name and variant.
KEYS = [f"{name}/{variant}" if variant else name for name, variant in operators()]
