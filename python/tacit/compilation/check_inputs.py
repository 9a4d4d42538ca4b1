"""Checks of inputs against what a program takes."""

from collections.abc import Mapping

import torch

from tacit.compilation import streams
from tacit.compilation.format import dtype_name
from tacit.compilation.graph import outputs
from tacit.compilation.signature import Input, Runnable
from tacit.errors import EncodingError, MisuseError
from tacit.refusals import misuse


def placeholder_of(program: Runnable, name: str | None) -> str:
    """Returns the placeholder of the input with this name, or of the only input.

    Raises:
        MisuseError: there is no such input, or no name is given and there are several.
    """
    if name is None:
        if len(program.inputs) == 1:
            return next(iter(program.inputs))
        names = ", ".join(each.name for each in program.inputs.values())
        raise MisuseError(f"the program takes several inputs: say which of {names}")
    for placeholder, each in program.inputs.items():
        if name in (placeholder, each.name):
            return placeholder
    raise MisuseError(f"the program has no input {name!r}")


def same_kind(program: Runnable, inputs: Mapping[str, torch.Tensor]) -> int:
    """Checks the shapes and dtypes of inputs against those that a program takes.

    Returns:
        The number of examples that the inputs hold.

    Raises:
        MisuseError: an input has another shape or dtype, or cannot be a batch.
    """
    count = streams.examples(program.inputs, {name: tuple(x.shape) for name, x in inputs.items()})
    if count > 1:
        results = (node.meta["value"] for node in outputs(program.graph))
        streams.check_batch(program.inputs, [tuple(each.shape) for each in results])
    for name, given in inputs.items():
        wanted = program.inputs[name]
        if tuple(given.shape) != streams.batch(wanted, count):
            raise misuse(
                "kind",
                f"the input {wanted.name} has shape {tuple(given.shape)}, the program was compiled "
                f"for "
                f"{wanted.shape}: give it that, or compile it for this one",
            )
        if _kind(given.dtype) != _kind(wanted.dtype):
            raise misuse(
                "kind",
                f"the input {wanted.name} is {dtype_name(given.dtype)}, the program takes "
                f"{dtype_name(wanted.dtype)}: convert it, and scale it as the calibration data were",
            )
    return count


def _kind(dtype: torch.dtype) -> str:
    if dtype == torch.bool or dtype.is_complex:
        return dtype_name(dtype)
    return "fraction" if dtype.is_floating_point else "integer"


def check_interval(given: Input, values: torch.Tensor) -> None:
    """Checks that numbers lie in the interval that their owner promised at compilation.

    Raises:
        EncodingError: some are NaN.
        MisuseError: some are outside the interval.
    """
    if not values.numel() or not values.is_floating_point():
        return
    values = given.scaled(values.detach())
    low, high = map(float, values.aminmax())
    if low != low or high != high:
        raise EncodingError.of(
            "finite",
            f"the input {given.name} holds NaN, which has no fixed-point encoding: look where it "
            f"is made, or put a number in its place (torch.nan_to_num), which a model that fills "
            "in missing values must take for one (SimpleImputer(missing_values=...))",
        )
    if given.interval is not None and not given.interval[0] <= low <= high <= given.interval[1]:
        where, factor = f"the input {given.name}", 1.0
        if given.exponents:
            beyond = (values < given.interval[0]) | (values > given.interval[1])
            column = int(beyond.flatten(0, -2).any(0).nonzero()[0])
            where, factor = f"{where}, column {column},", 2.0 ** given.exponents[column]
        raise misuse(
            "interval",
            f"{where} has numbers outside of {given.interval[0] / factor:g} to "
            f"{given.interval[1] / factor:g}, "
            "for which the program was compiled: scale them as its calibration data were, or "
            "compile "
            "it for them",
        )
