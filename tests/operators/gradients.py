"""Gradients of the operators in PyTorch's database, of secret tensors and of plain ones."""

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

#: Calls of an operator that are tried.
SAMPLES = 6

#: Elements of all inputs of a call that is tried; gradients of more take time and show nothing new.
LARGEST = 4_000

#: Values of inputs, to which larger ones are brought.
LARGEST_VALUE = 9.0

#: What fixed point tells apart.
UNIT = 2.0**-16

#: Tried with inputs of this magnitude: quotients of quotients, each a unit off, times sums of
#: squares that are hundreds; and weights of attention, each a unit off, times products of four
#: matrices.
SMALLER = {
    "nn.functional.cosine_embedding_loss": 3.0,
    "nn.functional.multi_head_attention_forward": 3.0,
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": 3.0,
}


@dataclass(frozen=True)
class Sample(harness.Sample):
    """One call, and what of its result has a gradient."""

    outputs: Callable[[Any], Any]


def operators() -> list[tuple[str, str]]:
    """Name and variant of every operator in the database that has a gradient in float32."""
    found = [key for key in harness.operators() if harness.find(*key).supports_autograd]
    return [(name, variant) for name, variant in found if f"{name}/{variant}" not in gaps.ELSEWHERE]


def samples(name: str, variant: str) -> list[Sample]:
    """Calls with the input alone secret, then with all fractions secret; no gradient is wanted of
    others."""
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
    """Whether PyTorch itself computes one, of fractions."""
    try:
        return not any(gradient.is_complex() for gradient in expected(sample)[0])
    except Exception:
        return False


def _renewed(
    value: Any, sample: Sample, secretly: bool, leaves: list[torch.Tensor] | None, shift: float
) -> Any:
    """The same arguments with tensors of their own; of fractions, secret ones or not, those that
    want a gradient are leaves, if there is a list for them, shifted by so much."""

    def renew(leaf: Any) -> Any:
        if not (isinstance(leaf, torch.Tensor) and leaf.is_floating_point()):
            return leaf
        plain = _encodable(leaf, SMALLER.get(sample.name, LARGEST_VALUE))
        if leaves is None:
            return plain
        plain = plain + shift if leaf.requires_grad else plain
        if secretly:
            # What no party could share, none begins to.
            fixed.encode(plain, fixed.DEFAULT)
        new = tacit.share(plain, owner=0) if secretly else plain
        if leaf.requires_grad:
            leaves.append(new.requires_grad_())
        return new

    return pytree.tree_map(renew, value)


def _encodable(leaf: torch.Tensor, largest: float) -> torch.Tensor:
    """The nearest numbers that fixed point has: near a pole a gradient tells them from what is
    between. Of
    the magnitudes of most samples: the squares of some are beyond all that fixed point holds."""
    values = leaf.detach().double()
    if leaf.requires_grad and values.numel() and float(values.abs().max()) > largest:
        values = values * (largest / values.abs().max())
    return ((values / UNIT).round() * UNIT).to(leaf.dtype)


def _gradients(sample: Sample, secretly: bool, shift: float = 0.0) -> list[torch.Tensor]:
    """Of all inputs that are secret, or would be; weighted by fixed random
    numbers at each output."""
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
        # As in training, where what is added up in the end was computed of secrets: plain weights
        # would make the gradients of all that is linear plain.
        weights = [tacit.share(weight, owner=0) for weight in weights]
    return list(
        torch.autograd.grad(outputs, leaves, weights, allow_unused=True, materialize_grads=True)
    )


def expected(sample: Sample) -> tuple[list[torch.Tensor], bool]:
    """The plain gradients, and whether numbers were drawn for them."""
    with harness.Draws() as draws:
        gradients = _gradients(sample, False)
    return gradients, draws.happened


def difference(sample: Sample, found: list[Any]) -> str | None:
    """What is wrong with gradients, if anything. Where a plain one is not finite they are
    undefined; and they may be off by as much as plain ones change within two units of the inputs.
    Of operators that draw numbers only shapes and dtypes count."""
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
    return harness.difference(held, plain)


def attempt(all_samples: list[Sample]) -> list[Any]:
    """In a party: for each sample its gradients, revealed, or the error."""
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
    """What the samples of an operator gave."""

    def __init__(self) -> None:
        self.is_empty = False
        self.right = 0
        self.refusals: list[str] = []
        self.wrong: list[str] = []


def verdict(
    key: str, protocol: str = "plain", parties: int = 2, source: str | None = None
) -> Verdict:
    """Runs an operator's samples, and holds their gradients against the plain ones."""
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


#: Every operator that has a gradient, by name and variant.
KEYS = [f"{name}/{variant}" if variant else name for name, variant in operators()]
