"""``tacit run --json``: a machine-readable report of how a party's run ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Command, tacit
from ports import free_ports

ROOT = Path(__file__).resolve().parent.parent

SECRET = 8421.375

#: The keys of a report, in order.
KEYS = [
    "program",
    "party",
    "parties",
    "protocol",
    "threat_model",
    "status",
    "error",
    "seconds",
    "seconds_waiting",
    "rounds",
    "bytes_sent",
    "bytes_received",
]

#: Keys that only runs with a session have.
OF_SESSION = ["parties", "protocol", "threat_model", *KEYS[-5:]]

PROGRAM = f"""
import sys, tacit, torch
party = tacit.session().party
x = tacit.share(torch.tensor([{SECRET}]) if party == 1 else None, owner=1)
(x * 2).reveal(to=1)
"""


def configured(folder: Path, timeout: int = 60) -> Path:
    """Sets up the repository's example with its own certificates and free ports."""
    assert tacit("certificates", "--parties", 3, "--out", folder / "certificates").returncode == 0
    text = (ROOT / "examples" / "parties.toml").read_text()
    for party, port in enumerate(free_ports(3)):
        text = text.replace(f"127.0.0.1:740{party}", f"127.0.0.1:{port}")
    (folder / "parties.toml").write_text(text.replace("timeout = 60", f"timeout = {timeout}"))
    return folder / "parties.toml"


def reports(
    folder: Path, program: str, parties: tuple[int, ...] = (0, 1, 2), timeout: int = 60
) -> list[tuple[int, dict[str, Any]]]:
    """Runs the parties; returns the exit code and report of each."""
    config, path = configured(folder, timeout), folder / "program.py"
    path.write_text(program)
    started = [
        Command(
            "run", "--config", config, "--party", party, "--json", folder / f"{party}.json", path
        )
        for party in parties
    ]
    codes = [command.ended()[0] for command in started]
    texts = [(folder / f"{party}.json").read_text() for party in parties]
    assert not any("8421" in text for text in texts)
    found = [json.loads(text) for text in texts]
    for party, each in zip(parties, found, strict=True):
        assert list(each) == KEYS
        assert (each["party"], each["program"]) == (party, str(path))
    return list(zip(codes, found, strict=True))


@pytest.mark.parametrize("end", ["", "sys.exit(0)\n"])
def test_a_run_that_ended(end: str, tmp_path: Path) -> None:
    found = [report for code, report in reports(tmp_path, PROGRAM + end) if code == 0]
    assert len(found) == 3
    for report in found:
        assert (report["status"], report["error"]) == ("ended", None)
        assert (report["parties"], report["protocol"]) == (3, "replicated")
        assert "no single party learns anything" in report["threat_model"]
        assert report["rounds"] >= 2
        assert 0 <= report["seconds_waiting"] <= report["seconds"]
    # All bytes sent are received.
    assert (
        sum(each["bytes_sent"] for each in found)
        == sum(each["bytes_received"] for each in found)
        > 0
    )


def test_a_program_that_raises(tmp_path: Path) -> None:
    program = f"{PROGRAM}if party == 1:\n    raise ValueError({SECRET})\nx.reveal()\n"
    found = reports(tmp_path, program)
    assert [code for code, _ in found] == [1, 1, 1]
    for party, (_, report) in enumerate(found):
        assert report["status"] == "failed"
        assert report["error"]["name"] == ("ValueError" if party == 1 else "PeerError")
        assert "its program raised ValueError; see its own output" in report["error"]["reason"]
        assert report["bytes_sent"] > 0


def test_a_program_that_leaves_by_an_exit_code(tmp_path: Path) -> None:
    found = reports(tmp_path, f"{PROGRAM}if party == 1:\n    sys.exit(7)\nx.reveal()\n")
    assert [code for code, _ in found] == [1, 7, 1]
    assert found[1][1]["error"] == {
        "name": "SystemExit",
        "reason": "its program ended with an exit code; see its own output",
    }


def test_a_party_that_never_comes(tmp_path: Path) -> None:
    for code, report in reports(tmp_path, PROGRAM, (0, 1), timeout=3):
        assert (code, report["status"], report["error"]["name"]) == (1, "failed", "PeerError")
        assert "party 2" in report["error"]["reason"]
        assert all(report[key] is None for key in OF_SESSION)


def test_a_program_that_is_none(tmp_path: Path) -> None:
    ((code, report),) = reports(tmp_path, "def", (1,))
    assert (code, report["status"]) == (1, "failed")
    assert report["error"]["name"] == "SetupError"
    assert "is not Python" in report["error"]["reason"]


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    config, report = configured(tmp_path), tmp_path / "absent" / "report.json"
    (tmp_path / "program.py").write_text(PROGRAM)
    done = tacit("run", "--config", config, "--party", 0, "--json", report, tmp_path / "program.py")
    assert done.returncode == 1
    assert f"cannot write {report}" in done.stderr
    assert done.stderr.count("\n") == 1
