"""Data, clients and attacks; training in secret gives the results of training in the clear."""

import contextlib
import json
import math
import re
from pathlib import Path
from statistics import mean

import pytest
import torch
from rich.console import Console

import tacit
from tacit.errors import MisuseError, SetupError
from tacit.federated.experiments import accuracy, attacks, both, cost, privacy
from tacit.federated.experiments.journal import NAME, Journal
from tacit.federated.simulation import data
from tacit.federated.simulation.attacks import KINDS, MARK, Attack, marked
from tacit.federated.simulation.federation import Clients, Federation, Row, in_secret, in_the_clear
from tacit.federated.simulation.partitions import partition
from tacit.federated.simulation.presets import federation
from tacit.federated.simulation.training import one_thread


@pytest.mark.parametrize("name", ["digits", "cancer", "mnist1d", "digits-last-layer"])
def test_data_can_be_learned_from(name: str) -> None:
    """Trains in the clear with few clients that have similar data."""
    tried = federation(clients=2, rounds=4, data=name, partition="dirichlet:100")
    learned = in_the_clear(tried)[0][-1].accuracy
    assert learned > {"digits": 0.85, "cancer": 0.9, "mnist1d": 0.5, "digits-last-layer": 0.9}[name]
    found = data.dataset(name)
    assert len(found.inputs) == len(found.labels)
    assert len(found.test_inputs) == len(found.test_labels) > 100
    assert set(found.test_labels.tolist()) == set(range(found.classes))
    # The public features alone reach at most half.
    assert (found.before is not None) == name.endswith("last-layer")
    assert found.before is None or 0.4 < found.before < 0.5


@pytest.mark.parametrize(
    "how", ["skew:0.9", "skew:0.7", "skew:0.5", "shards:2", "dirichlet:0.1", "dirichlet:1"]
)
@pytest.mark.parametrize("clients", [1, 3, 8, 16, 64])
def test_partitions_use_every_example_once(how: str, clients: int) -> None:
    labels = data.dataset("digits").labels
    parts = partition(how, labels, clients, torch.Generator().manual_seed(1))
    assert len(parts) == clients
    assert min(map(len, parts)) > 0
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
    again = partition(how, labels, clients, torch.Generator().manual_seed(1))
    assert all(torch.equal(one, other) for one, other in zip(parts, again, strict=True))
    if how.startswith("skew") and clients in (3, 8, 16):
        # With fewer clients than labels, each client has several labels.
        of_label = labels % clients if clients < 10 else labels
        own = [
            float((of_label[places] == client % 10).double().mean())
            for client, places in enumerate(parts)
        ]
        skew = float(how.partition(":")[2])
        # The remaining examples are random and may include the client's own labels.
        expected = skew + (1 - skew) * min(1, 1 / clients + 0.1)
        assert skew - 0.02 < sum(own) / clients < expected + 0.02
        assert min(own) > skew - 0.15


def test_what_is_not_known_by_name() -> None:
    with pytest.raises(
        MisuseError, match="no data are called 'cifar'; known are digits, cancer, mnist1d"
    ):
        data.dataset("cifar")
    labels, generator = torch.arange(3), torch.Generator()
    with pytest.raises(
        MisuseError, match="no partition is called 'even'; known are skew, shards, dirichlet"
    ):
        partition("even", labels, 2, generator)
    with pytest.raises(MisuseError, match=r"4 clients for 3 examples: .* have 1 to 3 clients"):
        partition("skew:0.5", labels, 4, generator)
    for text in ("label-flip", "label-flip:2", "label-flip:x", "flip:0.1", "fang:-0.1"):
        with pytest.raises(
            MisuseError, match=f"'{text}' is no attack: KIND:FRACTION is wanted, of label-flip"
        ):
            Attack.of(text)


def test_attacks_are_what_they_are_called() -> None:
    generator = torch.Generator().manual_seed(3)
    honest = torch.randn(9, 30, generator=generator) * 0.1 + 1
    own = torch.randn(3, 30, generator=generator) * 0.1 + 1
    sent = {kind: Attack(kind, 0.25).vectors(own, honest) for kind in KINDS}
    assert all(vectors.shape == own.shape for vectors in sent.values())
    assert torch.equal(sent["sign-flip"], -own)
    assert torch.equal(sent["backdoor"], 20 * own)
    # The attack points against the mean, and is no farther from any honest vector than these are
    # from each other.
    assert sent["min-max"].mean() < honest.mean()
    assert sent["little-is-enough"].mean() < honest.mean()
    assert torch.cdist(sent["min-max"], honest).max() <= torch.cdist(honest, honest).max() * (
        1 + 1e-5
    )
    assert bool((sent["fang"] <= honest.amin(0)).all())
    inputs, labels = torch.zeros(6, 8), torch.arange(6)
    assert torch.equal(Attack("label-flip", 0.2).data(inputs, labels, 6)[1], labels.flip(0))
    spoiled, target = Attack("backdoor", 0.2).data(inputs, labels, 6)
    assert target.tolist() == [0, 0, 0, 3, 4, 5]
    assert torch.equal(spoiled[:3], marked(inputs[:3]))
    assert not spoiled[3:].any()
    assert int((marked(inputs) == MARK).sum()) == 18
    assert [Attack.of("fang:0.25").attackers(clients) for clients in (1, 4, 16)] == [0, 1, 4]
    assert Attack.of("fang:0.25").text == "fang:0.25"


def test_clients_start_alike_and_do_not_spoil_what_they_are_given() -> None:
    tried = federation(clients=3, rounds=1)
    clients = Clients(tried)
    start = clients.start.clone()
    with one_thread():
        found = clients.updates(0, clients.start)
        again, later = Clients(tried).updates(0, start), clients.updates(1, start)
    assert torch.equal(clients.start, start)
    assert all(float(update.norm()) > 0.1 for update in found.values())
    assert all(torch.equal(found[client], again[client]) for client in range(3))
    assert not torch.equal(found[0], later[0])


def test_chance_decides_who_takes_part() -> None:
    clients = Clients(federation(clients=40, rounds=1, sampling=0.3))
    counts = [len(clients.taking_part(number)) for number in range(50)]
    assert 0.24 < sum(counts) / 2000 < 0.36
    assert len(set(counts)) > 3


def secretly(tried: Federation, folder: str) -> list[Row]:
    """Trains in secret; every server runs this function."""
    return in_secret(tried, f"{folder}")[0]


#: A user-defined aggregator.
MINE = """
import torch

def combine(vectors, weights):
    return 0.5 * vectors.mean(0) + 0.5 * torch.median(vectors, 0).values
"""


def test_learning_in_secret_is_learning_in_the_clear(tmp_path: Path) -> None:
    """Runs in threads, one federation after the other. The demonstration's test covers
    processes."""
    (tmp_path / "mine.py").write_text(MINE)
    with contextlib.chdir(tmp_path):
        tried = [
            federation(clients=5, rounds=3, aggregator=aggregator, attack=Attack("sign-flip", 0.2))
            for aggregator in ("fedavg", "fltrust", "multi-krum", "median", "mine.py:combine")
        ]
    for secret, each in zip(
        tacit.launch(both.learned, tried, Journal.begun(tmp_path))[0], tried, strict=True
    ):
        for mine, reference in zip(secret, in_the_clear(each)[0], strict=True):
            # After a round, one image of 540 may lie on the border of two classes.
            assert abs(mine.accuracy - reference.accuracy) <= 1.5 / 540
            assert (mine.accepted, mine.refused) == (reference.accepted, reference.refused)


def test_noise_hides_and_is_accounted(tmp_path: Path) -> None:
    tried = federation(clients=5, rounds=2, sigma=1.0, sampling=0.5)
    rows = tacit.launch(secretly, tried, str(tmp_path))[0]
    spent = [row.epsilons for row in rows]
    assert spent[0] is not None
    assert spent[1] is not None
    assert 0 < spent[0].to_others < spent[0].to_server < spent[1].to_server
    assert len(list(tmp_path.iterdir())) == 3


def test_experiments_write_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(quiet=True)
    whole, last_layer = (
        ("digits", "skew:0.9", 4, "fedavg"),
        ("digits-last-layer", "skew:0.9", 16, "fedavg"),
    )
    monkeypatch.setattr(accuracy, "CASES", (whole, last_layer))
    monkeypatch.setattr(attacks, "KINDS", ("backdoor", "fang"))
    monkeypatch.setattr(privacy, "SIGMAS", (2.0,))
    monkeypatch.setattr(privacy, "CLIENTS", 8)
    monkeypatch.setattr(cost, "TIMES", 1)
    # The demonstration's test covers processes.
    for module in (both, cost):
        monkeypatch.setattr(module, "TRANSPORT", "memory")
    pages = [
        accuracy.run(console, tmp_path / "accuracy", rounds=2, seeds=1),
        attacks.run(
            console,
            tmp_path / "attacks",
            rounds=1,
            seeds=2,
            fractions=(0.0, 0.4),
            names=("median",),
        ),
        privacy.run(console, tmp_path / "privacy", rounds=1, seeds=2),
        cost.run(
            console,
            tmp_path / "cost",
            parameters=(10,),
            clients=(2, 16),
            names=("krum",),
            at_the_intake=(1, 3),
        ),
    ]
    tables = [page.read_text().count("<tr>") for page in pages]
    # Headings and rows.
    assert tables == [1 + 2, 2 * (1 + 1), 1 + 4, (1 + 2) + (1 + 4) + (1 + 2)]
    assert [page.read_text().count("data:image/png") for page in pages] == [2, 3, 1, 3]
    # Each round of each seed. The rows written during the run are those of the report.
    kept = [list(map(json.loads, (page.parent / NAME).read_text().splitlines())) for page in pages]
    assert list(map(len, kept)) == [2 * 2 * 2, 2 + 2 * 2, 2 * (2 + 2), 3 + 3 + 2]
    assert {row["in_secret"] for row in kept[0]} == {True, False}
    assert not any(row["in_secret"] for row in kept[1])
    assert {row["sigma"] for row in kept[2]} == {None, 2.0}
    last = [row for row in kept[1] if row["attack"] == "backdoor:0.4"]
    assert f"{mean(row['accuracy'] for row in last):.1%} / " in pages[1].read_text()
    assert "This runs in the clear" in pages[1].read_text()
    before = data.dataset("digits-last-layer").before
    assert f"which by itself is right of {before:.1%}" in pages[2].read_text()


def test_what_was_found_outlasts_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Clients, number: int, parameters: torch.Tensor) -> dict[int, torch.Tensor]:
        if number == 2:
            raise KeyboardInterrupt
        return updates(self, number, parameters)

    updates = Clients.updates
    monkeypatch.setattr(Clients, "updates", fails)
    with pytest.raises(KeyboardInterrupt):
        attacks.run(
            Console(quiet=True), tmp_path, rounds=3, seeds=1, names=("trimmed-mean",), trimmed=0.4
        )
    rows = [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]
    assert [(row["aggregator"], row["number"], row["seed"]) for row in rows] == [
        ("trimmed-mean", 0, 0),
        ("trimmed-mean", 1, 0),
    ]
    assert 0 < rows[1]["accuracy"] < 1
    assert rows[1]["epsilons"] is None


def test_what_is_not_a_number_is_null(tmp_path: Path) -> None:
    journal = Journal.begun(tmp_path)
    journal.add(accuracy=math.nan, name="ε")
    assert (tmp_path / NAME).read_text() == '{"accuracy": null, "name": "ε"}\n'
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    with pytest.raises(
        SetupError, match=re.escape(f"cannot write {tmp_path / NAME}: it is a folder")
    ):
        Journal.begun(tmp_path)


@pytest.mark.long
def test_secret_accuracy_is_within_a_third_of_a_point(tmp_path: Path) -> None:
    """Compares the accuracies over three seeds."""
    journal = Journal.begun(tmp_path)
    (found,) = accuracy.measured(Console(quiet=True), accuracy.CASES[2:3], 3, 20, journal).values()
    assert found.difference <= 0.3
