"""What tacit raises, by blame."""

from tacit._core import (
    DesyncError,
    MisuseError,
    NetworkError,
    PeerError,
    RefusedError,
    SetupError,
    TacitError,
)

__all__ = [
    "DesyncError",
    "EncodingError",
    "MisuseError",
    "NetworkError",
    "NoSessionError",
    "PeerError",
    "PrecisionWarning",
    "RangeWarning",
    "RefusedError",
    "SetupError",
    "TacitError",
    "UnsupportedOperatorError",
]


class EncodingError(MisuseError, ValueError):
    """A value has no fixed-point encoding: it is not finite, or too large."""


class NoSessionError(MisuseError):
    """What needs a session was called outside of any."""


class UnsupportedOperatorError(MisuseError, NotImplementedError):
    """An operator, or a form of it, that secret tensors do not have. Nothing was revealed."""

    #: What that is, and what can be done instead.
    what = remedy = ""

    @classmethod
    def of(cls, what: str, where: str, remedy: str) -> "UnsupportedOperatorError":
        """The error for what is wanted there."""
        error = cls(
            f"{what} is not supported on secret tensors (in {where}); {remedy}. Nothing was revealed."
        )
        error.what, error.remedy = what, remedy
        return error


class RangeWarning(UserWarning):
    """A value or product left the range in which results are right; the reference notices."""


class PrecisionWarning(UserWarning):
    """A tensor has magnitudes so small that its encoding keeps few of their digits."""
