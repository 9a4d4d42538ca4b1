"""Trial of a program with all parties on this machine: runs the program and the model before
compilation, and compares both with plain PyTorch."""

import importlib
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from tacit.compilation.check_inputs import same_kind
from tacit.compilation.execute import revealed, share_weights
from tacit.compilation.graph import walk
from tacit.compilation.passes.assign_scales import normalised_error
from tacit.compilation.program import Program
from tacit.compilation.streams import check, one_of
from tacit.compilation.weights import Weights
from tacit.meter import attestation_of, verification_lines, verification_of
from tacit.parties.launch import launch
from tacit.parties.spawn import LATE
from tacit.providers import DEFAULT_DEVICE
from tacit.sessions import session

#: Parties that own the weights and the inputs.
WEIGHTS_OWNER, INPUT_OWNER = 0, 1

#: Remedy for weights of the model before compilation that are too small for their scale.
AS_IT_IS = (
    "it is the same in the model as it runs without compilation, which the program is compared with"
)

#: Longest wait for one message, in seconds. Making correlations may take long.
TIMEOUT = 1800.0


@dataclass(frozen=True)
class Run:
    """Cost and accuracy of a run, from sharing the inputs to their owner's result."""

    seconds: float
    rounds: int
    bytes_sent_per_party: list[int]
    #: Squared error of the result, divided by the squared norm of the plain model's result. Of
    #: several results the greatest, each by its own norm.
    normalised_squared_error: float
    #: Share of rows whose greatest element is at the plain model's position, and of integers that
    #: equal the plain model's. Of several results the least; ``None`` if there are neither.
    argmax_agreement: float | None
    #: The entry on verification, if the protocol verifies.
    verified: dict[str, Any]
    #: The entry on attestation, if the parties attest.
    attested: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Returns all fields by name."""
        fields = asdict(self)
        verified, attested = fields.pop("verified"), fields.pop("attested")
        return {**fields, **verified, **attested}


@dataclass(frozen=True)
class Trial:
    """Runs of a compiled program and of the model before compilation."""

    compiled: Run
    eager: Run

    def as_json(self) -> dict[str, Any]:
        """Returns all fields by name."""
        return {"compiled": self.compiled.as_json(), "eager": self.eager.as_json()}

    def __str__(self) -> str:
        lines = [f"{'':10} {'seconds':>9} {'rounds':>7} {'MB':>10} {'error':>9} {'same class':>11}"]
        for name, run in (("compiled", self.compiled), ("eager", self.eager)):
            agreement = "" if run.argmax_agreement is None else f"{run.argmax_agreement:.1%}"
            lines.append(
                f"{name:10} {run.seconds:>9.3f} {run.rounds:>7} "
                f"{max(run.bytes_sent_per_party) / 1e6:>10.3f} "
                f"{run.normalised_squared_error:>9.1e} {agreement:>11}"
            )
        lines.append(
            "(MB: of the party that sends most; error: squared, by the squared norm of the plain "
            "result)"
        )
        lines += [
            f"{name}: {line}"
            for name, run in (("compiled", self.compiled), ("eager", self.eager))
            for line in verification_lines(run.verified)
        ]
        return "\n".join(lines)


def tried(
    program: Program,
    weights: Weights,
    inputs: list[torch.Tensor],
    *,
    parties: int,
    protocol: str,
    source: str | None = None,
    transport: str = "tcp",
    streams: int = 1,
    checked: bool = False,
    network: str | None = None,
    attestation: str | None = None,
    device: str = DEFAULT_DEVICE,
) -> Trial:
    """Runs the program and the model before compilation.

    A batch of several examples runs over ``streams`` streams. ``checked`` runs both in checked
    mode. Links imitate ``network``, the parties attest by ``attestation``, and products are
    evaluated on ``device``, as in ``tacit.launch``.

    Raises:
        MisuseError: inputs or weights do not fit the program.
    """
    weights.check(program)
    check(streams)
    count = same_kind(program, dict(zip(program.inputs, inputs, strict=True)))
    setting: dict[str, Any] = {
        "parties": parties,
        "protocol": protocol,
        "source": source,
        "transport": transport,
        "checked": checked,
        "network": network,
        "attestation": attestation,
        "device": device,
    }
    examples = [_plain(weights, [one_of(x, at, count) for x in inputs]) for at in range(count)]
    plain = [each[0] if count == 1 else torch.cat(each) for each in zip(*examples, strict=True)]
    before = weights.as_it_was()
    # Parties would otherwise import these within the timed part, if a program is the first to need
    # them.
    for late in LATE:
        importlib.import_module(late)
    runs = []
    for each, own, is_eager in ((program, weights, False), (weights.model, before, True)):
        told = launch(_run, each, own, inputs, count, streams, is_eager, timeout=TIMEOUT, **setting)
        runs.append(_measured(told, plain))
    return Trial(*runs)


def _plain(weights: Weights, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    model = weights.model
    given = dict(zip(model.inputs, inputs, strict=True))
    with torch.no_grad():
        return walk(model.graph, {**given, **weights.of_model, **model.constants})


def _run(
    program: Program,
    weights: Weights,
    inputs: list[torch.Tensor],
    count: int,
    streams: int,
    is_eager: bool,
) -> dict[str, Any]:
    """Runs one party's part and returns its result and what its meter read."""
    current = session()
    own = weights.values if current.party == WEIGHTS_OWNER else None
    bound = share_weights(program, own, WEIGHTS_OWNER, streams, AS_IT_IS if is_eager else None)
    if is_eager:
        bound.one_by_one()
    before, verified = current.meter.total, current.meter.verification
    started = time.perf_counter()
    owns = current.party == INPUT_OWNER
    given = [
        bound.given(x if owns else None, owner=INPUT_OWNER, name=name, count=count)
        for name, x in zip(program.inputs, inputs, strict=True)
    ]
    results = bound(*given)
    several = results if isinstance(results, tuple) else (results,)
    shown = [revealed(each, INPUT_OWNER) for each in several]
    seconds, spent = time.perf_counter() - started, current.meter.total - before
    return {
        "results": shown,
        "seconds": seconds,
        "rounds": spent.rounds,
        "bytes": spent.bytes_sent,
        "verification": current.meter.verification_since(verified),
        "attestation": current.attestation,
    }


def _measured(told: list[dict[str, Any]], plain: list[torch.Tensor]) -> Run:
    results = told[INPUT_OWNER]["results"]
    pairs = list(zip(results, plain, strict=True))
    agreements = [each for each in (_agreement(*pair) for pair in pairs) if each is not None]
    return Run(
        max(each["seconds"] for each in told),
        max(each["rounds"] for each in told),
        [each["bytes"] for each in told],
        max(normalised_error(*pair) for pair in pairs),
        min(agreements, default=None),
        verification_of([each["verification"] for each in told]),
        attestation_of([each["attestation"] for each in told]),
    )


def _agreement(result: torch.Tensor, plain: torch.Tensor) -> float | None:
    if not plain.numel():
        return None
    if not plain.is_floating_point():
        return float((result == plain).double().mean())
    if plain.dim() < 2 or plain.shape[-1] < 2:
        return None
    return float((result.argmax(-1) == plain.argmax(-1)).double().mean())
