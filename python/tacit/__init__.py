"""tacit: parties compute together on data that they do not show each other.

import tacit

def program():                                   # the same code runs in every party
    model = tacit.share_module(Net(), owner=0)   # party 0's weights
    x = tacit.share(images, owner=1)             # party 1's data; the others pass None
    return model(x).argmax(1).reveal(to=1)       # only party 1 learns the answer

tacit.launch(program, parties=3)
"""

import sys
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tacit.errors import (
    CostWarning,
    DesyncError,
    EncodingError,
    MisuseError,
    NetworkError,
    NoSessionError,
    PeerError,
    PrecisionWarning,
    RangeError,
    RangeWarning,
    RefusedError,
    SetupError,
    TacitError,
    UnsupportedOperatorError,
)

if TYPE_CHECKING:
    from tacit import random
    from tacit.checkpoints import load_checkpoint, reveal_module, save_checkpoint
    from tacit.compile.compiler import compile  # noqa: A004
    from tacit.compile.program import load_program
    from tacit.compile.weights import load_weights
    from tacit.generators import public_random
    from tacit.launch import launch
    from tacit.meter import Meter, Reading
    from tacit.module import share_module
    from tacit.rehearsal.check import check
    from tacit.rehearsal.compare import compare
    from tacit.rehearsal.cost import cost
    from tacit.session import Session, checked, comparison_width, connect, fraction_bits, session
    from tacit.sharing import share
    from tacit.shuffling import shuffle
    from tacit.tensor import SecretTensor
    from tacit.trace.page import report

__all__ = [
    "CostWarning",
    "DesyncError",
    "EncodingError",
    "Meter",
    "MisuseError",
    "NetworkError",
    "NoSessionError",
    "PeerError",
    "PrecisionWarning",
    "RangeError",
    "RangeWarning",
    "Reading",
    "RefusedError",
    "SecretTensor",
    "Session",
    "SetupError",
    "TacitError",
    "UnsupportedOperatorError",
    "check",
    "checked",
    "compare",
    "comparison_width",
    "compile",
    "connect",
    "cost",
    "fraction_bits",
    "launch",
    "load_checkpoint",
    "load_program",
    "load_weights",
    "public_random",
    "random",
    "report",
    "reveal_module",
    "save_checkpoint",
    "session",
    "share",
    "share_module",
    "shuffle",
]

__version__ = version("tacit")

#: Where that lives which needs PyTorch. All of it is imported when the first is asked for (PEP 562), so that
#: commands that need no PyTorch do not wait for it.
_HOMES = {
    "Meter": "tacit.meter",
    "Reading": "tacit.meter",
    "SecretTensor": "tacit.tensor",
    "Session": "tacit.session",
    "check": "tacit.rehearsal.check",
    "checked": "tacit.session",
    "compare": "tacit.rehearsal.compare",
    "comparison_width": "tacit.session",
    "compile": "tacit.compile.compiler",
    "connect": "tacit.session",
    "cost": "tacit.rehearsal.cost",
    "fraction_bits": "tacit.session",
    "launch": "tacit.launch",
    "public_random": "tacit.generators",
    "load_checkpoint": "tacit.checkpoints",
    "load_program": "tacit.compile.program",
    "load_weights": "tacit.compile.weights",
    "reveal_module": "tacit.checkpoints",
    "save_checkpoint": "tacit.checkpoints",
    "report": "tacit.trace.page",
    "session": "tacit.session",
    "share": "tacit.sharing",
    "share_module": "tacit.module",
    "shuffle": "tacit.shuffling",
}


class _Package(ModuleType):
    """Two functions are called like the modules they live in, and importing such a module would put it in the
    function's place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


if not TYPE_CHECKING:  # which would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name in ("federated", "random", "riscv"):
            return import_module(f"tacit.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'tacit' has no attribute {name!r}")
        globals().update({each: getattr(import_module(home), each) for each, home in _HOMES.items()})
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Package
