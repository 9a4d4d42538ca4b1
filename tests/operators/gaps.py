"""Operators of PyTorch's database that secret tensors lack, wholly or in part.

The list is explicit, so that neither a gap nor a new operator goes unnoticed. The refused operators
and their reasons are written by tests/operators/survey.py.
"""

from tacit.commands.coverage import operator_coverage

__all__ = ["ELSEWHERE", "NO_INPUT", "PARTLY", "REFUSED", "UNDEFINED"]

PARTLY, REFUSED = operator_coverage().partly, operator_coverage().refused

#: Operators without tensor inputs, so there is nothing to be secret.
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

#: Operators whose values are undefined, or read from memory around the shared elements. Only shapes
#: and dtypes are compared.
UNDEFINED = {"as_strided/partial_views", "empty_like", "new_empty", "new_empty_strided"}

#: Operators that PyTorch itself does not run here, since they need another device or layout.
ELSEWHERE = {
    "jiterator_2inputs_2outputs",
    "jiterator_4inputs_with_extra_args",
    "jiterator_binary",
    "jiterator_binary_return_by_ref",
    "jiterator_unary",
    "sparse.mm/reduce",
}
