"""``tacit dealer``: makes correlations for parties on other machines."""

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.commands.options import add_config, add_threads
from tacit.libraries import find_libraries


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "dealer", help="make correlations for parties on other machines, until they have finished"
    )
    add_config(parser)
    add_threads(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    parties = _parties_of(parsed.config)
    if parties is not None:
        print(
            f"tacit: the dealer; {_core.threat_model('additive', parties, 'dealer')}",
            file=sys.stderr,
        )
    find_libraries()
    _core.deal_connected(parsed.config, threads=parsed.threads)


def _parties_of(config: str) -> int | None:
    """Returns how many parties a configuration names, or ``None`` if it does not say. The core
    reports what is wrong then."""
    try:
        return len(tomllib.loads(Path(config).read_text())["party"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
