"""Configurations in TOML: what the files of federations and services share.

A file is hostile until it is checked: every entry is known, of the right type, and bounded."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.errors import SetupError, cause, setup_error

#: The entries that a table may have, with their types.
Kinds = Mapping[str, type | tuple[type, ...]]

#: The type of an entry that is a number.
NUMBER = (int, float)

#: The longest time that a file may name: a day.
LONGEST = 86_400.0

#: A host, by name or address, and a port.
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s:\[\]]+):\d{1,5}")

#: A key of TOML that needs no quotes.
_BARE = re.compile(r"[A-Za-z0-9_-]+")

_NAMES = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    NUMBER: "a number",
    (int, str): "a whole number or a text",
    list: "tables",
    (list,): "a list of texts",
    (list, tuple): "a list of whole numbers",
    dict: "a table",
}


def document_in(path: Path, what: str, example: str) -> dict[str, Any]:
    """Reads a file in TOML.

    Args:
        path: of the file.
        what: names the file in errors.
        example: the page that has an example of one.

    Raises:
        SetupError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}; give the path of {what}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise setup_error(f"{path}: {_problem(error)}; {example} has an example") from None


def _problem(error: ValueError) -> str:
    """Describes what is wrong with a file that is not TOML, with its line."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
    return f"line {found[2]}: {found[1]}" if found else str(error)


class Reading:
    """A file while it is read and checked."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def wrong(self, reason: str) -> SetupError:
        """Returns the error about this file."""
        return setup_error(f"{self.path}: {reason}")

    def table(
        self, where: str, found: Any, kinds: Kinds, needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Checks a table's entries: known names, right types, and none missing that is needed."""
        if not isinstance(found, dict):
            raise self.wrong(f"{where} is a table")
        for name, value in found.items():
            if name not in kinds:
                raise self.wrong(f"{where} has no {name!r}; it may have {', '.join(kinds)}")
            kind = kinds[name]
            # A bool is an int to Python.
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise self.wrong(f"{where}: {name} = {value!r} is not {_NAMES[kind]}")
        for name in needed:
            if name not in found:
                raise self.wrong(f"{where} lacks {name!r}")
        return found

    def attestation(self, table: dict[str, Any] | None) -> str | None:
        """Returns the text of a table ``[attestation]`` as the extension reads it, with absolute
        paths; ``None`` if there is none."""
        if table is None:
            return None
        if isinstance(collateral := table.get("collateral"), str):
            table = {**table, "collateral": str((self.path.parent / collateral).absolute())}
        try:
            return "\n".join(entries(table))
        except TypeError:
            raise self.wrong("[attestation] has dates; it has texts, numbers and lists") from None

    def address(self, what: str, address: str) -> str:
        """Checks that an entry is a host and a port, and returns it."""
        if not _ADDRESS.fullmatch(address):
            raise self.wrong(
                f'{what} = {address!r}; it is a host and a port, as "alice.example:7400"'
            )
        return address

    def duration(self, what: str, seconds: float) -> float:
        """Checks that an entry is a number of seconds, and returns it."""
        if not 0 < seconds <= LONGEST:
            raise self.wrong(
                f"{what} = {seconds}; it is a number of seconds above 0 and at most {LONGEST:.0f}"
            )
        return float(seconds)

    def count(self, what: str, number: int, most: int, least: int = 1) -> int:
        """Checks that an entry is a whole number within bounds, and returns it."""
        if not least <= number <= most:
            raise self.wrong(f"{what} = {number}; it is {least} to {most}")
        return number


def judging(path: Path, policy: str | None, *, service: bool) -> "_core.Attestation | None":
    """Returns what a client judges evidence by; ``None`` if nobody attests.

    Args:
        path: of the file, for errors.
        policy: the text of its table ``[attestation]``, as :meth:`Reading.attestation` gives it.
        service: whether it is the file of a service, not of a federation.

    Raises:
        SetupError: the table, or a file that it names, is wrong.
    """
    if policy is None:
        return None
    try:
        return _core.Attestation.of_client(policy, service)
    except SetupError as error:
        raise setup_error(f"{path}: {str(error).removeprefix('setup: ')}") from None


def threat_model_of(protected: str, judging: "_core.Attestation | None") -> str:
    """Returns a client's threat model: what the protocol protects, links, and evidence."""
    attested = "" if judging is None else f"; {_core.attestation_model(judging.kind)}"
    return f"{protected}; links: TLS 1.3, mutual certificates{attested}"


def certificate_in(path: Path, whose: str, made_by: str, *, is_client: bool) -> str:
    """Reads a certificate as a PEM text, and checks it as links do. Its dates are not checked.

    Args:
        path: of the file.
        whose: names its owner in errors.
        made_by: the command that makes such certificates.
        is_client: whether its owner is a client, which only connects.

    Raises:
        SetupError: it cannot be read, or is of a kind that every peer refuses.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = cause(error) if isinstance(error, OSError) else "it is not text"
        raise setup_error(
            f"cannot read {path}, the certificate of {whose}: {reason}; ask for it, or make one by "
            f"`{made_by}`"
        ) from None
    try:
        _core.check_certificate(text, f"{path}, the certificate of {whose},", is_client)
    except SetupError as error:
        raise setup_error(str(error).replace("`tacit certificates`", f"`{made_by}`")) from None
    return text


def entries(table: Mapping[str, Any]) -> list[str]:
    """Formats entries, each on a line; ``None`` is omitted."""
    return [
        f"{name if _BARE.fullmatch(name) else _value(name)} = {_value(value)}"
        for name, value in table.items()
        if value is not None
    ]


def _value(value: Any) -> str:
    """Formats a value. TOML writes texts, numbers and booleans as JSON does, but not tables."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(entries(value))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
