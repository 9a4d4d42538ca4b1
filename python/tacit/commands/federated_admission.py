"""``tacit federated authority``, ``request``, ``admit`` and ``revoke``: a clients' authority, which
lets clients join and leave without a new file at the servers."""

import argparse
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.atomic_write import write
from tacit.commands.federated_certificates import MOST_CLIENTS
from tacit.commands.options import add_out, positive
from tacit.errors import MisuseError, cause, setup_error

#: Days for which a client's certificate and a list of revoked ones are valid if none are given.
DAYS = 30


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "authority",
        help="make the authority that admits clients",
        description="Makes the certificate and the key of an authority, authority.pem and "
        "authority.key. All members need authority.pem; authority.key stays with the authority.",
    )
    add_out(parser)
    parser.set_defaults(command=authority)
    parser = commands.add_parser(
        "request",
        help="as a client: make a key, and ask an authority for its certificate",
        description="Makes a client's key, client-I.key, and client-I.request, which goes to the "
        "authority.",
    )
    _add_client(parser)
    add_out(parser)
    parser.set_defaults(command=request)
    parser = commands.add_parser(
        "admit",
        help="as the authority: make a client's certificate of its request",
        description="Makes client-I.pem of the request of client I, which goes to that client.",
    )
    _add_authority(parser)
    _add_client(parser)
    parser.add_argument(
        "--request",
        type=Path,
        metavar="FILE",
        required=True,
        help="what the client made by `tacit federated request`",
    )
    _add_days(parser, "the certificate is valid for N days")
    add_out(parser)
    parser.set_defaults(command=admit)
    parser = commands.add_parser(
        "revoke",
        help="as the authority: let certificates count no more",
        description="Adds certificates to the authority's list of revoked ones, or makes the list "
        "again. All servers need it, and read it before each round.",
    )
    _add_authority(parser)
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        nargs="*",
        default=[],
        help="certificates that are revoked besides those in the list",
    )
    parser.add_argument(
        "--list",
        type=Path,
        metavar="FILE",
        required=True,
        help="the list, which is made if it does not exist",
    )
    _add_days(parser, "the list counts for N days, and servers need a newer one then")
    parser.set_defaults(command=revoke)


def _add_client(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--client", type=int, metavar="I", required=True, help="of this client, counted from 0"
    )


def _add_authority(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--authority",
        type=Path,
        metavar="FILE",
        default=Path("authority.pem"),
        help="the authority's certificate, with its key beside it (authority.pem)",
    )


def _add_days(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--days", type=positive, metavar="N", default=DAYS, help=f"{what} ({DAYS})")


def authority(parsed: argparse.Namespace) -> None:
    _core.write_authority("authority", parsed.out)
    print(
        f"Wrote authority.pem and authority.key in {parsed.out}.\nAll servers and clients need "
        "authority.pem; whoever has authority.key decides who is a client."
    )


def request(parsed: argparse.Namespace) -> None:
    client = _client(parsed)
    _core.write_request(client, parsed.out)
    print(
        f"Wrote client-{client}.key and client-{client}.request in {parsed.out}.\nThe request "
        "goes to the authority, the key to nobody."
    )


def admit(parsed: argparse.Namespace) -> None:
    client = _client(parsed)
    path = Path(parsed.out) / f"client-{client}.pem"
    made = _core.admit(
        _read(parsed.authority),
        str(parsed.authority.with_suffix(".key")),
        _read(parsed.request),
        client,
        parsed.days,
    )
    Path(parsed.out).mkdir(parents=True, exist_ok=True)
    if path.exists():
        # It is needed to be revoked.
        before = path.with_name(f"client-{client}-{_core.blake3(path.read_bytes())[:8]}.pem")
        path.rename(before)
        print(
            f"The one before is kept as {before}. If its key is lost, revoke it: tacit federated "
            f"revoke --certificate {before} --list FILE"
        )
    write(path, made)
    print(f"Wrote {path}, which goes to client {client}, and is valid for {parsed.days} days.")


def revoke(parsed: argparse.Namespace) -> None:
    made = _core.revoke(
        _read(parsed.authority),
        str(parsed.authority.with_suffix(".key")),
        _read(parsed.list) if parsed.list.exists() else None,
        [_read(path) for path in parsed.certificate],
        parsed.days,
    )
    write(parsed.list, made)
    print(f"Wrote {parsed.list}, which goes to all servers within {parsed.days} days again.")


def _client(parsed: argparse.Namespace) -> int:
    client: int = parsed.client
    if not 0 <= client < MOST_CLIENTS:
        raise MisuseError(f"clients are 0 to {MOST_CLIENTS - 1}, not {client}")
    return client


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    except UnicodeDecodeError:
        raise setup_error(f"cannot read {path}: it is no text") from None
