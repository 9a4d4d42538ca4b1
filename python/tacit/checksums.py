"""Checksums that are stored in the files that they protect.

A checksum is a field of fixed length, ``tacit-KIND-blake3:`` and 64 hexadecimal digits. A file has
exactly one, wherever its format has room for a text: in an entry of JSON or of a safetensors
header, in the comment of a zip archive, or on a line. All other bytes are hashed in pieces of
:data:`PIECE` bytes. Then the hashes of the pieces before and after the field are hashed again. The
name contains the kind of file, so that one file may contain the text of another.

A checksum protects against accidents, such as flipped bits and truncated files. It does not protect
against a person who can write the file, since that person can compute a new checksum."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

from tacit import _core
from tacit.errors import MisuseError, cause, setup_error

#: Bytes that are hashed at a time.
PIECE = 1 << 24

#: Hexadecimal digits of a hash.
DIGITS = 64

#: Content that can be searched and sliced.
Content = bytes | mmap.mmap

#: Errors for files without a checksum, and for files with a wrong one.
MISSING = "it has no checksum, as files of an earlier release of tacit, or was damaged"
DAMAGED = "it was damaged: its checksum is not that of its content"


def field(kind: str) -> str:
    """Returns the empty field of a kind, which a file must have before :func:`filled` is called."""
    return _head(kind) + DIGITS * "0"


def filled(content: bytes, kind: str) -> bytes:
    """Returns the content with the checksum in its field.

    Raises:
        MisuseError: the content does not have exactly one field.
    """
    place = place_of(content, kind)
    return content[:place] + digits(content, place).encode() + content[place + DIGITS :]


def fill(path: Path, kind: str) -> None:
    """Writes the checksum into the field of a file.

    Raises:
        MisuseError: the file does not have exactly one field.
        OSError: the file cannot be written.
    """
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        place = place_of(content, kind)
        content[place : place + DIGITS] = digits(content, place).encode()
        content.flush()


def wrong(content: Content, kind: str) -> str | None:
    """Returns why a file's content is refused, or ``None`` if it is as it was written."""
    places = _places(content, kind)
    if not places:
        return MISSING
    place = places[0]
    is_right = (
        len(places) == 1 and content[place : place + DIGITS] == digits(content, place).encode()
    )
    return None if is_right else DAMAGED


def wrong_with(path: Path, kind: str) -> str | None:
    """Returns why a file is refused, or ``None``, without reading the file into memory at once.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return MISSING
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return wrong(content, kind)


def place_of(content: Content, kind: str) -> int:
    """Returns where the digits of the checksum begin.

    Raises:
        MisuseError: the content does not have exactly one field.
    """
    places = _places(content, kind)
    if len(places) != 1:
        raise MisuseError(
            f"{len(places)} times {_head(kind)!r} in the content of a file, which must have it "
            f"once: it marks the checksum of tacit's own files. Rename the tensor, column or "
            f"other thing whose name contains it"
        )
    return places[0]


def digits(content: Content, place: int) -> str:
    """Computes the checksum of the content before and after the digits at ``place``."""
    parts = _pieces(content, 0, place), _pieces(content, place + DIGITS, len(content))
    return _core.blake3("|".join("".join(map(_core.blake3, part)) for part in parts).encode())


def has_remains(content: bytes, kind: str) -> bool:
    """Whether a file has remains of a checksum, so that it is not of a release that wrote none.

    Remains are the name, its suffix, or a run of as many digits. Damage of a few bytes leaves at
    least one of these."""
    head = _head(kind).encode()
    name, hashed = head.removesuffix(b"-blake3:"), b"-blake3:"
    digits = rb"(?<![0-9a-f])[0-9a-f]{%d}(?![0-9a-f])" % DIGITS
    return name in content or hashed in content or re.search(digits, content) is not None


def bytes_of(path: Path, kind: str) -> tuple[bytes, str | None] | None:
    """Reads a file; returns its content and what is wrong with its checksum, or ``None`` if there
    is no file.

    Raises:
        SetupError: the file cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    return content, wrong(content, kind)


def text_of(path: Path, kind: str, what: str, remedy: str) -> str:
    """Reads the text of a file after checking its checksum.

    Raises:
        FileNotFoundError: the file does not exist.
        SetupError: the file cannot be read, or is not as it was written. The message ends with
            ``remedy``.
    """
    try:
        content = path.read_bytes()
        reason = wrong(content, kind)
        text = content.decode()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise setup_error(f"cannot read {what} {path}: {cause(error)}") from None
    except UnicodeDecodeError:
        reason = DAMAGED
    if reason == MISSING and has_remains(content, kind):
        reason = DAMAGED
    if reason == MISSING:
        reason += (
            '; if it is of an earlier release, and right, this gives it one: python -c "from '
            "tacit.atomic_write import "
            f'adopt; adopt({str(path)!r}, {kind!r})"'
        )
    if reason is not None:
        raise setup_error(f"{path} is not taken for {what}: {reason}; {remedy}")
    return text


def _head(kind: str) -> str:
    return f"tacit-{kind}-blake3:"


def _places(content: Content, kind: str) -> list[int]:
    pattern = re.escape(_head(kind)).encode() + rb"[0-9a-f]{%d}" % DIGITS
    return [found.end() - DIGITS for found in re.finditer(pattern, content)]


def _pieces(content: Content, begin: int, end: int) -> Iterator[bytes]:
    for at in range(begin, end, PIECE):
        yield content[at : min(at + PIECE, end)]
