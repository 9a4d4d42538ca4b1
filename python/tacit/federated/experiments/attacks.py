"""The effect of attacks on each aggregator, by the fraction of clients that attack.

Measures accuracy, and how often a backdoor opens. Uses the references: what is learned in secret is
the same (see ``accuracy``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console

from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.experiments.both import learned_plain
from tacit.federated.experiments.journal import Journal
from tacit.federated.rounds.settings import check, check_chosen
from tacit.federated.simulation.attacks import KINDS, Attack
from tacit.federated.simulation.page import Table, write_page
from tacit.federated.simulation.plots import check_plots, lines
from tacit.federated.simulation.presets import federation

FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4)

#: The partition: uneven enough that robust aggregators are affected, but not so that they fail
#: without attack.
PARTITION = "skew:0.5"

#: The first sentences on the screen and in the report.
IN_THE_CLEAR = (
    "This runs in the clear: the same clients, rounds and aggregators on plain vectors, in one "
    "process. What servers learn in secret is the same, as `tacit federated experiment accuracy` "
    "measures."
)

#: The kind of attack that leaves a backdoor.
BACKDOOR = "backdoor"


@dataclass(frozen=True)
class Found:
    """Means over the seeds after the last round."""

    accuracy: float
    #: How often the backdoor opens, if the attack has one.
    backdoor: float | None


#: By kind of attack, aggregator and fraction.
Results = dict[tuple[str, str, float], Found]


def measured(
    console: Console,
    kinds: Sequence[str],
    names: Sequence[str],
    fractions: Sequence[float],
    rounds: int,
    seeds: int,
    journal: Journal,
    arguments: Mapping[str, float] | None = None,
) -> Results:
    """Runs all combinations. Aggregators get those of the arguments that they take.

    Without attackers all kinds are the same.
    """
    found: Results = {}
    for name in names:
        own = {
            key: value for key, value in (arguments or {}).items() if key in AGGREGATORS[name].takes
        }
        for kind in kinds:
            console.print(f"{name} against {kind} ...")
            for fraction in fractions:
                known = next((found[each] for each in found if each[1:] == (name, 0.0)), None)
                if fraction == 0 and known is not None:
                    found[kind, name, fraction] = known
                else:
                    attack = Attack(kind, fraction)
                    found[kind, name, fraction] = _mean(name, attack, rounds, seeds, journal, own)
    return found


def _mean(
    name: str,
    attack: Attack,
    rounds: int,
    seeds: int,
    journal: Journal,
    arguments: Mapping[str, float],
) -> Found:
    # Without attackers, measures how often the mark leads to the attackers' class anyway.
    attack = attack if attack.fraction else Attack(BACKDOOR, 0.0)
    tried = [
        federation(
            rounds=rounds,
            aggregator=name,
            attack=attack,
            partition=PARTITION,
            seed=seed,
            arguments=arguments,
        )
        for seed in range(seeds)
    ]
    last = [rows[-1] for rows in learned_plain(tried, journal)]
    opened = [row.backdoor for row in last if row.backdoor is not None]
    return Found(mean(row.accuracy for row in last), mean(opened) if opened else None)


def run(
    console: Console,
    path: Path,
    *,
    rounds: int = 20,
    seeds: int = 3,
    fractions: Sequence[float] = FRACTIONS,
    names: Sequence[str] = (),
    **arguments: float,
) -> Path:
    """Writes a table and a plot for each kind of attack, and a plot of how often a backdoor opens.

    Arguments are aggregators' own settings, and go to those that take them.

    Raises:
        MisuseError: an argument that no aggregator can have.
    """
    check_plots()
    names = names or list(AGGREGATORS)
    _check(arguments)
    journal = Journal.begun(path)
    console.print(IN_THE_CLEAR)
    found = measured(console, list(KINDS), names, fractions, rounds, seeds, journal, arguments)
    tables, plots = [], []
    for kind in KINDS:
        has_backdoor = kind == BACKDOOR
        rows = [
            [name, *(_cell(found[kind, name, part], has_backdoor) for part in fractions)]
            for name in names
        ]
        what = "accuracy / how often the backdoor opens" if has_backdoor else "accuracy"
        tables.append(
            Table(f"{kind}: {what}", ["aggregator", *(f"{part:.0%}" for part in fractions)], rows)
        )
        drawn = {name: [found[kind, name, part].accuracy for part in fractions] for name in names}
        plots.append(_plot(path / f"{kind}.png", kind, "% accuracy", fractions, drawn))
        if has_backdoor:
            drawn = {
                name: [found[kind, name, part].backdoor or 0.0 for part in fractions]
                for name in names
            }
            label = "% of images that the mark leads astray"
            plots.append(_plot(path / f"{kind}-opens.png", kind, label, fractions, drawn))
    given = "".join(f", {name} = {value:g}" for name, value in arguments.items())
    words = [
        IN_THE_CLEAR,
        f"Digits at 16 clients, {PARTITION}, {rounds} rounds, means over seeds ({seeds}), by the "
        f"part of the "
        "clients that attack; attackers keep to the bound on norms. Krum and trimmed means suppose "
        "that "
        + (f"no more attack than is said{given}." if given else "a quarter attacks at most."),
    ]
    return write_page(path / "report.html", "Attacks and defences", words, tables, plots)


def _check(arguments: Mapping[str, float]) -> None:
    for name, value in arguments.items():
        taker = next(each for each in AGGREGATORS if name in AGGREGATORS[each].takes)
        tried = federation(aggregator=taker, arguments={name: value})
        check(tried.settings, AGGREGATORS[taker])
        check_chosen(tried.settings, tried.clients)


def _plot(
    path: Path, title: str, label: str, fractions: Sequence[float], drawn: dict[str, list[float]]
) -> Path:
    places = [100 * part for part in fractions]
    by_name = {name: (places, [100 * each for each in heights]) for name, heights in drawn.items()}
    return lines(path, title, ("% of clients that attack", label), by_name)


def _cell(found: Found, has_backdoor: bool) -> str:
    text = f"{found.accuracy:.1%}"
    return text + (
        f" / {found.backdoor:.1%}" if has_backdoor and found.backdoor is not None else ""
    )
