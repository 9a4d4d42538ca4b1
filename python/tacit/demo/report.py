"""Tables of the demonstration."""

from rich.console import Console
from rich.table import Table

from tacit.demo.run import Outcome
from tacit.meter import verification_lines
from tacit.providers import SOURCES, has_dealer

#: Greatest number of parties whose megabytes are shown one by one.
MOST_SHOWN = 3


def report(console: Console, outcome: Outcome, threat_model: str) -> None:
    """Prints the findings of the demonstration."""
    console.print(_layers(outcome))
    console.print(_summary(outcome))
    for line in verification_lines(outcome.verified):
        console.print(line)
    if (attested := outcome.attestation) is not None:
        console.print(
            f"Attestation ({attested['kind']}): each party accepted the evidence of "
            f"{min(attested['verified'])} others; {attested['signatures']} messages were signed; "
            f"{attested['seconds']:.2f} s."
        )
    console.print(f"Threat model: {threat_model}.")
    console.print(
        "Party 0 owned the model, party 1 the images; party 1 alone learned the predictions."
    )


def _layers(outcome: Outcome) -> Table:
    table = Table(title="Layer by layer" + (", online" if outcome.source else ""))
    table.add_column("layer")
    table.add_column("type")
    table.add_column("MB sent per party", justify="right")
    table.add_column("rounds", justify="right")
    for layer in outcome.layers:
        sent = max(layer["bytes_sent_per_party"]) / 1e6
        table.add_row(layer["name"], layer["type"], f"{sent:.2f}", str(layer["rounds"]))
    return table


def _summary(outcome: Outcome) -> Table:
    table = Table(
        title=f"{outcome.samples} held-out digits, {outcome.parties} parties, {outcome.protocol} "
        f"sharing"
    )
    table.add_column("")
    table.add_column("in the clear", justify="right")
    table.add_column("in secret", justify="right")
    table.add_row("accuracy", f"{outcome.accuracy_plain:.2%}", f"{outcome.accuracy_secret:.2%}")
    table.add_row("same predicted class", "", f"{outcome.argmax_agreement:.2%}")
    table.add_row("largest logit error", "", f"{outcome.max_abs_logit_error:.1e}")
    table.add_row("seconds", "", f"{outcome.seconds:.2f}")
    if outcome.source is not None:
        waited = outcome.seconds_waiting_for_correlations
        table.add_row("of which waiting for correlations", "", f"{waited:.2f}")
    who, sent = _sent(outcome.bytes_sent_per_party)
    online = ", online" if outcome.source else ""
    table.add_row(f"MB sent by {who}{online}", "", sent)
    if has_dealer(outcome.source):
        _, received = _sent(outcome.correlation_bytes_received_per_party)
        table.add_row("  offline: correlations, received", "", received)
        table.caption = (
            "Correlations: made ahead by the dealer; parties expand keys, and get what is missing."
        )
    elif outcome.source is not None:
        _, sent = _sent(outcome.correlation_bytes_sent_per_party)
        table.add_row("  offline: correlations, sent", "", sent)
        table.caption = (
            f"Correlations: made ahead by {SOURCES[outcome.source].title} between the parties."
        )
    table.add_row("rounds" + online, "", str(outcome.rounds))
    return table


def _sent(by_party: list[int]) -> tuple[str, str]:
    """Returns who sent, and the megabytes: of each party, or of many parties the least and the
    greatest."""
    if len(by_party) <= MOST_SHOWN:
        return (
            "party " + " / ".join(str(party) for party in range(len(by_party))),
            " / ".join(f"{sent / 1e6:.1f}" for sent in by_party),
        )
    return (
        f"each of {len(by_party)} parties",
        f"{min(by_party) / 1e6:.1f} to {max(by_party) / 1e6:.1f}",
    )
