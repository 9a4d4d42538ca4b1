"""``tacit federated serve``: one of the three servers of a federation."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.commands.options import cannot_write, positive
from tacit.errors import MisuseError, SetupError, cause

if TYPE_CHECKING:
    from tacit.federated.config import Federation
    from tacit.federated.server import Report
    from tacit.federated.states import State


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "serve", help="be one of the three servers", description="Is one of the servers of a federation."
    )
    parser.add_argument(
        "--config", required=True, metavar="federation.toml", help="who takes part, and where"
    )
    parser.add_argument(
        "--server", required=True, type=int, metavar="I", help="which of them this is, from 0"
    )
    parser.add_argument("--rounds", type=positive, default=1, metavar="N", help="how many; 1 if not given")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="the parameters to begin from, as torch.save writes a tensor or a module's state_dict(); the "
        "same at all servers; where a coordinator has the model, only their number counts; the model that "
        "federation.toml names if not given, or start.pt beside it",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write there, after each round, the parameters, in a row or as a state_dict() as given",
    )
    parser.add_argument(
        "--threads", type=positive, metavar="N", help="of this process; all cores if not given"
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.federated.config import Federation
    from tacit.federated.server import Server

    federation = Federation.read(parsed.config)
    if federation.settings.root == f"server-{parsed.server}":
        raise MisuseError(
            f"server {parsed.server} is the root, which trains: it needs a program of its own, that gives "
            "tacit.federated.server.Server.round(model, root=...) what it trained"
        )
    if parsed.out is not None:
        if federation.settings.result_to == "clients":
            raise MisuseError(
                'result_to = "clients": no server learns the model that --out would write; leave --out away, '
                "clients have it"
            )
        # Before anybody is met.
        if (wrong := cannot_write(parsed.out)) is not None:
            raise SetupError(wrong)
    from tacit.federated.states import in_form

    start = _model(_start(parsed.model or federation.model, federation))
    model: State = start
    print(f"tacit: server {parsed.server} waits for the two others ...", file=sys.stderr, flush=True)
    with Server.open(parsed.config, parsed.server, parsed.threads) as server:
        print(f"tacit: server {server.number}; {server.threat_model}", file=sys.stderr)
        print(f"tacit: clients reach it at {server.address}", file=sys.stderr)
        for _ in range(parsed.rounds):
            report = server.round(model)
            print(_line(report), flush=True)
            model = report.model
            if parsed.out is not None:
                _write(parsed.out, in_form(report.model, start))


def _start(path: Path | None, federation: "Federation") -> Path:
    """Where the parameters to begin from lie.

    Raises:
        SetupError: nobody said so.
    """
    if path is None:
        raise SetupError(
            f'no model to begin from: give --model FILE, or model = "FILE" in {federation.path}, or put '
            f"{federation.path.parent / 'start.pt'} there, as torch.save(model.state_dict(), path) writes it"
        )
    return path


def _model(path: Path) -> "State":
    import torch

    from tacit.federated.states import in_a_row

    try:
        loaded = torch.load(path, weights_only=True)
    except OSError as error:
        raise SetupError(
            f"cannot read {path}: {cause(error)}; it is to hold what torch.save wrote of the parameters to "
            "begin from"
        ) from None
    except Exception as error:
        raise SetupError(
            f"{path} holds no parameters that torch.save wrote ({type(error).__name__}); write them by "
            "torch.save(model.state_dict(), path)"
        ) from None
    if not isinstance(loaded, torch.Tensor | dict):
        raise MisuseError(
            f"{path} holds a {type(loaded).__name__}; it holds a tensor, or a module's state_dict()"
        )
    # What is no number, or none that is learned, is known before anybody is met.
    in_a_row(loaded)
    return loaded


def _write(path: Path, model: "State") -> None:
    import torch

    written = path.with_name(path.name + ".new")
    try:
        torch.save(model, written)
        written.replace(path)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {cause(error)}") from None


def _line(report: "Report") -> str:
    """A line of a round."""
    from tacit.federated.naming import counted

    if report.failure is not None:
        result = f"nothing: {report.failure}"
    else:
        result = f"{counted(len(report.accepted), 'client')} in {report.seconds:.2f} s"
    if report.epsilons is not None:
        to_server, to_others = report.epsilons.to_server, report.epsilons.to_others
        result += f"; spent: ε {to_server:.4g} against a server, {to_others:.4g} against who sees models"
    reasons = [
        f"client {'unknown' if client is None else client}: {reason}"
        + (f" ({times} times)" if times > 1 else "")
        for client, reason, times in report.refused
    ]
    reasons += [f"client {client}: not whole at all servers" for client in report.dropped]
    lines = [f"round {report.round}: {result}", *(f"  refused {reason}" for reason in reasons)]
    lines += [f"  late client {client}: it was told of the round" for client in report.late]
    return "\n".join(lines)
