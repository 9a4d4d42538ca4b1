"""Operators of PyTorch's database that secret tensors do not have, or not wholly: an explicit list, so
that neither a gap nor a new operator goes unnoticed. What is refused, and what it says, is written by
tests/operators/survey.py."""

from tacit.commands.coverage import operator_coverage

__all__ = ["ELSEWHERE", "NO_INPUT", "PARTLY", "REFUSED", "UNDEFINED"]

PARTLY, REFUSED = operator_coverage().partly, operator_coverage().refused

#: No tensor goes in, so there is nothing to be secret.
NO_INPUT = {
    "arange",
    "broadcast_shapes",
    "empty",
    "empty_permuted",
    "empty_strided",
    "eye",
    "full",
    "linspace",
    "logspace",
    "normal/number_mean",
    "ones",
    "randint",
    "randn",
    "scalar_tensor",
    "signal.windows.bartlett",
    "signal.windows.blackman",
    "signal.windows.cosine",
    "signal.windows.exponential",
    "signal.windows.gaussian",
    "signal.windows.general_cosine",
    "signal.windows.general_hamming",
    "signal.windows.hamming",
    "signal.windows.hann",
    "signal.windows.kaiser",
    "signal.windows.nuttall",
    "zeros",
}

#: Their values are undefined, or taken from memory around what was shared; shapes and dtypes are compared.
UNDEFINED = {"as_strided/partial_views", "empty_like", "new_empty", "new_empty_strided"}

#: What PyTorch itself does not run here: other devices, other layouts.
ELSEWHERE = {
    "jiterator_2inputs_2outputs",
    "jiterator_4inputs_with_extra_args",
    "jiterator_binary",
    "jiterator_binary_return_by_ref",
    "jiterator_unary",
    "sparse.mm/reduce",
}
