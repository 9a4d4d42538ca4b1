"""Files that outlast whoever writes them: what is found later is the old one or the new one, whole.
All files that tacit writes are written here, but for keys and correlations, which Rust writes."""

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from tacit import checksums
from tacit.errors import cause, setup_error

#: What ends the name of a file that is being written.
UNFINISHED = ".new"

#: What the operating system says where there is no room.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WritingError(Exception):
    """A library could not write, and says why in its own words."""


def write(
    path: str | Path,
    content: bytes | str | Callable[[Path], object],
    what: str = "",
    *,
    is_private: bool = False,
) -> None:
    """Writes a file so that it is on the disk, whole, when this returns. An earlier one of that
    name is replaced by it, and stays as it is if that fails. A device or a pipe is written to.

    Args:
        path: of the file; where it is a link, of what that leads to.
        content: bytes, a text, or what writes the file at a path that it is given.
        what: which file it is, for errors, such as "the account".
        is_private: whether nobody but its user may read it. The rights of a file
            that is replaced stay.

    Raises:
        SetupError: it cannot be written; what was there before is as it was.
    """
    target = Path(os.path.realpath(path))
    shown = f"{what} {path}" if what else str(path)
    try:
        if target.exists() and not target.is_file():
            _directly(target, content)
            return
        beside = target.with_name(target.name + UNFINISHED)
        try:
            _made(beside, content, _rights(target, is_private))
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        make_lasting(target.parent)
    except (OSError, WritingError) as error:
        raise setup_error(f"cannot write {shown}: {_reason(error, target)}") from None


def replace(path: Path, target: Path, what: str) -> None:
    """Gives a file that was written the place of another one, for good.

    Raises:
        SetupError: that cannot be.
    """
    try:
        path.replace(target)
        make_lasting(target.parent)
    except OSError as error:
        raise setup_error(f"cannot write {what} {target}: {_reason(error, target)}") from None


def adopt(path: str | Path, kind: str) -> None:
    """Gives a text file of an earlier release, which has none, a checksum: whoever does it has seen
    that the file is right. One that has what is left of a checksum, or was cut, is of no earlier
    release, but damaged.

    Args:
        path: of the file.
        kind: of its checksum, as the refusal of the file says it.

    Raises:
        SetupError: it cannot be read or written, or was damaged.
    """
    target = Path(path)
    try:
        text = target.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = cause(error) if isinstance(error, OSError) else "it is no text"
        raise setup_error(f"cannot read {path}: {reason}") from None
    wrong = checksums.wrong(text.encode(), kind)
    if wrong is None:
        raise setup_error(f"{path} has a checksum already, which is right")
    if (
        wrong != checksums.MISSING
        or checksums.has_remains(text.encode(), kind)
        or not text.endswith("\n")
    ):
        raise setup_error(
            f"{path} was damaged, and gets no checksum for what it is now: put it back as it was"
        )
    if text.startswith("{"):
        try:
            entries = json.loads(text)
        except ValueError:
            raise setup_error(f"{path} was damaged: it is no JSON; put it back as it was") from None
        text = json.dumps({**entries, "checksum": checksums.field(kind)}, indent=2)
    else:
        text = text.removesuffix("\n") + "\n" + checksums.field(kind)
    write(target, checksums.filled(f"{text}\n".encode(), kind))


def make_lasting(folder: Path) -> None:
    """Has what a folder holds, and how it is called, on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: str | Path | None) -> str | None:
    """What keeps a file, if it is wanted, from being written later, as far as
    that is known before."""
    if path is None:
        return None
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        return f"cannot write {path}: it is a folder; give a file in it"
    if not folder.is_dir():
        return f"cannot write {path}: there is no such folder"
    if target.exists() and not os.access(target, os.W_OK):
        return (
            f"cannot write {path}: this user may not; give a file elsewhere, or change its rights"
        )
    if (target.is_file() or not target.exists()) and not os.access(folder, os.W_OK | os.X_OK):
        return (
            f"cannot write {path}: this user may not write in its folder {folder}, where a new "
            f"file is made "
            "before it takes an earlier one's place; give a file elsewhere, or change the folder's "
            "rights"
        )
    return None


def check_room(path: Path, size: int, what: str) -> None:
    """Whether a disk has room for a file that is written beside another one, and takes its place,
    later.

    Raises:
        SetupError: it has not.
    """
    try:
        if shutil.disk_usage(path.parent).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise setup_error(f"cannot write {what} {path}: {_reason(error, path)}") from None


def _directly(target: Path, content: bytes | str | Callable[[Path], object]) -> None:
    if callable(content):
        content(target)
        return
    with target.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _rights(target: Path, is_private: bool) -> int | None:
    """Of the new file; those that are usual if none."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    return 0o600 if is_private else None


def _made(
    beside: Path, content: bytes | str | Callable[[Path], object], rights: int | None
) -> None:
    # Made anew, so that nobody else's rights are those of one that was left behind.
    beside.unlink(missing_ok=True)
    # Nobody else reads what is to be private even while it is written.
    descriptor = os.open(
        beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if rights is None else 0o600
    )
    with open(descriptor, "wb") as file:
        if callable(content):
            content(beside)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
    # What a library writes may be another file of that name.
    with beside.open("rb") as file:
        if rights is not None:
            os.fchmod(file.fileno(), rights)
        os.fsync(file.fileno())


def _reason(error: OSError | WritingError, target: Path) -> str:
    """Why it was not written, where that is a disk's fault which one, and what became of the file
    before."""
    there = (
        "nothing was lost, the earlier file is as it was"
        if target.is_file()
        else "no part of it is left"
    )
    if not isinstance(error, OSError):
        return f"{error}; {there}"
    reason = cause(error)
    if error.errno not in _FULL:
        return f"{reason}; {there}" if target.is_file() else reason
    disk = target.parent
    while not os.path.ismount(disk) and disk != disk.parent:
        disk = disk.parent
    with contextlib.suppress(OSError):
        reason += f" (mounted at {disk}, {shutil.disk_usage(target.parent).free} bytes are free)"
    return f"{reason}; {there}: make room on that disk, or give a path on another one"
