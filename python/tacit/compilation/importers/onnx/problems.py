"""Problems of a file that cannot be imported, collected so that all of them are reported at
once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tacit.errors import SetupError, UnsupportedOperatorError, printable

#: Greatest number of problems that a message lists, and of characters that it quotes of a name.
MOST_LISTED, MOST_QUOTED = 100, 80


class NotImportedError(Exception):
    """Reason why one node, or one value, cannot be imported."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


def quoted(name: str) -> str:
    """Quotes a name from a file, which may hold anything, on one line and at a limited length."""
    return repr(name if len(name) <= MOST_QUOTED else f"{name[:MOST_QUOTED]}...")


class Problems:
    """Problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._lines: dict[str, None] = {}
        self._unsupported = self._broken = False

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, operator: str, name: str, refusal: NotImportedError) -> None:
        """Records that an operator, or a form of it, is not imported."""
        self._unsupported = True
        self._lines[f"{operator} {quoted(name)}: {refusal.what}; {refusal.remedy}"] = None

    def broken(self, what: str) -> None:
        """Records that the file itself is at fault."""
        self._broken = True
        self._lines[what] = None

    @contextmanager
    def at(self, operator: str, name: str) -> Iterator[None]:
        """Collects the problems within a context: refusals, and PyTorch's errors about operands
        that do not fit."""
        try:
            yield
        except NotImportedError as refusal:
            self.add(operator, name, refusal)
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AssertionError, OverflowError,
                NotImplementedError, ZeroDivisionError, MemoryError, AttributeError) as error:  # fmt: skip
            told = printable((str(error).strip().splitlines() or [type(error).__name__])[0])
            self.broken(f"{operator} {quoted(name)}: its operands do not fit it ({told})")

    def raise_all(self) -> None:
        """Raises an error with all problems, if there are any."""
        if not self._lines:
            return
        raise self._type()(self._text())

    def _type(self) -> Callable[[str], Exception]:
        return SetupError if self._broken and not self._unsupported else UnsupportedOperatorError

    def _text(self) -> str:
        lines = list(self._lines)
        more = len(lines) - MOST_LISTED
        listed = [f"  {line}" for line in lines[:MOST_LISTED]] + (
            [f"  and {more} more"] if more > 0 else []
        )
        return "\n".join([f"{self.file} cannot be imported:", *listed])
