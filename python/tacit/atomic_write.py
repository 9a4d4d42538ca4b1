"""Atomic writing of files: after a crash, the old file or the new one is there, complete.

tacit writes all of its files by this module, except for keys and correlations, which Rust
writes."""

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

#: Suffix of the name of a file that is being written.
UNFINISHED = ".new"

#: Error numbers of the operating system for a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WritingError(Exception):
    """A library could not write; the message is the library's."""


def write(
    path: str | Path,
    content: bytes | str | Callable[[Path], object],
    what: str = "",
    *,
    is_private: bool = False,
) -> None:
    """Writes a file so that it is complete and on the disk when this returns.

    An earlier file of that name is replaced, and stays unchanged if the write fails. A device or a
    pipe is written to directly.

    Args:
        path: path of the file. A symbolic link is followed.
        content: bytes, a text, or a function that writes the file at the path that it is given.
        what: name of the file in errors, such as "the account".
        is_private: make a new file readable by its user alone. A file that is replaced keeps its
            permissions.

    Raises:
        SetupError: the file cannot be written. An earlier file is unchanged.
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
    """Moves a written file over another one, durably.

    Raises:
        SetupError: the file cannot be moved.
    """
    try:
        path.replace(target)
        make_lasting(target.parent)
    except OSError as error:
        raise setup_error(f"cannot write {what} {target}: {_reason(error, target)}") from None


def remove(path: Path) -> None:
    """Removes a file, if it exists, and what a killed process has left beside it; durably.

    Raises:
        SetupError: the file cannot be removed.
    """
    try:
        for each in (path, path.with_name(path.name + UNFINISHED)):
            if each.exists():
                each.unlink()
                make_lasting(path.parent)
    except OSError as error:
        raise setup_error(f"cannot remove {path}: {cause(error)}") from None


def adopt(path: str | Path, kind: str) -> None:
    """Adds a checksum to a text file of an earlier release, which has none.

    The caller has made sure that the file is right. A file with remains of a checksum, or one that
    was cut, is not of an earlier release, but damaged.

    Args:
        path: path of the file.
        kind: kind of the checksum, as the refusal of the file names it.

    Raises:
        SetupError: the file cannot be read or written, or was damaged.
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
    """Flushes the entries of a folder to the disk, so that a renamed file survives a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: str | Path | None) -> str | None:
    """Returns why a file could not be written later, as far as that is known now, or ``None``."""
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
    """Checks that a disk has room for a new file next to the one that it will replace.

    Raises:
        SetupError: the disk has too little room.
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
    """Returns the permissions of the new file; ``None`` for the usual ones."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    return 0o600 if is_private else None


def _made(
    beside: Path, content: bytes | str | Callable[[Path], object], rights: int | None
) -> None:
    # A file that was left behind is removed first, since its permissions may be another user's.
    beside.unlink(missing_ok=True)
    # A private file must not be readable by others even while it is written.
    descriptor = os.open(
        beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if rights is None else 0o600
    )
    with open(descriptor, "wb") as file:
        if callable(content):
            content(beside)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
    # A library may have replaced the file by another one of that name, so it is opened again.
    with beside.open("rb") as file:
        if rights is not None:
            os.fchmod(file.fileno(), rights)
        os.fsync(file.fileno())


def _reason(error: OSError | WritingError, target: Path) -> str:
    """Returns why a file was not written, which disk is full, and the state of the old file."""
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
