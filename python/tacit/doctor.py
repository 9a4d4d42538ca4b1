"""Checks of whether a session is possible: versions, configuration, files and peers."""

import sys
import tomllib
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from typing import Any

from tacit import _core

#: Name of tacit's distribution. Its module and its command are called ``tacit``.
DISTRIBUTION = "tacit-mpc"

#: Name of another project's distribution, which also has a module ``tacit``.
OTHER = "tacit"

#: Oldest Python that works.
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Check:
    """The result of one check, with a remedy if it failed."""

    check: str
    ok: bool
    detail: str
    remedy: str | None = None

    def as_json(self) -> dict[str, str | bool | None]:
        """Returns the result as JSON entries."""
        return asdict(self)

    def __str__(self) -> str:
        line = f"{'ok   ' if self.ok else 'WRONG'} {self.check}: {self.detail}"
        return line if self.remedy is None else f"{line}; {self.remedy}"


def examine(config: str, party: int | None, dealer: bool, wait: float) -> list[Check]:
    """Runs all checks of a session.

    If ``party`` or ``dealer`` says who checks, the peers are tried too, within ``wait`` seconds."""
    found = _core.examine(config, party, dealer, wait)
    return [
        *_versions(),
        *(Check(check, ok, detail, remedy or None) for check, ok, detail, remedy in found),
    ]


def is_federation(config: str) -> bool:
    """Whether a configuration file seems to be that of a federation."""
    return "server" in _document(config)


def is_service(config: str) -> bool:
    """Whether a configuration file seems to be that of a service."""
    # A federation's file may have a model too, which is a text there.
    return isinstance(_document(config).get("model"), list)


def _document(config: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(config).read_text())
    except (OSError, ValueError):
        return {}


def examine_federation(
    config: str, server: int | None, client: int | None, wait: float
) -> list[Check]:
    """Runs all checks of a federation, for one of its servers or clients, or for none of them.

    Raises:
        MisuseError: there is no such server or client.
    """
    from tacit.federated.service.examining import examine

    found = examine(config, server, client, wait)
    return [
        *_versions(),
        *(Check(check, ok, detail, remedy or None) for check, ok, detail, remedy in found),
    ]


def examine_service(config: str, party: int | None, wait: float) -> list[Check]:
    """Runs all checks of a service, for one of its parties or for none of them.

    It asks the status pages of that party, or of all, within ``wait`` seconds each.

    Raises:
        MisuseError: there is no such party.
    """
    from tacit.serving.examining import examine

    found = examine(config, party, wait)
    return [
        *_versions(),
        *(Check(check, ok, detail, remedy or None) for check, ok, detail, remedy in found),
    ]


def other() -> tuple[str, str] | None:
    """Returns an error and a remedy if another distribution has the module ``tacit`` too."""
    try:
        found = distribution(OTHER)
    except PackageNotFoundError:
        return None
    return (
        f"the package {OTHER!r} {found.version} is installed beside {DISTRIBUTION!r}, and both "
        f"have a module "
        f"{OTHER!r}: each overwrites files of the other",
        f"remove both and install {DISTRIBUTION} anew: pip uninstall {OTHER} {DISTRIBUTION}, then "
        f"pip install {DISTRIBUTION}",
    )


def _versions() -> list[Check]:
    python = ".".join(map(str, sys.version_info[:3]))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    checks = [Check("tacit", True, version(DISTRIBUTION))]
    if (found := other()) is not None:
        checks.append(Check("another package", False, *found))
    if sys.version_info >= OLDEST_PYTHON:
        checks.append(Check("Python", True, python))
    else:
        checks.append(Check("Python", False, python, f"install Python {oldest} or later"))
    return [*checks, *(_installed(name) for name in ("torch", "numpy"))]


def _installed(name: str) -> Check:
    """Checks that a package is installed in a version that tacit needs, without importing it."""
    needed = next(
        (need for need in requires(DISTRIBUTION) or [] if need.startswith(f"{name}>=")),
        f"{name}>=0",
    )
    least = needed.removeprefix(f"{name}>=").split(";")[0].strip()
    try:
        there = version(name)
    except PackageNotFoundError:
        return Check(name, False, "is not installed", f"install it: pip install '{name}>={least}'")
    if _numbers(there) >= _numbers(least):
        return Check(name, True, there)
    return Check(
        name,
        False,
        f"{there} is too old",
        f"install {least} or later: pip install '{name}>={least}'",
    )


def _numbers(release: str) -> list[int]:
    """Parses a version: 2.10.1+cpu is [2, 10, 1]."""
    return [int(part) for part in release.split("+")[0].split(".") if part.isdigit()]
