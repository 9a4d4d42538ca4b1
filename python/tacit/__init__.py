"""tacit: secure multi-party computation on PyTorch tensors.

import tacit

def program():                                   # the same code runs in every party
    model = tacit.share_module(Net(), owner=0)   # party 0's weights
    x = tacit.share(images, owner=1)             # party 1's data; the others pass None
    return model(x).argmax(1).reveal(to=1)       # only party 1 learns the answer

tacit.launch(program, parties=3)
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.errors import (
    CheatingError,
    CostWarning,
    DesyncError,
    DeviceError,
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
    __version__: str

    from tacit import random
    from tacit.checkpoint.api import load_checkpoint, reveal_module, save_checkpoint
    from tacit.compilation.compiler import compile  # noqa: A004
    from tacit.compilation.program import load_program
    from tacit.compilation.weights import load_weights
    from tacit.meter import Meter, Reading, Verification
    from tacit.module import share_module
    from tacit.parties.launch import launch
    from tacit.randomness.generators import public_random
    from tacit.randomness.shuffling import shuffle
    from tacit.rehearsal.check import check
    from tacit.rehearsal.compare import compare
    from tacit.rehearsal.cost import cost
    from tacit.sessions import (
        Session,
        checked,
        comparison_width,
        connect,
        fraction_bits,
        session,
        verify,
    )
    from tacit.sharing import share
    from tacit.tensor import SecretTensor
    from tacit.trace.page import report

__all__ = [
    "CheatingError",
    "CostWarning",
    "DesyncError",
    "DeviceError",
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
    "Verification",
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
    "verify",
]

# A program that sets up no handlers sees no log records; see ``tacit.logs``.
logging.getLogger("tacit").addHandler(logging.NullHandler())

#: Modules of the names that need PyTorch. All are imported when the first of these names is used
#: (PEP 562), so that commands that do not need PyTorch do not wait for its import.
_HOMES = {
    "Meter": "tacit.meter",
    "Reading": "tacit.meter",
    "SecretTensor": "tacit.tensor",
    "Session": "tacit.sessions",
    "Verification": "tacit.meter",
    "check": "tacit.rehearsal.check",
    "checked": "tacit.sessions",
    "compare": "tacit.rehearsal.compare",
    "comparison_width": "tacit.sessions",
    "compile": "tacit.compilation.compiler",
    "connect": "tacit.sessions",
    "cost": "tacit.rehearsal.cost",
    "fraction_bits": "tacit.sessions",
    "launch": "tacit.parties.launch",
    "public_random": "tacit.randomness.generators",
    "load_checkpoint": "tacit.checkpoint.api",
    "load_program": "tacit.compilation.program",
    "load_weights": "tacit.compilation.weights",
    "reveal_module": "tacit.checkpoint.api",
    "save_checkpoint": "tacit.checkpoint.api",
    "report": "tacit.trace.page",
    "session": "tacit.sessions",
    "share": "tacit.sharing",
    "share_module": "tacit.module",
    "shuffle": "tacit.randomness.shuffling",
    "verify": "tacit.sessions",
}


if not TYPE_CHECKING:  # A type checker would accept any attribute because of __getattr__.

    def __getattr__(name: str) -> Any:
        if name in ("federated", "random", "riscv"):
            return import_module(f"tacit.{name}")
        if name == "__version__":
            # This look-up takes longer than all other imports here, so it is lazy.
            from importlib.metadata import version

            globals()[name] = version("tacit-mpc")
            return globals()[name]
        if name not in _HOMES:
            raise AttributeError(f"module 'tacit' has no attribute {name!r}")
        globals().update(
            {each: getattr(import_module(home), each) for each, home in _HOMES.items()}
        )
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
