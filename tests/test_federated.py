"""``tacit federated``: the demonstration, and mistakes in its options."""

import json
from pathlib import Path

import pytest

from commands import tacit

#: Keys that the demonstration's JSON must have.
KEYS = {
    "clients",
    "rounds",
    "accuracy_plain",
    "accuracy_secret",
    "seconds_per_round",
    "bytes_up_per_client",
    "bytes_sent_per_server",
    "epsilon",
}


def test_the_demonstration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The noise is so small that the result shows whether clients, servers and reference start and
    # continue alike.
    options = (
        "--clients",
        5,
        "--rounds",
        2,
        "--json",
        "demo.json",
        "--noise",
        0.001,
        "--delta",
        1e-4,
    )
    done = tacit("federated", "demo", *options)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(Path("demo.json").read_text())
    assert outcome.keys() >= KEYS
    assert (outcome["clients"], outcome["rounds"], len(outcome["table"])) == (5, 2, 2)
    # The noise differs in each run. On its own it moved up to 3 of the 540 test images in nine
    # runs.
    assert abs(outcome["accuracy_secret"] - outcome["accuracy_plain"]) <= 6.5 / 540
    assert outcome["accuracy_secret"] > 0.15
    # Each client sends 4,810 parameters and a weight of 8 bytes each, once, plus the overhead of
    # TLS.
    assert 8 * 4811 < outcome["bytes_up_per_client"] < 8 * 4811 + 4096
    assert outcome["bytes_sent_per_server"] > 5 * 8 * 4811
    for row in outcome["table"]:
        assert (row["accepted"], row["late"], row["refused"]) == (5, 0, {})
        assert row["seconds"] > 0
        assert row["bytes_up"] / 5 <= 8 * 4811 + 2 * 4096
        assert row["bytes_down"] > 5 * 2 * 4 * 4810
    assert outcome["epsilon"]["to_server"] > outcome["epsilon"]["to_others"] > 0
    assert "report.html" in done.stdout
    assert "accepted" in done.stdout
    assert "MB up" in done.stdout
    page = Path("federated-demo/report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert Path("federated-demo/accuracy.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        # This is refused before slow imports.
        (100_000, "a federation has at most 4096 clients, not 100000"),
        (4000, "4000 clients for 1257 examples: each has one at least, so have 1 to 1257 clients"),
    ],
)
def test_more_clients_than_can_be(
    clients: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tacit("federated", "demo", "--clients", clients)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    # No output claims that a server starts.
    assert done.stdout == ""
    assert Path("federated-demo").exists() == (clients < 4096)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attack", "nothing:1"), "'nothing:1' is no attack"),
        (
            ("--attack", "fang:0.4"),
            "--attack fang:0.4: that part of 2 clients is nobody; from 1/2 on",
        ),
        (("--delta", "1e-6"), "--delta goes with --noise"),
        (("--aggregator", "average"), "no aggregator is called 'average'"),
        (
            ("--aggregator", "median", "--noise", "1"),
            "by how much one client changes its result is not proven",
        ),
        (("--aggregator", "mine.py:combine"), "there is no file"),
        (
            ("--trimmed", "0.3"),
            "trimmed = 0.3: fedavg takes no trimmed, trimmed-mean does; leave it out",
        ),
        (
            ("--aggregator", "multi-krum", "--chosen", "3"),
            "chosen = 3, and 2 clients hand in vectors that count: take 2 at most",
        ),
    ],
)
def test_the_demonstrations_mistakes(options: tuple[str, ...], message: str) -> None:
    done = tacit("federated", "demo", "--clients", 2, "--rounds", 1, *options)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())


def test_an_experiments_mistakes() -> None:
    with pytest.raises(SystemExit):
        tacit("federated", "experiment", "accuracy")
    with pytest.raises(SystemExit):
        tacit("federated", "experiment", "speed", "--out", "report")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("cost", "--rounds", "3"), "--rounds is not for cost"),
        (("privacy", "--data", "."), "--data is not for privacy"),
        (("accuracy", "--device", "cuda"), "--device goes with --data"),
        (("accuracy", "--trimmed", "0.3"), "--trimmed is not for accuracy"),
        (
            ("attacks", "--attackers", "0.5"),
            "attackers = 0.5: it is a part of the clients, from 0 to less",
        ),
        (("attacks", "--chosen", "17"), "chosen = 17, and 16 clients hand in vectors that count"),
        (
            ("accuracy", "--data", "nowhere"),
            "there are no data in nowhere: it holds one of cifar-10-batches-py",
        ),
    ],
)
def test_an_experiments_options(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = tacit("federated", "experiment", *options, "--out", tmp_path / "report")
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "report").exists()


def test_a_demonstration_with_attackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of four clients flips its labels. A fifth one is trusted, and is not counted as a
    client."""
    monkeypatch.chdir(tmp_path)
    options = (
        "--clients",
        4,
        "--rounds",
        1,
        "--aggregator",
        "fltrust",
        "--attack",
        "label-flip:0.25",
    )
    done = tacit("federated", "demo", *options, "--json", "demo.json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(Path("demo.json").read_text())
    assert outcome.keys() >= KEYS
    assert (outcome["aggregator"], outcome["attack"]) == ("fltrust", "label-flip:0.25")
    assert (outcome["clients"], outcome["rounds"], outcome["epsilon"]) == (4, 1, None)
    (row,) = outcome["table"]
    assert (row["accepted"], row["late"], row["refused"]) == (4, 0, {})
    assert abs(outcome["accuracy_secret"] - outcome["accuracy_plain"]) <= 2.5 / 540
    assert "fltrust" in Path("federated-demo/report.html").read_text()
