"""What PyTorch imports late, imported at once: before processes are forked or parties begin in threads."""

from functools import cache
from typing import Any

import torch


class _Subclass(torch.Tensor):
    """A tensor that carries its operators out itself, as secret ones do."""

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, _func: Any, _types: Any, _args: tuple[Any, ...] = (), _kwargs: Any = None
    ) -> None:
        return None


@cache
def import_all() -> None:
    """At the first operator of such a tensor PyTorch imports as much again as at its own import."""
    made = torch.Tensor._make_wrapper_subclass(_Subclass, torch.Size([1]))
    torch.ops.aten.detach.default(made)
