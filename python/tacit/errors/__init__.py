"""Errors and warnings of tacit, by who is to blame."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from tacit import _core
from tacit._core import (
    CheatingError,
    DesyncError,
    DeviceError,
    MisuseError,
    NetworkError,
    PeerError,
    RefusedError,
    SetupError,
    StoppedError,
    TacitError,
)
from tacit.errors import source_lines

__all__ = [
    "CheatingError",
    "DesyncError",
    "DeviationError",
    "DeviceError",
    "EncodingError",
    "LateError",
    "MisuseError",
    "NetworkError",
    "NoSessionError",
    "PeerError",
    "PrecisionWarning",
    "RangeError",
    "RangeWarning",
    "RefusedError",
    "RequestRefusedError",
    "SetupError",
    "StoppedError",
    "TacitError",
    "UnsupportedOperatorError",
    "UntracedError",
    "WorkerError",
    "cause",
    "printable",
]


#: Attribute of an error with the text that other parties may read, and the party that it blames;
#: see ``told``.
_MARK = "_told"

#: Attribute of an error of a request that was certainly not used; see ``is_unused``.
_UNUSED = "_unused"

#: Any of the errors below.
_Error = TypeVar("_Error", bound=TacitError)


#: Characters that change how a terminal shows the text around them, or that are not characters:
#: controls, marks of direction, zero-width characters, surrogates. The set must be the same in
#: every version of Python, since names in programs are filtered by it.
_UNSHOWN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def printable(text: object, most: int = 300) -> str:
    """Makes text of a file or of another library safe to print: one line of at most ``most``.

    Such text may quote anything."""
    return " ".join(_UNSHOWN.sub(" ", str(text)).split())[:most].rstrip()


def reason(error: BaseException) -> str:
    """Returns the first line of another library's error message, or else the error's type."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def cause(error: OSError) -> str:
    """Returns the cause of an operating system error, in the words of the native core."""
    return _core.cause(error.errno) if error.errno else str(error)


def tellable(error: _Error, text: str | None = None, blamed: int | None = None) -> _Error:
    """Marks an error of tacit as one that other parties may read; see :func:`told`.

    Args:
        error: an error whose text is not secret. It is about parties, links, files and settings,
            and quotes no value of the computation.
        text: the text that other parties read, if not the error's own.
        blamed: the party that the error blames, if not the one that raises it.
    """
    setattr(error, _MARK, (str(error) if text is None else text, blamed))
    return error


def setup_error(text: str) -> SetupError:
    """Makes a SetupError that other parties may read."""
    return tellable(SetupError(text))


def stopped_error(text: str) -> StoppedError:
    """Makes a StoppedError that other parties may read, since each would find the same."""
    return tellable(StoppedError(text))


def peer_error(text: str) -> PeerError:
    """Makes a PeerError that other parties may read."""
    return tellable(PeerError(text))


def refused_error(text: str) -> RefusedError:
    """Makes a RefusedError that other parties may read."""
    return tellable(RefusedError(text))


class DeviationError(PeerError):
    """Another party sent a message that the protocol does not allow."""

    @staticmethod
    def of(party: int, what: str, who: str = "party") -> "DeviationError":
        """Makes the error for what a party did: "party 1 refused for an unknown cause"."""
        return tellable(DeviationError(f"{who} {party} {what}"), f"it {what}", party)


def unused(error: _Error, is_so: bool = True) -> _Error:
    """Marks the error of a request that was not used, or takes the mark away; see
    :func:`is_unused`."""
    setattr(error, _UNUSED, is_so)
    return error


def is_unused(error: TacitError) -> bool:
    """Returns whether a request that ended so may be made to another service: not all parties of
    the first one have it, so they can have no result of it."""
    return vars(error).get(_UNUSED, False)


class LateError(PeerError, TimeoutError):
    """The parties of a service have a request, and did not answer within the call's timeout."""


class EncodingError(MisuseError, ValueError):
    """A value has no fixed-point encoding: it is not finite, or too large."""

    #: The cause that other parties are told: "finite" or "large" (``tacit.refusals``).
    why = "encoding"

    @classmethod
    def of(cls, why: str, text: str) -> "EncodingError":
        """Makes the error for a cause."""
        error = cls(text)
        error.why = why
        return error


class RequestRefusedError(RefusedError):
    """A party of a service refuses a request. Nothing was computed for it, unless ``cause`` says
    so."""

    #: Why, in a word: "starting", "draining", "busy", "quota", "deadline", "unknown", "conflict",
    #: "invalid", "range" or "lost".
    cause = ""
    #: Seconds after which to come again; ``None`` if the same request would be refused again.
    retry_after: float | None = None
    #: The party that refuses.
    party = 0

    @classmethod
    def of(
        cls, cause: str, party: int, reason: str, retry_after: float | None = None
    ) -> "RequestRefusedError":
        """Makes the error for a party's refusal."""
        again = "" if retry_after is None else f"; come again in {retry_after:.3g} s"
        error = cls(f"party {party} refuses the request: {reason}{again}")
        error.cause, error.party, error.retry_after = cause, party, retry_after
        return error


class NoSessionError(MisuseError):
    """A function that needs a session was called without one."""


#: Prefix of the flag labels of operators in checked mode.
CHECKED = "checked: "


class RangeError(MisuseError):
    """A number was out of range, so there is no result.

    Either a compiled program compared numbers outside the range that it was compiled for, or, in
    checked mode, an operator's numbers left their range. Only the parties that would have learnt
    the result raise this error."""

    #: The layers of the compiled program.
    layers: tuple[str, ...] = ()
    #: The operators, with their modules and lines.
    operators: tuple[str, ...] = ()
    #: Outcome of a program of the RISC-V machine (``riscv.Outcome``), without values that would
    #: have been opened to this party. Secret outputs are there, as in the other parties, which
    #: continue. A program that was stopped on its way has no outputs.
    outcome: Any = None

    @classmethod
    def of(
        cls, failed: Sequence[str], remedy: str = "Scale the data down, or take fewer fraction bits"
    ) -> "RangeError":
        """Makes the error for layers whose guards failed, and operators whose checks failed.

        The message says what to do."""
        layers = [label for label in failed if not label.startswith(CHECKED)]
        operators = [label.removeprefix(CHECKED) for label in failed if label.startswith(CHECKED)]
        said = []
        if operators:
            said.append(
                f"out of range: {'; '.join(operators)}. There is no result: a number that was "
                f"computed there "
                f"needs more bits than it has. {remedy}"
            )
        if layers:
            said.append(
                f"numbers left the range that the program was compiled for in {', '.join(layers)}: "
                f"there is "
                "no result. Compile it with calibration data like these inputs, with a greater "
                "margin, or "
                "without calibration"
            )
        made = cls(". ".join(said))
        made.layers, made.operators = tuple(layers), tuple(operators)
        return made


class UnsupportedOperatorError(MisuseError, NotImplementedError):
    """Secret tensors do not support an operator, or not with these arguments.

    Nothing was revealed."""

    #: The unsupported operation, and what the program can do instead.
    what = remedy = ""

    @classmethod
    def of(cls, what: str, where: str, remedy: str) -> "UnsupportedOperatorError":
        """Makes the error for an operation in a module, with the line of the program."""
        line = source_lines.line()
        place = f"{where}, {line}" if line else where
        error = cls(
            f"{what} is not supported on secret tensors (in {place}); {remedy}. Nothing was "
            f"revealed."
        )
        error.what, error.remedy = what, remedy
        return error


class UntracedError(UnsupportedOperatorError, AssertionError):
    """PyTorch's compiler tried to trace a secret tensor.

    The compiler wraps most errors in its own, but not an AssertionError, so this is one."""

    def __str__(self) -> str:
        # Leaves out the lines that the compiler adds about itself.
        return super().__str__().partition("\n")[0]


class Terminated(KeyboardInterrupt):
    """This process was asked to end by SIGTERM, as a supervisor ends a service.

    It ends the same things as an interrupt from the keyboard."""


class WorkerError(MisuseError):
    """A worker process of a DataLoader tried to read elements of secret tensors."""

    def __init__(self, *_: object) -> None:
        """Sets a fixed message.

        PyTorch makes the error again in the process that waits for the worker, with the worker's
        traceback as argument."""
        super().__init__(
            "secret tensors belong to the session of one process, and a DataLoader's workers are "
            "others: "
            "make the loader without num_workers"
        )


def advise(error: BaseException) -> None:
    """Adds a remedy to an error about ``None`` that this party passed for another party's data."""
    if isinstance(error, TypeError | AttributeError) and "NoneType" in str(error):
        error.add_note(
            "where this is None because another party owns it: what is used with secret tensors is "
            "shared "
            "before, in every party, as in labels = tacit.share(labels, owner=...)"
        )


def told(error: BaseException) -> tuple[str, int | None]:
    """Returns the text that other parties read of an error that ends this party.

    Error messages may quote secrets: messages of the program may, and messages about misuse quote
    values. So the other parties are sent only the type of an error, unless tacit marked this very
    object when it made it (:func:`tellable`, and the native core). The mark holds the text that is
    sent. Later changes of the error do not change that text. The class of the error does not
    matter, since a program may derive from it. The place where it is raised does not matter either.
    Tacit marks only two kinds of errors: those about parties, links, files and settings, which
    contain nothing of the computation, and the cause for which a compiled program stops, which each
    party would find on its own.

    Returns:
        The text, and the party that the error blames if it is another one.
    """
    if isinstance(error, KeyboardInterrupt):
        return f"it was {'terminated' if isinstance(error, Terminated) else 'interrupted'}", None
    mark: tuple[str, int | None] | None = vars(error).get(_MARK)
    if mark is not None:
        return mark
    # Only the receiver may know that a guard failed. Others are told of a MisuseError.
    kind = MisuseError if isinstance(error, RangeError) else type(error)
    return f"its program raised {kind.__name__}; see its own output", None


class RangeWarning(UserWarning):
    """A value or product left the range in which results are right.

    The plain reference protocol detects this in a trial run."""


class SubmissionWarning(UserWarning):
    """A client's submission to a federation counts for less than what the client gave.

    Its vector was shortened, its weight was capped, it was too small to be sent, or the servers
    refused it."""


class CostWarning(UserWarning):
    """The result is right, but costs more than it needs to."""


class PrecisionWarning(UserWarning):
    """Rounding to fixed point loses much of a tensor or of a constant.

    Either the values of a tensor are so small that their encoding keeps few of their digits, or a
    constant of the program rounds to 0 or to another integer."""
