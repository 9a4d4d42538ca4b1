"""The demonstration's three parties, and its report."""

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import tacit
from tacit.demo.digits import DigitNet, held_out, train

MODEL_OWNER, DATA_OWNER = 0, 1

#: Images classified at once.
BATCH = 64


@dataclass(frozen=True)
class Outcome:
    """What the demonstration found."""

    parties: int
    protocol: str
    samples: int
    accuracy_plain: float
    accuracy_secret: float
    argmax_agreement: float
    max_abs_logit_error: float
    seconds: float
    bytes_sent_per_party: list[int]
    rounds: int
    layers: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)


def classify(weights: str, samples: int | None) -> dict[str, Any]:
    """What every party runs. The file of weights is the model owner's, the images are the data
    owner's; only the data owner learns the logits."""
    session = tacit.session()
    model = DigitNet().eval()
    if session.party == MODEL_OWNER:
        model.load_state_dict(torch.load(weights, weights_only=True))
    images = held_out()[0][:samples] if session.party == DATA_OWNER else None
    started, before = time.perf_counter(), session.meter.total
    tacit.share_module(model, owner=MODEL_OWNER)
    secret = tacit.share(images, owner=DATA_OWNER)
    logits = []
    with _progress(session.party == DATA_OWNER) as progress:
        task = progress.add_task("classifying in secret", total=len(secret))
        for batch in torch.split(secret, BATCH):
            logits.append(model(batch).reveal(to=DATA_OWNER))
            progress.advance(task, len(batch))
    cost = session.meter.total - before
    return {
        "logits": torch.cat(logits) if session.party == DATA_OWNER else None,
        "seconds": time.perf_counter() - started,
        "bytes_sent": cost.bytes_sent,
        "rounds": cost.rounds,
        "layers": {label: asdict(reading) for label, reading in session.meter.items()},
        "threat_model": session.threat_model,
    }


def _progress(shown: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not shown)


def demonstrate(console: Console, samples: int | None = None, timeout: float = 60.0) -> tuple[Outcome, str]:
    """Trains, starts three processes, compares with the clear; the outcome and the threat model.

    The comparison needs the model and the images in one place: this process is the demonstration's
    judge, which real parties do not have.
    """
    console.print("The model owner trains in the clear ...")
    model = train()
    images, labels = (tensor[:samples] for tensor in held_out())
    with torch.no_grad():
        plain = model(images)
    console.print(
        f"Three parties start on this machine, and classify {len(images)} held-out images in secret ..."
    )
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        weights = Path(folder) / "model-owner.pt"
        torch.save(model.state_dict(), weights)
        results = tacit.launch(classify, str(weights), samples, parties=3, transport="tcp", timeout=timeout)
    secret = results[DATA_OWNER]["logits"]
    agreement = (secret.argmax(1) == plain.argmax(1)).double().mean().item()
    outcome = Outcome(
        parties=3,
        protocol="replicated",
        samples=len(images),
        accuracy_plain=(plain.argmax(1) == labels).double().mean().item(),
        accuracy_secret=(secret.argmax(1) == labels).double().mean().item(),
        argmax_agreement=agreement,
        max_abs_logit_error=(secret - plain).abs().max().item(),
        seconds=results[DATA_OWNER]["seconds"],
        bytes_sent_per_party=[result["bytes_sent"] for result in results],
        rounds=max(result["rounds"] for result in results),
        layers=_layers(model, results),
    )
    return outcome, results[DATA_OWNER]["threat_model"]


def _layers(model: DigitNet, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    layers = []
    for name, part in model.named_children():
        readings = [result["layers"].get(name, {"bytes_sent": 0, "rounds": 0}) for result in results]
        layers.append(
            {
                "name": name,
                "type": type(part).__name__,
                "bytes_sent_per_party": [int(reading["bytes_sent"]) for reading in readings],
                "rounds": max(int(reading["rounds"]) for reading in readings),
            }
        )
    return layers


def report(console: Console, outcome: Outcome, threat_model: str) -> None:
    """The tables."""
    layers = Table(title="Layer by layer")
    for heading, justify in (
        ("layer", "left"),
        ("type", "left"),
        ("MB sent per party", "right"),
        ("rounds", "right"),
    ):
        layers.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for layer in outcome.layers:
        sent = max(layer["bytes_sent_per_party"]) / 1e6
        layers.add_row(layer["name"], layer["type"], f"{sent:.2f}", str(layer["rounds"]))
    console.print(layers)
    table = Table(
        title=f"{outcome.samples} held-out digits, {outcome.parties} parties, {outcome.protocol} sharing"
    )
    table.add_column("")
    table.add_column("in the clear", justify="right")
    table.add_column("in secret", justify="right")
    table.add_row("accuracy", f"{outcome.accuracy_plain:.2%}", f"{outcome.accuracy_secret:.2%}")
    table.add_row("same predicted class", "", f"{outcome.argmax_agreement:.2%}")
    table.add_row("largest logit error", "", f"{outcome.max_abs_logit_error:.1e}")
    table.add_row("seconds", "", f"{outcome.seconds:.2f}")
    sent = " / ".join(f"{sent / 1e6:.1f}" for sent in outcome.bytes_sent_per_party)
    table.add_row("MB sent by party 0 / 1 / 2", "", sent)
    table.add_row("rounds", "", str(outcome.rounds))
    console.print(table)
    console.print(f"Threat model: {threat_model}.")
    console.print("Party 0 owned the model, party 1 the images; party 1 alone learned the predictions.")
