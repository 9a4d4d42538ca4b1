"""What tacit raises, by blame."""

from tacit._core import DesyncError, MisuseError, NetworkError, PeerError, SetupError, TacitError

__all__ = [
    "DesyncError",
    "EncodingError",
    "MisuseError",
    "NetworkError",
    "PeerError",
    "PrecisionWarning",
    "RangeWarning",
    "SetupError",
    "TacitError",
    "UnsupportedOperatorError",
]


class EncodingError(MisuseError, ValueError):
    """A value has no fixed-point encoding: it is not finite, or too large."""


class UnsupportedOperatorError(MisuseError, NotImplementedError):
    """An operator, or a form of it, that secret tensors do not have. Nothing was revealed."""


class RangeWarning(UserWarning):
    """A value or product left the range in which results are right; the reference notices."""


class PrecisionWarning(UserWarning):
    """A tensor has magnitudes so small that its encoding keeps few of their digits."""
