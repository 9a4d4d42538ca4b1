"""Correlations made ahead: recorded, made and used by processes as on separate machines."""

from pathlib import Path

import pytest

from commands import Command, tacit
from ports import free_addresses
from tacit.commands.correlations import to_bytes

PROGRAM = """
import sys, torch, tacit
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)).eval()
images = torch.rand(int(sys.argv[1]), 1, 8, 8)
plain = model(images)
party = tacit.session().party
tacit.share_module(model, owner=0)
secret = model(tacit.share(images if party == 1 else None, owner=1)).reveal()
assert torch.allclose(secret, plain, atol=1e-3)
print("right")
"""


def configured(folder: Path, source: str | None = None) -> Path:
    """Configures two parties with certificates, free ports and files of correlations. The source
    is named in the configuration or not."""
    made = tacit("certificates", "--parties", 2, "--out", folder)
    assert made.returncode == 0, made.stderr
    lines = ['protocol = "additive"', "timeout = 60"]
    for party, address in enumerate(free_addresses(2)):
        lines += [
            "[[party]]",
            f'address = "{address}"',
            f'certificate = "party-{party}.pem"',
            f'correlations = "party-{party}.correlations"',
        ]
    text = "\n".join(lines)
    named = f'source = "{source}"\n' if source else ""
    (folder / "parties.toml").write_text(named + text)
    (folder / "from-file.toml").write_text('source = "file"\n' + text)
    (folder / "program.py").write_text(PROGRAM)
    return folder


def both(folder: Path, *arguments: str) -> list[tuple[int, str, str]]:
    """Runs both parties; returns exit code, output and errors of each. ``{}`` in an argument
    becomes the party's number."""
    words = [[argument.replace("{}", str(party)) for argument in arguments] for party in range(2)]
    started = [Command(*each, folder=folder) for each in words]
    return [command.ended() for command in started]


def run(folder: Path, config: str, *options: str, images: int = 3) -> list[tuple[int, str, str]]:
    """Runs the program in both parties."""
    return both(
        folder, "run", "--config", config, "--party", "{}", *options, "program.py", str(images)
    )


def test_recorded_made_and_used_once(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    for code, out, err in run(folder, "parties.toml", "--record", "demand-{}.txt"):
        assert (code, out) == (0, "right\n"), err
        assert "correlations by oblivious transfer between the parties" in err
    demand = [(folder / f"demand-{party}.txt").read_text() for party in range(2)]
    assert demand[0] == demand[1]

    make = (
        "correlations",
        "make",
        "--config",
        "parties.toml",
        "--party",
        "{}",
        "--demand",
        "demand-{}.txt",
    )
    made = both(folder, *make, "--runs", "2", "--out", "party-{}.correlations")
    for code, out, err in made:
        assert code == 0, err
        assert "for 2 sessions, each to be used once" in out

    for code, out, err in run(folder, "from-file.toml"):
        assert (code, out) == (0, "right\n"), err
        assert "correlations from files made ahead" in err
    # Another batch size makes another demand. The run is used up even so.
    ended = run(folder, "from-file.toml", images=30)
    assert any("another program or other shapes" in err for _, _, err in ended)
    for code, _, err in run(folder, "from-file.toml"):
        assert code == 1
        assert "exhausted: all 2 runs are used" in err
        assert "Traceback" not in err
    # Existing files are not overwritten.
    assert all(
        code == 1
        for code, _, _ in both(folder, *make, "--runs", "1", "--out", "party-{}.correlations")
    )


def test_recorded_and_made_by_encryption(tmp_path: Path) -> None:
    folder = configured(tmp_path, "he")
    for code, out, err in run(folder, "parties.toml", "--record", "demand-{}.txt"):
        assert (code, out) == (0, "right\n"), err
        assert "correlations by oblivious transfer and homomorphic encryption (ring-LWE)" in err

    # The configuration names the source of sessions; the option names the source that makes the
    # files.
    make = ("correlations", "make", "--config", "from-file.toml", "--party", "{}", "--source", "he")
    files = ("--demand", "demand-{}.txt", "--out", "party-{}.correlations")
    for code, out, err in both(folder, *make, *files, "--runs", "1"):
        assert code == 0, err
        assert "for 1 sessions, each to be used once" in out
    for code, out, err in run(folder, "from-file.toml"):
        assert (code, out) == (0, "right\n"), err


def test_recorded_and_made_in_checked_mode(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    for code, out, err in run(folder, "parties.toml", "--checked", "--record", "demand-{}.txt"):
        assert (code, out) == (0, "right\n"), err
    make = (
        "correlations",
        "make",
        "--config",
        "parties.toml",
        "--party",
        "{}",
        "--demand",
        "demand-{}.txt",
    )
    for code, _, err in both(folder, *make, "--runs", "1", "--out", "party-{}.correlations"):
        assert code == 0, err
    for code, out, err in run(folder, "from-file.toml", "--checked"):
        assert (code, out) == (0, "right\n"), err


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ("", "line 1 of the demand"),
        ("tacit demand, version 1, ahead 4096\n9 9\n", "line 2 of the demand"),
    ],
)
def test_what_is_no_demand_is_refused(tmp_path: Path, demand: str, said: str) -> None:
    folder = configured(tmp_path)
    (folder / "demand.txt").write_bytes(to_bytes(demand))
    make = (
        "correlations",
        "make",
        "--config",
        "parties.toml",
        "--party",
        "{}",
        "--demand",
        "demand.txt",
    )
    for code, _, err in both(folder, *make, "--runs", "1", "--out", "party-{}.correlations"):
        assert code == 1
        assert said in err
        assert "Traceback" not in err


def test_a_protocol_of_other_parties_is_refused(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    text = (folder / "parties.toml").read_text()
    (folder / "parties.toml").write_text(text.replace('"additive"', '"replicated"'))
    for code, _, err in run(folder, "parties.toml", "--record", "demand-{}.txt"):
        assert code == 1
        assert "for exactly 3 parties, not 2" in err
