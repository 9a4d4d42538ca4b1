"""Parties of the demonstration, and their findings."""

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import tacit
from tacit.demo.digits import DigitNet, held_out, train
from tacit.meter import attestation_of, verification_of
from tacit.parties.spawn import warm_up
from tacit.providers import DEFAULT, DEFAULT_DEVICE, consumes

MODEL_OWNER, DATA_OWNER = 0, 1

#: Images classified at once.
BATCH = 64

#: Longest wait for one message, in seconds.
TIMEOUT = 60.0

#: Longest wait for one message, in seconds, if a party may wait for correlations: oblivious
#: transfer takes long.
TIMEOUT_OF_CORRELATIONS = 600.0


@dataclass(frozen=True)
class Outcome:
    """Findings of the demonstration."""

    parties: int
    protocol: str
    #: Source of correlations, if the protocol consumes any.
    source: str | None
    samples: int
    accuracy_plain: float
    accuracy_secret: float
    argmax_agreement: float
    max_abs_logit_error: float
    seconds: float
    #: Part of ``seconds``.
    seconds_waiting_for_correlations: float
    #: Bytes of the online phase: all except those that made correlations.
    bytes_sent_per_party: list[int]
    #: Bytes of the offline phase, which the online ones do not include.
    correlation_bytes_sent_per_party: list[int]
    #: Bytes of the offline phase; from a dealer each party gets its part.
    correlation_bytes_received_per_party: list[int]
    rounds: int
    layers: list[dict[str, Any]]
    #: The entry on verification, if the protocol verifies.
    verified: dict[str, Any]
    #: What attestation did, if the parties attested: ``kind``, ``verified`` (by party, the number
    #: of members whose evidence it accepted), ``signatures`` of all parties, and ``seconds`` of
    #: the party that spent most.
    attestation: dict[str, Any] | None
    #: What each party evaluated products on, by party: ``kind``, ``products`` and ``bytes_copied``.
    device: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Returns all fields by name, without those of what this run did not do."""
        fields = asdict(self)
        verified = fields.pop("verified")
        if self.attestation is None:
            del fields["attestation"]
        return {**fields, **verified}


def classify(weights: str, samples: int | None) -> dict[str, Any]:
    """Runs the part of one party.

    The file of weights belongs to the model owner, and the images to the data owner. Only the data
    owner learns the logits."""
    session = tacit.session()
    model = DigitNet().eval()
    if session.party == MODEL_OWNER:
        model.load_state_dict(torch.load(weights, weights_only=True))
    images = held_out()[0][:samples] if session.party == DATA_OWNER else None
    started, before, waited = (
        time.perf_counter(),
        session.meter.total,
        session.meter.waited_for_correlations,
    )
    verified = session.meter.verification
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
        "waited": session.meter.waited_for_correlations - waited,
        "bytes_sent": cost.bytes_sent,
        "correlation_bytes_sent": session.meter.correlations.bytes_sent,
        "correlation_bytes_received": session.meter.correlations.bytes_received,
        "rounds": cost.rounds,
        "verification": session.meter.verification_since(verified),
        "layers": {label: asdict(reading) for label, reading in session.meter.items()},
        "source": session.core.source,
        "threat_model": session.threat_model,
        "attestation": session.attestation,
        "device": session.device,
    }


def _progress(shown: bool) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown)


def demonstrate(
    console: Console,
    samples: int | None = None,
    *,
    protocol: str = DEFAULT,
    parties: int = 3,
    source: str | None = None,
    network: str | None = None,
    attestation: str | None = None,
    device: str = DEFAULT_DEVICE,
) -> tuple[Outcome, str]:
    """Trains, starts the processes, and compares with the clear; returns the findings and the
    threat model.

    The comparison needs the model and the images in one place. This process is the judge of the
    demonstration, which real parties do not have.
    """
    warm_up()
    console.print("The model owner trains in the clear ...")
    model = train()
    images, labels = (tensor[:samples] for tensor in held_out())
    with torch.no_grad():
        plain = model(images)
    console.print(
        f"{parties} parties start on this machine, and classify {len(images)} held-out images in "
        f"secret ..."
    )
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        weights = Path(folder) / "model-owner.pt"
        torch.save(model.state_dict(), weights)
        results = tacit.launch(
            classify,
            str(weights),
            samples,
            parties=parties,
            protocol=protocol,
            source=source,
            transport="tcp",
            network=network,
            attestation=attestation,
            device=device,
            timeout=TIMEOUT_OF_CORRELATIONS if consumes(protocol) else TIMEOUT,
        )
    secret = results[DATA_OWNER]["logits"]
    agreement = (secret.argmax(1) == plain.argmax(1)).double().mean().item()
    outcome = Outcome(
        parties=parties,
        protocol=protocol,
        source=results[DATA_OWNER]["source"],
        samples=len(images),
        accuracy_plain=(plain.argmax(1) == labels).double().mean().item(),
        accuracy_secret=(secret.argmax(1) == labels).double().mean().item(),
        argmax_agreement=agreement,
        max_abs_logit_error=(secret - plain).abs().max().item(),
        seconds=results[DATA_OWNER]["seconds"],
        seconds_waiting_for_correlations=results[DATA_OWNER]["waited"],
        bytes_sent_per_party=[result["bytes_sent"] for result in results],
        correlation_bytes_sent_per_party=[result["correlation_bytes_sent"] for result in results],
        correlation_bytes_received_per_party=[
            result["correlation_bytes_received"] for result in results
        ],
        rounds=max(result["rounds"] for result in results),
        layers=_layers(model, results),
        verified=verification_of([result["verification"] for result in results]),
        attestation=attestation_of([result["attestation"] for result in results]).get(
            "attestation"
        ),
        device=[result["device"] for result in results],
    )
    return outcome, results[DATA_OWNER]["threat_model"]


def _layers(model: DigitNet, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    layers = []
    for name, part in model.named_children():
        readings = [
            result["layers"].get(name, {"bytes_sent": 0, "rounds": 0}) for result in results
        ]
        layers.append(
            {
                "name": name,
                "type": type(part).__name__,
                "bytes_sent_per_party": [int(reading["bytes_sent"]) for reading in readings],
                "rounds": max(int(reading["rounds"]) for reading in readings),
            }
        )
    return layers
