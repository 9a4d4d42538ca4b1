"""Composite operators, which PyTorch composes of others.

They stay whole if a program may call them, because passes handle them best that way. Others are
decomposed, as they are when they are called on secret tensors."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode

from tacit.compilation.allowlist import is_allowed
from tacit.compilation.passes.normalise import CASTS, COPIES, VIEWS

aten = torch.ops.aten

#: Assertions of an export about its own tensors; the verifier computes the same anew.
ASSERTIONS = (aten._assert_tensor_metadata.default,)

#: Greatest depth of operators that are composed of composite operators.
MOST_LEVELS = 8


def decomposed(exported: ExportedProgram) -> ExportedProgram:
    """Decomposes the operators that no program may call, as far as PyTorch composes them."""
    with torch.no_grad():
        exported = exported.run_decompositions({})
        for _ in range(MOST_LEVELS):
            table = {target: _composition(target) for target in _called(exported.graph)}
            known = {target: made for target, made in table.items() if made is not None}
            if not known:
                break
            exported = exported.run_decompositions(known)
    return exported


def _called(graph: fx.Graph) -> set[Any]:
    return {
        node.target
        for node in graph.nodes
        if node.op == "call_function" and not _stays(node.target)
    }


def _stays(target: Any) -> bool:
    return is_allowed(target) or target in (*COPIES, *CASTS, *VIEWS, *ASSERTIONS)


def _composition(target: Any) -> Callable[..., Any] | None:
    """Returns how an operator is composed of others, or ``None`` if it is not."""
    if target in OWN:
        return OWN[target]
    if not isinstance(target, torch._ops.OpOverload) or not target._can_decompose():
        return None
    # ``decompose`` would look into the table that this goes into.
    return partial(target._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)


def _rrelu(x: torch.Tensor, lower: float = 1 / 8, upper: float = 1 / 3, *_: Any) -> torch.Tensor:
    """Returns RReLU in evaluation mode, which has a fixed slope; training mode is refused
    before."""
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2)


def _solved(x: torch.Tensor, right: torch.Tensor, *, left: bool = True) -> torch.Tensor:
    found: torch.Tensor = torch.linalg.solve_ex(x, right, left=left)[0]
    return found


def _inverted(x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = torch.linalg.inv_ex(x)[0]
    return found


def _factored(x: torch.Tensor, *, upper: bool = False) -> torch.Tensor:
    found: torch.Tensor = torch.linalg.cholesky_ex(x, upper=upper)[0]
    return found


#: Compositions of operators that PyTorch composes only with random numbers, or with a check whether
#: a matrix is singular, which is impossible for a secret one.
OWN: dict[Any, Callable[..., Any]] = {
    aten.rrelu.default: _rrelu,
    aten.linalg_solve.default: _solved,
    aten.linalg_inv.default: _inverted,
    aten.linalg_cholesky.default: _factored,
}


class Written(TorchFunctionMode):
    """Mode that replaces functions that cannot be exported, because they look at values, by
    others."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Calls a function, or the one that replaces it."""
        if (
            func in (torch.cov, torch.Tensor.cov)
            and not {"fweights", "aweights"} & (kwargs or {}).keys()
        ):
            func = _covariance
        return func(*args, **(kwargs or {}))


def _covariance(input: torch.Tensor, *, correction: int = 1) -> torch.Tensor:  # noqa: A002
    rows = input.unsqueeze(0) if input.dim() < 2 else input
    centred = rows - rows.mean(1, keepdim=True)
    return (centred @ centred.t() / (rows.shape[1] - correction)).squeeze()
