"""What tacit raises, by blame."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from tacit import _core
from tacit._core import (
    DesyncError,
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
    "DesyncError",
    "DeviationError",
    "EncodingError",
    "MisuseError",
    "NetworkError",
    "NoSessionError",
    "PeerError",
    "PrecisionWarning",
    "RangeError",
    "RangeWarning",
    "RefusedError",
    "SetupError",
    "StoppedError",
    "TacitError",
    "UnsupportedOperatorError",
    "UntracedError",
    "WorkerError",
    "cause",
    "printable",
]


#: The attribute of an error that holds what other parties may read of it, and whom it blames; see
#: ``told``.
_MARK = "_told"

#: Any of the errors below.
_Error = TypeVar("_Error", bound=TacitError)


#: What changes how a terminal shows the text around it, or is no character: controls, marks of
#: direction and of no width, halves. The same under every Python, as names in programs go through
#: it.
_UNSHOWN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def printable(text: object, most: int = 300) -> str:
    """What a file, or another library, says, which may quote anything: on one line, and not too
    long."""
    return " ".join(_UNSHOWN.sub(" ", str(text)).split())[:most].rstrip()


def reason(error: BaseException) -> str:
    """What another library says of an error before it says more of it; else the error's kind."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def cause(error: OSError) -> str:
    """Why the operating system did not do what it was asked for, in the native
    part's words for it."""
    return _core.cause(error.errno) if error.errno else str(error)


def tellable(error: _Error, text: str | None = None, blamed: int | None = None) -> _Error:
    """Marks an error that tacit itself makes as one that other parties may read: see :func:`told`.

    Args:
        error: of which nothing is secret: it speaks of parties, links, files and settings, and
            quotes no value that was computed on.
        text: what they read, if not its own text.
        blamed: whom it blames, if not the party that raises it.
    """
    setattr(error, _MARK, (str(error) if text is None else text, blamed))
    return error


def setup_error(text: str) -> SetupError:
    """One that other parties may read."""
    return tellable(SetupError(text))


def stopped_error(text: str) -> StoppedError:
    """One that other parties may read: each would find the same by itself."""
    return tellable(StoppedError(text))


def peer_error(text: str) -> PeerError:
    """One that other parties may read."""
    return tellable(PeerError(text))


def refused_error(text: str) -> RefusedError:
    """One that other parties may read."""
    return tellable(RefusedError(text))


class DeviationError(PeerError):
    """Another party told what cannot be."""

    @staticmethod
    def of(party: int, what: str, who: str = "party") -> "DeviationError":
        """The error for what that party did: "party 1 announced what is no step"."""
        return tellable(DeviationError(f"{who} {party} {what}"), f"it {what}", party)


class EncodingError(MisuseError, ValueError):
    """A value has no fixed-point encoding: it is not finite, or too large."""

    #: Which of both, as other parties are told: "finite" or "large" (``tacit.refusals``).
    why = "encoding"

    @classmethod
    def of(cls, why: str, text: str) -> "EncodingError":
        """The error for one of both."""
        error = cls(text)
        error.why = why
        return error


class NoSessionError(MisuseError):
    """What needs a session was called outside of any."""


#: What the flag of an operator that was checked begins with.
CHECKED = "checked: "


class RangeError(MisuseError):
    """What a compiled program compared left the range that it was compiled for, or, in checked
    mode, what an
    operator computed left its range: there is no result. Raised where the result would have been
    learnt, and nowhere else."""

    #: The layers.
    layers: tuple[str, ...] = ()
    #: The operators, with their modules and lines.
    operators: tuple[str, ...] = ()
    #: What a program of the RISC-V machine left (``riscv.Outcome``), without what was opened to
    #: this party. What stayed secret is there, as at the other parties, which go on. A program that
    #: was stopped on its way left no outputs.
    outcome: Any = None

    @classmethod
    def of(
        cls, failed: Sequence[str], remedy: str = "Scale the data down, or take fewer fraction bits"
    ) -> "RangeError":
        """The error for layers whose guards failed, and for operators whose checks did, with what
        to do."""
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
    """An operator, or a form of it, that secret tensors do not have. Nothing was revealed."""

    #: What that is, and what can be done instead.
    what = remedy = ""

    @classmethod
    def of(cls, what: str, where: str, remedy: str) -> "UnsupportedOperatorError":
        """The error for what is wanted there, with the line of the program that asks for it."""
        line = source_lines.line()
        place = f"{where}, {line}" if line else where
        error = cls(
            f"{what} is not supported on secret tensors (in {place}); {remedy}. Nothing was "
            f"revealed."
        )
        error.what, error.remedy = what, remedy
        return error


class UntracedError(UnsupportedOperatorError, AssertionError):
    """A secret tensor came to PyTorch's compiler, which puts errors of most kinds into its own, but
    not those of the second here."""

    def __str__(self) -> str:
        # Without the lines that the compiler adds about itself.
        return super().__str__().partition("\n")[0]


class Terminated(KeyboardInterrupt):
    """This process was asked to end (SIGTERM), as services are by what supervises them: what an
    interrupt from the keyboard ends, this does too."""


class WorkerError(MisuseError):
    """A worker of a DataLoader was to take elements of secret tensors."""

    def __init__(self, *_: object) -> None:
        """Says the same whatever it is given: PyTorch makes it anew in the process that waits for
        the worker, of the worker's traceback."""
        super().__init__(
            "secret tensors belong to the session of one process, and a DataLoader's workers are "
            "others: "
            "make the loader without num_workers"
        )


def advise(error: BaseException) -> None:
    """Says what to do, beside Python's own words, of an error whose cause is that this party passed
    ``None`` for what another party owns."""
    if isinstance(error, TypeError | AttributeError) and "NoneType" in str(error):
        error.add_note(
            "where this is None because another party owns it: what is used with secret tensors is "
            "shared "
            "before, in every party, as in labels = tacit.share(labels, owner=...)"
        )


def told(error: BaseException) -> tuple[str, int | None]:
    """What the other parties of a session read of an error that ends this party, and whom it blames
    where that is another one.

    Texts may quote what is secret: those of the program, and those of misuse, which quote values.
    So an error goes to others by its type alone, unless tacit marked this very object where it made
    it (:func:`tellable`, and the native part). The mark holds the words that go out. What becomes
    of the error afterwards does not change them. Its class does not matter either, as a program may
    derive from it, and nor does the place where it is raised. Tacit marks only what it says of
    parties, links, files and settings, which holds nothing that was computed on, and why a compiled
    program stops, which each party would find by itself.
    """
    if isinstance(error, KeyboardInterrupt):
        return f"it was {'terminated' if isinstance(error, Terminated) else 'interrupted'}", None
    mark: tuple[str, int | None] | None = vars(error).get(_MARK)
    if mark is not None:
        return mark
    # What a guard told is its receiver's: to others it is misuse like any other.
    kind = MisuseError if isinstance(error, RangeError) else type(error)
    return f"its program raised {kind.__name__}; see its own output", None


class RangeWarning(UserWarning):
    """A value or product left the range in which results are right; the reference notices."""


class SubmissionWarning(UserWarning):
    """What a client of a federation handed in counts for less than it was: it was shortened, its
    weight was capped, it is too small to be sent, or the servers refused it."""


class CostWarning(UserWarning):
    """What is done is right, and dearer than it need be."""


class PrecisionWarning(UserWarning):
    """A tensor has magnitudes so small that its encoding keeps few of their digits; or, in a trial
    run, a constant rounds to nothing, or to 1."""
