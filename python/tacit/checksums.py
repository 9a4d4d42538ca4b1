"""A checksum over all of a file, in the file itself: whoever reads it knows that it is as it was
written.

It stands in a field of fixed length, ``tacit-KIND-blake3:`` and 64 hexadecimal digits, which is
there once, wherever the file's format has room for a text: an entry of JSON or of a safetensors
header, the comment of a zip archive, a line. All other bytes are hashed, in pieces of :data:`PIECE`
bytes, and the hashes of the pieces before the field and after it are hashed again. Kinds differ in
name, so that one file may hold another's text.

It guards against accidents: bits that flip, files that are cut. Who can write a file can make its
checksum."""

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

#: What can be searched and cut.
Content = bytes | mmap.mmap

#: What is said of files without one.
MISSING = "it has no checksum, as files of an earlier release of tacit, or was damaged"
DAMAGED = "it was damaged: its checksum is not that of its content"


def field(kind: str) -> str:
    """What is to stand in a file of that kind before :func:`filled` is called."""
    return _head(kind) + DIGITS * "0"


def filled(content: bytes, kind: str) -> bytes:
    """The same with its checksum.

    Raises:
        MisuseError: the field is not there once.
    """
    place = place_of(content, kind)
    return content[:place] + digits(content, place).encode() + content[place + DIGITS :]


def fill(path: Path, kind: str) -> None:
    """Puts the checksum into a file that is being written.

    Raises:
        MisuseError: the field is not there once.
        OSError: the file cannot be written.
    """
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        place = place_of(content, kind)
        content[place : place + DIGITS] = digits(content, place).encode()
        content.flush()


def wrong(content: Content, kind: str) -> str | None:
    """What is wrong with a file of that kind that was read; nothing if it is as it was written."""
    places = _places(content, kind)
    if not places:
        return MISSING
    place = places[0]
    is_right = (
        len(places) == 1 and content[place : place + DIGITS] == digits(content, place).encode()
    )
    return None if is_right else DAMAGED


def wrong_with(path: Path, kind: str) -> str | None:
    """The same of a file that is not read into memory.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return MISSING
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return wrong(content, kind)


def place_of(content: Content, kind: str) -> int:
    """Where the digits begin.

    Raises:
        MisuseError: there is no such field, or another one like it.
    """
    places = _places(content, kind)
    if len(places) != 1:
        raise MisuseError(
            f"{len(places)} times {_head(kind)!r} in what is written; it is what tacit's own files "
            f"say of "
            "themselves: give whatever is called so another name"
        )
    return places[0]


def digits(content: Content, place: int) -> str:
    """The checksum of what stands around those digits."""
    parts = _pieces(content, 0, place), _pieces(content, place + DIGITS, len(content))
    return _core.blake3("|".join("".join(map(_core.blake3, part)) for part in parts).encode())


def has_remains(content: bytes, kind: str) -> bool:
    """Whether something of a checksum is there, so that the file is not of a release that wrote
    none: its name, what is behind that, or as many digits, of which no damage of a few bytes takes
    all."""
    head = _head(kind).encode()
    name, hashed = head.removesuffix(b"-blake3:"), b"-blake3:"
    digits = rb"(?<![0-9a-f])[0-9a-f]{%d}(?![0-9a-f])" % DIGITS
    return name in content or hashed in content or re.search(digits, content) is not None


def text_of(path: Path, kind: str, what: str, remedy: str) -> str:
    """The text of a file, which is checked first.

    Raises:
        FileNotFoundError: it is not there.
        SetupError: it cannot be read, or is not as it was written; with the remedy.
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
