"""Texts of errors that other parties read: only those that tacit itself has marked for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit.atomic_write import write
from tacit.errors import (
    DesyncError,
    DeviationError,
    EncodingError,
    MisuseError,
    NetworkError,
    PeerError,
    RefusedError,
    SetupError,
    StoppedError,
    TacitError,
    setup_error,
    tellable,
    told,
)

#: Text that no other party may read.
SECRET = "my number is 4711"

KINDS = [
    DesyncError,
    DeviationError,
    EncodingError,
    MisuseError,
    NetworkError,
    PeerError,
    RefusedError,
    SetupError,
    StoppedError,
    TacitError,
]


class OwnSetupError(SetupError):
    """A program's own subclass of one of tacit's errors."""


class OwnDeviationError(DeviationError):
    """A program's own subclass of an error whose text other parties read."""


def made_by_tacit() -> SetupError:
    """Returns an error that tacit made and raised, and that a program has caught."""
    try:
        write(Path("nowhere") / "file", "text", "a file to")
    except SetupError as error:
        return error
    raise AssertionError


def tampered() -> SetupError:
    """Returns an error of tacit's whose text the program has changed."""
    error = made_by_tacit()
    error.args = (SECRET,)
    return error


def heard(raised: Callable[[], BaseException], folder: Path) -> str:
    """Returns the text that party 1 reads when party 0's program raises an error."""

    def program() -> None:
        if tacit.session().party == 0:
            raise raised()
        try:
            tacit.session().told_by_all(b"")
        except PeerError as error:
            (folder / "heard").write_text(str(error))
            raise

    # Launch raises the error of one of the two parties.
    with pytest.raises(Exception, match=r"4711|nowhere|failed"):
        tacit.launch(program, protocol="plain", parties=2, timeout=20)
    return (folder / "heard").read_text()


@pytest.mark.parametrize("kind", [*KINDS, OwnSetupError, OwnDeviationError, ValueError])
def test_of_what_a_program_raises_the_type_alone_is_told(kind: type[BaseException]) -> None:
    assert told(kind(SECRET)) == (f"its program raised {kind.__name__}; see its own output", None)


@pytest.mark.parametrize("kind", [MisuseError, OwnSetupError, OwnDeviationError])
def test_no_other_party_reads_a_secret_of_a_program(
    kind: type[BaseException], tmp_path: Path
) -> None:
    text = heard(lambda: kind(SECRET), tmp_path)
    assert text.endswith(f": its program raised {kind.__name__}; see its own output")
    assert "4711" not in text


def test_what_tacit_says_is_told_as_tacit_said_it(tmp_path: Path) -> None:
    error = made_by_tacit()
    assert told(error) == (str(error), None)
    assert "nowhere" in str(error)
    assert heard(made_by_tacit, tmp_path).endswith(str(error))
    assert told(tampered()) == (str(error), None)
    assert "4711" not in heard(tampered, tmp_path)


def test_what_is_told_may_be_other_words_than_the_error_s() -> None:
    assert told(setup_error("no file")) == ("no file", None)
    assert told(tellable(DesyncError("this party differs"), "party 1 differs")) == (
        "party 1 differs",
        None,
    )
    error = DeviationError.of(2, "announced what is no step")
    assert str(error) == "party 2 announced what is no step"
    assert told(error) == ("it announced what is no step", 2)


def test_errors_of_the_native_part_are_marked_there() -> None:
    with pytest.raises(SetupError) as found, tacit.connect("nowhere.toml", 0):
        pass
    assert told(found.value) == (str(found.value), None)
    with pytest.raises(MisuseError) as misused, tacit.connect("nowhere.toml", 0, timeout=-1):
        pass
    assert told(misused.value)[0] == "its program raised MisuseError; see its own output"
