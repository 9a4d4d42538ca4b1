"""``tacit federated serve``: runs one of the three servers of a federation."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.commands.options import add_config, add_threads, check_writable, positive
from tacit.errors import MisuseError, PeerError, cause, setup_error

if TYPE_CHECKING:
    from tacit.federated.rounds.selection import Selection
    from tacit.federated.rounds.states import State
    from tacit.federated.service.config import Federation
    from tacit.federated.service.model_store import Models
    from tacit.federated.service.report import Report
    from tacit.federated.service.server import Server


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="be one of the three servers",
        description="Is one of the servers of a federation.",
    )
    add_config(parser, "federation.toml")
    parser.add_argument(
        "--server", required=True, type=int, metavar="I", help="which of them this is, from 0"
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        default=1,
        metavar="N",
        help="how many rounds this federation has in total, even if its servers are restarted in "
        "between; 1 if not given",
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="the initial parameters, as torch.save writes a tensor or a module's state_dict(); "
        "the same at all servers; if a coordinator has the model, only the number of "
        "parameters counts; by default the model that federation.toml names, or start.pt next "
        "to it",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the parameters there after each round, as a vector or as a state_dict(), like "
        "the initial ones; if the file exists already, continue from it and from the round "
        "that it names",
    )
    add_threads(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.federated.service.config import Federation

    federation = Federation.read(parsed.config)
    if federation.settings.root == f"server-{parsed.server}":
        raise MisuseError(
            f"server {parsed.server} is the root, which trains: it needs a program of its own that "
            "passes what it trained to tacit.federated.service.server.Server.round(model, "
            "root=...)"
        )
    if parsed.out is not None:
        if federation.settings.result_to == "clients":
            raise MisuseError(
                'result_to = "clients": no server learns the model that --out would write; leave '
                "--out away, "
                "clients have it"
            )
        # This is checked before the servers connect.
        check_writable(parsed.out)
    from tacit.federated.messages import counted
    from tacit.federated.service.model_store import Kept, Models, is_first, missing
    from tacit.federated.service.startup import latest_of

    federation.server(parsed.server)
    latest = latest_of(federation, parsed.server)
    travelling = federation.settings.travelling
    models = (
        None
        if parsed.out is None
        else Models(parsed.out, parsed.server, federation.name, travelling)
    )
    # Servers cannot continue from a model that they must not know.
    is_known = (
        federation.settings.result_to != "clients" and federation.settings.coordinator is None
    )
    is_kept = is_known or models is not None
    ended = latest.known.ended
    # No server replaces its model before all three have the new one. That a round ended here proves
    # nothing about a server that was killed. If that server's last round can be repeated, this one
    # waits for it.
    is_unsure = latest.known.common < parsed.rounds
    is_again = models is None and is_unsure and (not is_known or ended == parsed.rounds == 1)
    settled = ended if models is None else models.settled.ended if models.settled else 0
    if settled >= parsed.rounds and not is_again:
        _say_that_all_ended(parsed, settled)
        return
    kept = [] if models is None else models.kept
    if not kept and is_kept and ended and not is_again:
        raise missing(parsed.out, latest.path, ended)
    if not kept or (is_kept and is_first(models, ended)):
        start = _model(_start(parsed.model or federation.model, federation), travelling)
        kept = [*kept, Kept.of(start, is_by_size=not is_known, travelling=travelling)]
    if is_known and models is None and parsed.rounds > 1:
        print(
            "tacit: without --out nothing keeps the model: where a server ends before the last "
            "round does, "
            "what was learned is lost; give --out at all three",
            file=sys.stderr,
        )
    print(
        f"tacit: server {parsed.server} waits for the two others ...", file=sys.stderr, flush=True
    )
    with _opened(parsed, models) as server:
        print(f"tacit: server {server.number}; {server.threat_model}", file=sys.stderr)
        print(f"tacit: clients reach it at {server.address}", file=sys.stderr)
        chosen = server.agree_to_begin(parsed.rounds, kept if is_kept else []) or kept[0]
        if models is not None:
            models.begin(chosen)
        if server.ended >= parsed.rounds:
            _say_that_all_ended(parsed, server.ended)
        elif server.ended:
            print(
                f"tacit: continues after {counted(server.ended, 'round')} of {parsed.rounds}",
                file=sys.stderr,
            )
        model = chosen.model
        while server.ended < parsed.rounds:
            report = server.round(model, models=models)
            print(_line(report), flush=True)
            model = report.model
            every = federation.settings.evaluate_every
            if every and server.ended % every == 0:
                print(_line(server.evaluate(model)), flush=True)


def _say_that_all_ended(parsed: argparse.Namespace, ended: int) -> None:
    from tacit.federated.messages import counted

    where = f", and {parsed.out} has their model" if parsed.out is not None else ""
    print(
        f"tacit: nothing is left to do: {counted(ended, 'round')} of this federation ended{where}; "
        f"for "
        f"more of "
        f"them give --rounds above {ended}"
    )


@contextmanager
def _opened(parsed: argparse.Namespace, models: "Models | None") -> "Iterator[Server]":
    """Opens the server.

    A server that has the result of the last round, but not the confirmation of the others, may find
    that these have finished and left.

    Raises:
        SetupError: raised in that case instead of the other error, with the remedy.
        TacitError: as in ``Server.open``.
    """
    from tacit.federated.service.server import Server

    has_met = False
    try:
        with Server.open(parsed.config, parsed.server, parsed.threads) as server:
            has_met = True
            yield server
    except PeerError as error:
        pending = None if models is None or has_met else models.pending
        if pending is None or pending.ended < parsed.rounds:
            raise
        assert models is not None
        raise setup_error(
            f"{error}. {models.pending_path} has the model of round {pending.round}, the last "
            "one. If another server has that model in its --out file, the work of both is done: mv "
            f"{models.pending_path} {models.path}"
        ) from None


def _start(path: Path | None, federation: "Federation") -> Path:
    """Returns the path of the initial parameters.

    Raises:
        SetupError: no path is given.
    """
    if path is None:
        raise setup_error(
            f'no model to begin from: give --model FILE, or model = "FILE" in {federation.path}, '
            f"or put "
            f"{federation.path.parent / 'start.pt'} there, as torch.save(model.state_dict(), path) "
            f"writes it"
        )
    return path


def _model(path: Path, travelling: "Selection") -> "State":
    import torch

    from tacit.federated.rounds.states import in_a_row

    try:
        loaded = torch.load(path, weights_only=True)
    except OSError as error:
        raise setup_error(
            f"cannot read {path}: {cause(error)}; it must hold the initial parameters, as "
            "torch.save writes them"
        ) from None
    except Exception as error:
        raise setup_error(
            f"{path} holds no parameters that torch.save wrote ({type(error).__name__}); write "
            f"them by "
            "torch.save(model.state_dict(), path)"
        ) from None
    if not isinstance(loaded, torch.Tensor | dict):
        raise MisuseError(
            f"{path} holds a {type(loaded).__name__}; it holds a tensor, or a module's state_dict()"
        )
    # Entries that are no numbers, or cannot be trained, are found before the servers connect.
    try:
        in_a_row(loaded, travelling)
    except MisuseError as error:
        raise MisuseError(f"{path}: {error}") from None
    return loaded


def _line(report: "Report") -> str:
    """Returns the lines that are printed about a round."""
    from tacit.federated.messages import counted

    if report.failure is not None:
        result = f"nothing: {report.failure}"
    else:
        what = "evaluated by " if report.is_evaluation else ""
        result = f"{what}{counted(len(report.accepted), 'client')} in {report.seconds:.2f} s"
    result += "".join(f"; mean {name} {value:.4g}" for name, value in report.metrics.items())
    if report.fraction is not None:
        result += f"; {report.fraction:.3g} of the clients below the bound of {report.norm:.4g}"
    if report.step:
        result += f"; {report.upload} bytes up a client, of values in steps of {report.step:.3g}"
    if report.epsilons is not None:
        to_server, to_others = report.epsilons.to_server, report.epsilons.to_others
        result += (
            f"; spent: ε {to_server:.4g} against a server, {to_others:.4g} against who sees models"
        )
    reasons = [
        f"client {'unknown' if client is None else client}: {reason}"
        + (f" ({times} times)" if times > 1 else "")
        for client, reason, times in report.refused
    ]
    reasons += [f"client {client}: not whole at all servers" for client in report.dropped]
    lines = [f"round {report.round}: {result}", *(f"  refused {reason}" for reason in reasons)]
    lines += [f"  late client {client}: it was told of the round" for client in report.late]
    return "\n".join(lines)
