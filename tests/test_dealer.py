"""A dealer and two parties as processes that start one by one, as on separate machines."""

import os
import re
import signal
import stat
import time
from pathlib import Path

import pytest

from commands import Command, tacit
from ports import free_ports

PRODUCT = """
import tacit, torch
x = tacit.share(torch.tensor([1.5, -2.0]) if tacit.session().party == 1 else None, owner=1)
print((x * x).relu().reveal(to=1))
"""

#: A program that runs until another process ends it, and that reports when it has begun.
ENDLESS = """
import sys, tacit, torch
x = tacit.share(torch.ones(20_000), owner=0)
for step in range(1_000_000):
    (x * x).relu().reveal()
    if step == 3:
        print("begun", flush=True)
"""


def configured(folder: Path, timeout: int = 60) -> Path:
    """Configures two parties and a dealer, with fresh certificates and free ports."""
    made = tacit("certificates", "--parties", 2, "--dealer", "--out", folder)
    assert made.returncode == 0, made.stderr
    assert "dealer.pem" in made.stdout
    parts = [f'protocol = "additive"\nsource = "dealer"\ntimeout = {timeout}\n']
    for title, name, port in zip(
        ("[[party]]", "[[party]]", "[dealer]"),
        ("party-0", "party-1", "dealer"),
        free_ports(3),
        strict=True,
    ):
        parts.append(f'{title}\naddress = "127.0.0.1:{port}"\ncertificate = "{name}.pem"\n')
    (folder / "parties.toml").write_text("\n".join(parts))
    return folder / "parties.toml"


def dealer(config: Path) -> Command:
    """Starts the dealer."""
    return Command("dealer", "--config", config, "--threads", 1)


def parties(config: Path, text: str) -> list[Command]:
    """Starts both parties."""
    program = config.parent / "program.py"
    program.write_text(text)
    return [Command("run", "--config", config, "--party", party, program) for party in range(2)]


def test_a_dealer_that_is_asked_to_end_does(tmp_path: Path) -> None:
    waiting = dealer(configured(tmp_path))
    try:
        waiting.warned()
        os.kill(waiting.id, signal.SIGTERM)
        code, out, err = waiting.ended(120)
    finally:
        waiting.kill()
    assert (code, out, err.splitlines()[-1]) == (143, "", "tacit: terminated")


def test_two_parties_and_a_dealer(tmp_path: Path) -> None:
    config = configured(tmp_path)
    assert stat.S_IMODE((tmp_path / "dealer.key").stat().st_mode) == 0o600
    all_members = [dealer(config), *parties(config, PRODUCT)]
    ended = [member.ended() for member in all_members]
    assert [code for code, _, _ in ended] == [0, 0, 0], [err for _, _, err in ended]
    for _, _, err in ended:
        assert "correlations from a dealer, who sees shapes and counts only" in err
        assert "2 parties" in err
    assert "tensor([2.2" in ended[2][1]
    assert "None" in ended[1][1]


def test_certificates_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "dealer.key").write_text("precious")
    done = tacit("certificates", "--parties", 2, "--dealer", "--out", tmp_path)
    assert done.returncode == 1
    assert "dealer.key: it exists, and is not overwritten; choose another directory" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["dealer.key"]
    assert (tmp_path / "dealer.key").read_text() == "precious"


def test_a_dealer_that_never_comes(tmp_path: Path) -> None:
    config = configured(tmp_path, timeout=4)
    for code, _, err in [member.ended() for member in parties(config, PRODUCT)]:
        assert code == 1
        # The party that notices first tells the other.
        cause = r'the dealer failed in step "connect": (as party \d reports, )?it did not come within the timeout'
        assert re.search(cause, err)
        assert "Traceback" not in err


def test_parties_that_never_come(tmp_path: Path) -> None:
    code, _, err = dealer(configured(tmp_path, timeout=3)).ended()
    assert code == 1
    assert 'failed in step "connect": it did not come within the timeout' in err
    assert "Traceback" not in err


def test_a_dealer_that_is_killed_is_named(tmp_path: Path) -> None:
    config = configured(tmp_path)
    killed, both = dealer(config), parties(config, ENDLESS)
    for member in both:
        member.begun()
    killed.kill()
    started = time.monotonic()
    ended = [member.ended() for member in both]
    killed.ended()
    assert time.monotonic() - started < 60
    for code, _, err in ended:
        assert code != 0
        assert "the dealer failed" in err


@pytest.mark.parametrize("victim", [0, 1])
def test_a_party_that_is_killed_ends_the_dealer(tmp_path: Path, victim: int) -> None:
    config = configured(tmp_path)
    dealing, both = dealer(config), parties(config, ENDLESS)
    for member in both:
        member.begun()
    both[victim].kill()
    for member in (dealing, both[1 - victim]):
        code, _, err = member.ended()
        assert code != 0
        assert f"party {victim} failed" in err
    both[victim].ended()


def test_a_dealer_without_a_table(tmp_path: Path) -> None:
    config = configured(tmp_path)
    config.write_text(config.read_text().split("[dealer]")[0])
    code, _, err = dealer(config).ended()
    assert code == 1
    assert "the table [dealer] is missing" in err
