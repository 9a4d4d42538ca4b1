"""``tacit client``: asks a service for results."""

import argparse
import sys
from pathlib import Path
from typing import Any

from tacit.commands.options import check_writable
from tacit.errors import MisuseError


def add(commands: Any) -> None:
    parser = commands.add_parser("client", help="ask a service for a model's results")
    actions = parser.add_subparsers(required=True, metavar="infer|models")
    infer = actions.add_parser("infer", help="ask for the result for an input")
    add_service(infer)
    infer.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="[NAME=]FILE.npy",
        help="the input; NAME if the model takes several",
    )
    infer.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE.npy",
        help="where the result is written; several results are FILE-0.npy, FILE-1.npy and so on",
    )
    infer.add_argument("--model", metavar="NAME", help="of the service; not needed if it has one")
    infer.add_argument("--version", metavar="V", help="of the model; the last one if not given")
    infer.set_defaults(command=run_infer)
    models = actions.add_parser("models", help="show the models of a service")
    add_service(models)
    models.set_defaults(command=run_models)


def add_service(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the service, and for which of its clients this is."""
    parser.add_argument(
        "--service", required=True, metavar="service.toml", help="the service: who, and what"
    )
    parser.add_argument(
        "--client", metavar="NAME", help="which client this is; the first one if not given"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long the call takes at most (60 if not given)",
    )


def run_infer(parsed: argparse.Namespace) -> None:
    check_writable(parsed.output)
    from tacit.client import Client
    from tacit.commands.arrays import read, write

    inputs = {}
    for text in parsed.input:
        name, _, path = text.rpartition("=")
        if name in inputs:
            raise MisuseError(f"--input {text}: that input is given twice")
        inputs[name] = read(Path(path))
    given = inputs[""] if list(inputs) == [""] else inputs
    with Client(parsed.service, name=parsed.client, timeout=parsed.timeout) as client:
        result = client.infer(parsed.model, given, version=parsed.version)
    several = result if isinstance(result, tuple) else (result,)
    for at, each in enumerate(several):
        path = parsed.output
        if len(several) > 1:
            path = path.with_name(f"{path.stem}-{at}{path.suffix}")
        write(path, each)
        print(f"tacit: wrote {path}", file=sys.stderr)


def run_models(parsed: argparse.Namespace) -> None:
    from tacit.client import Client

    with Client(parsed.service, name=parsed.client, timeout=parsed.timeout) as client:
        for model in client.models().values():
            print(f"{model.name}: versions {', '.join(model.versions)}")
            for what, tensors in (("takes", model.inputs), ("gives", model.outputs)):
                for each in tensors:
                    print(f"  {what} {each.name}: {each.dtype} {list(each.shape)}")
