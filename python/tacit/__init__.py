"""tacit: parties compute together on data that they do not show each other.

import tacit

def program():                                   # the same code runs in every party
    model = tacit.share_module(Net(), owner=0)   # party 0's weights
    x = tacit.share(images, owner=1)             # party 1's data; the others pass None
    return model(x).argmax(1).reveal(to=1)       # only party 1 learns the answer

tacit.launch(program, parties=3)
"""

from importlib.metadata import version

from tacit.errors import (
    DesyncError,
    EncodingError,
    MisuseError,
    NetworkError,
    PeerError,
    SetupError,
    TacitError,
    UnsupportedOperatorError,
)
from tacit.launch import launch
from tacit.meter import Meter, Reading
from tacit.module import share_module
from tacit.session import Session, comparison_width, connect, session
from tacit.sharing import share
from tacit.tensor import SecretTensor

__all__ = [
    "DesyncError",
    "EncodingError",
    "Meter",
    "MisuseError",
    "NetworkError",
    "PeerError",
    "Reading",
    "SecretTensor",
    "Session",
    "SetupError",
    "TacitError",
    "UnsupportedOperatorError",
    "comparison_width",
    "connect",
    "launch",
    "session",
    "share",
    "share_module",
]

__version__ = version("tacit")
