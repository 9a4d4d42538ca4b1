"""Remedies in error messages, for operators that secret tensors do not have."""

from typing import Any

#: Remedy if nothing better is known.
OTHERWISE = "replace it in the model, or apply it to plain tensors"

PLAIN_MATRIX = "compute it of the plain matrix, before it is shared"
TWO_TENSORS = "keep the real and the imaginary part as two tensors"
FIXED_POINT = "leave it out: secret numbers are fixed point already"

#: Remedy for a secret that is written into a plain tensor.
LIKE_A_SECRET = (
    "begin with a tensor like a secret one, x.new_zeros(shape) or torch.zeros_like(x), which "
    "becomes secret "
    "when a secret is written into it"
)

CLOSE = "reveal whether all are: torch.isclose(x, y).all().reveal()"
SHOWN = "reveal whether all are: x.all().reveal()"

#: Remedies by the beginning of the operator's name. The first match counts.
REWRITES = {
    "_fft_": "multiply by the real and the imaginary part of the public matrix "
    "torch.fft.fft(torch.eye(n))",
    "nonzero": "keep the shape: torch.where(mask, x, 0); mask.sum() counts",
    "_linalg_": PLAIN_MATRIX,
    "linalg_": PLAIN_MATRIX,
    "geqrf": PLAIN_MATRIX,
    "lu_": PLAIN_MATRIX,
    "complex": TWO_TENSORS,
    "view_as_": TWO_TENSORS,
    "polar": TWO_TENSORS,
    "to_sparse": "keep it dense",
    "_to_sparse": "keep it dense",
    "_sparse_": "a matrix of values at public places times x is zeros(rows, n).index_add(0, row, "
    "values.unsqueeze(1) * x[column])",
    "quantize": FIXED_POINT,
    "fake_quantize": FIXED_POINT,
    "_amp_": FIXED_POINT,
    "_fused_": "make the optimiser without fused=True",
    "_nested_tensor_from_mask": "make the encoder with enable_nested_tensor=False",
    "_nested_tensor": "pad them to one length, and say by a mask what is there",
    "_is_all_true": SHOWN,
    "_assert": "reveal what is asserted: assert condition.reveal()",
    "embedding_renorm": "leave max_norm out, or shorten the plain weights before they are shared",
    "allclose": CLOSE,
    "equal": CLOSE,
    "set_": "take the secret tensor in its place, x = y, or assign x.data = y where x is secret too",
    "special_": "approximate it by a polynomial, or by several and torch.where",
}


def rewrite(func: Any) -> str:
    """Returns what a program can do instead of the operator."""
    if any(argument.is_out for argument in func._schema.arguments):
        return "use the form that returns a new tensor"
    name = func._schema.name.removeprefix("aten::")
    return next((remedy for start, remedy in REWRITES.items() if name.startswith(start)), OTHERWISE)
