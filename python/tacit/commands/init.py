"""``tacit init``: writes a first program, and the configurations of a session and of a
federation."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from tacit.atomic_write import UNFINISHED, write
from tacit.errors import MisuseError, SetupError, cause

#: Files that are written, with a description of each.
FILES = {
    "program.py": "a program that three parties run",
    "parties.toml": "who takes part in a session, and where",
    "federation.toml": "the servers and clients of a federation",
}

#: Commands to run next, in the folder.
NEXT = (
    "python program.py --trial",
    "tacit certificates --parties 3 --out certificates && tacit doctor --config parties.toml",
    "tacit federated certificates --servers 3 --clients 4 --out certificates && "
    "tacit doctor --config federation.toml",
)


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="write a first program and its configurations",
        description=f"Writes {', '.join(FILES)} for this machine. Their comments say what to change for "
        "several machines.",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where; here if not given",
    )
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from importlib.resources import files

    folder: Path = parsed.folder
    # Temporary files of unfinished writes count too, and links that lead nowhere.
    names = [name + end for name in FILES for end in ("", UNFINISHED)]
    there = [str(folder / name) for name in names if os.path.lexists(folder / name)]
    if there and not parsed.force:
        what = "it is" if len(there) == 1 else "they are"
        raise MisuseError(
            f"{', '.join(there)}: {what} there already; give another folder, or --force"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"cannot make the folder {folder}: {cause(error)}") from None
    for name, what in FILES.items():
        write(
            folder / name,
            files("tacit.commands").joinpath("starter", name).read_text(encoding="utf-8"),
        )
        print(f"{folder / name}: {what}")
    place = "" if folder == Path() else f"cd {shlex.quote(str(folder))} and "
    print(f"\nNext, {place}run:\n")
    print("\n".join(f"    {line}" for line in NEXT))
