"""``tacit init``: writes a first program, and the configurations of a session, of a federation and
of a service."""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
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


#: The word that asks for a service. A folder of that name is ./service.
SERVICE = "service"

#: Files of a service that are written, with a description of each.
FILES_OF_SERVICE = {
    "service.toml": "a service: its parties, clients and models",
    "lenet.py": "the model that it serves",
}

#: Files that are made for it.
MADE_FOR_SERVICE = {
    "lenet.pt": "its weights, which party 0 owns: they are drawn, so train your own",
    "x.npy": "an input",
    "certificates": "keys and certificates of all, for trials",
}

#: Commands to run next, in the folder, the first three in a terminal each.
NEXT_OF_SERVICE = (
    "tacit serve --config service.toml --party 0",
    "tacit serve --config service.toml --party 1",
    "tacit serve --config service.toml --party 2",
    "tacit client infer --service service.toml --input x.npy --output y.npy",
)


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="write a first program and its configurations, or a service",
        description=f"Writes {', '.join(FILES)} for this machine; or, as `tacit init service`, "
        f"{', '.join(FILES_OF_SERVICE)}, weights, an input, keys and certificates. Their comments "
        "say what to change for several machines.",
    )
    parser.add_argument(
        "folder",
        nargs="*",
        metavar="[service] [DIR]",
        help="service for a service; and where; here if not given",
    )
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    words = list(parsed.folder)
    is_service = words[:1] == [SERVICE]
    folders = words[is_service:]
    if len(folders) > 1:
        raise MisuseError(f"{' '.join(folders)}: give one folder, or service and one folder")
    folder = Path(*folders)
    if is_service:
        _write(folder, FILES_OF_SERVICE, list(MADE_FOR_SERVICE), parsed.force)
        _make_for_service(folder)
        _show_next(folder, NEXT_OF_SERVICE)
    else:
        _write(folder, FILES, (), parsed.force)
        _show_next(folder, NEXT)


def _write(folder: Path, written: Mapping[str, str], made: Sequence[str], force: bool) -> None:
    """Writes files of the starter, unless these or the files to be made are there."""
    from importlib.resources import files

    # Temporary files of unfinished writes count too, and links that lead nowhere.
    names = [name + end for name in (*written, *made) for end in ("", UNFINISHED)]
    there = [str(folder / name) for name in names if os.path.lexists(folder / name)]
    if there and not force:
        what = "it is" if len(there) == 1 else "they are"
        raise MisuseError(
            f"{', '.join(there)}: {what} there already; give another folder, or --force"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"cannot make the folder {folder}: {cause(error)}") from None
    for name, what in written.items():
        write(
            folder / name,
            files("tacit.commands").joinpath("starter", name).read_text(encoding="utf-8"),
        )
        print(f"{folder / name}: {what}")


def _show_next(folder: Path, commands: Sequence[str]) -> None:
    place = "" if folder == Path() else f"cd {shlex.quote(str(folder))} and "
    print(f"\nNext, {place}run:\n")
    print("\n".join(f"    {line}" for line in commands))


def _make_for_service(folder: Path) -> None:
    """Makes the weights, an input, keys and certificates of a service."""
    import torch

    from tacit.commands import arrays
    from tacit.serving.example import SHAPE, make

    make(folder, 3, ["app"])
    arrays.write(folder / "x.npy", torch.rand(SHAPE, generator=torch.Generator().manual_seed(2)))
    for name, what in MADE_FOR_SERVICE.items():
        print(f"{folder / name}: {what}")
