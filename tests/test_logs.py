"""Tacit's logs: their logger names and levels, and that they contain no secrets."""

import logging
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import tacit
from commands import Command
from logged import MARKS, SECRET, logged
from ports import free_ports

ROOT = Path(__file__).resolve().parent.parent

#: A log line on standard error.
LINE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?P<level>[A-Z]+) (?P<name>tacit[\w.]*): .+"


def whole_run(folder: str) -> torch.Tensor:
    """Runs a model and an input that contain the marked value through training, a checkpoint and
    a reveal."""
    model = nn.Linear(1, 1)
    if tacit.session().party == 0:
        nn.init.constant_(model.weight, SECRET)
    tacit.share_module(model, owner=0, trainable=True)
    x = tacit.share(torch.tensor([[SECRET]]) if tacit.session().party == 1 else None, owner=1)
    tacit.save_checkpoint(folder, model, step=3)
    tacit.load_checkpoint(folder, model)
    (model(x / 1024).sum() / 1024).backward()
    return x.reveal()


def test_a_whole_run_logs_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tacit")
    shown = tacit.launch(whole_run, str(tmp_path / "checkpoint"))
    assert [float(each) for each in shown] == [SECRET] * 3
    found = logged(caplog)
    assert {name for name, _ in found} == {
        "tacit.checkpoint.api",
        "tacit.module",
        "tacit.parties.launch",
        "tacit.sessions",
    }
    assert {level for _, level in found} == {"DEBUG", "INFO"}
    ends = [
        said for said in found["tacit.sessions", "INFO"] if "ended its session in order" in said
    ]
    assert sorted(said[:7] for said in ends) == ["party 0", "party 1", "party 2"]
    assert all(
        re.search(r": \d+\.\d{3} s, [1-9]\d* rounds, [1-9]\d* bytes sent", said) for said in ends
    )
    assert "party 1 saved step 3" in " ".join(found["tacit.checkpoint.api", "INFO"])
    assert found["tacit.parties.launch", "INFO"] == [
        "launching 3 parties: replicated sharing, transport memory",
        "all 3 parties ended",
    ]


def raises(where: str) -> None:
    """Raises an error that contains the marked value: the program's own, or one of tacit's that
    quotes it."""
    x = tacit.share(torch.tensor([SECRET]) if tacit.session().party == 1 else None, owner=1)
    if where == "program":
        raise ValueError(f"no {float(x.reveal())}")
    tacit.share(torch.tensor([SECRET * 1e30]) if tacit.session().party == 1 else None, owner=1)


@pytest.mark.parametrize(
    ("where", "kind"), [("program", ValueError), ("tacit", tacit.EncodingError)]
)
def test_what_fails_is_logged_by_its_kind(
    where: str, kind: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tacit")
    with pytest.raises(kind):
        tacit.launch(raises, where)
    found = logged(caplog)
    assert [said for said in found["tacit.sessions", "WARNING"] if kind.__name__ in said]
    (said,) = found["tacit.parties.launch", "WARNING"]
    assert re.fullmatch(rf"the run ended by party \d: {kind.__name__}", said)


PROGRAM = f"""
import tacit, torch
x = tacit.share(torch.tensor([{SECRET}]) if tacit.session().party == 1 else None, owner=1)
(x * 2).reveal(to=1)
if tacit.session().party == 1:
    raise ValueError("{SECRET}")
x.reveal(to=1)
"""


@pytest.mark.parametrize("level", ["", "info"])
def test_a_command_shows_its_logs_where_they_are_asked_for(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_LOG", level)
    Command("certificates", "--parties", 3, "--out", tmp_path / "certificates").ended()
    text = (ROOT / "examples" / "parties.toml").read_text()
    for party, port in enumerate(free_ports(3)):
        text = text.replace(f"127.0.0.1:740{party}", f"127.0.0.1:{port}")
    (tmp_path / "parties.toml").write_text(text)
    (tmp_path / "program.py").write_text(PROGRAM)
    started = [
        Command(
            "run", "--config", tmp_path / "parties.toml", "--party", party, tmp_path / "program.py"
        )
        for party in range(3)
    ]
    for party, (code, _, errors) in enumerate(command.ended() for command in started):
        assert code == 1
        lines = [found for line in errors.splitlines() if (found := re.fullmatch(LINE, line))]
        assert {(line["level"], line["name"]) for line in lines} == (
            {("INFO", "tacit.sessions"), ("WARNING", "tacit.sessions")} if level else set()
        )
        assert not any(mark in line[0] for mark in MARKS for line in lines)
        # Without logs, each party that did not fail prints its usual two lines.
        if not level and party != 1:
            assert len(errors.splitlines()) == 2, errors
            assert "its program raised ValueError" in errors


def test_a_level_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_LOG", "loud")
    assert Command("certificates", "--parties", 2, "--out", tmp_path / "made").ended()[::2] == (
        0,
        "tacit: TACIT_LOG is 'loud', so nothing is logged: set it to debug, info, warning or "
        "error\n",
    )


def test_nobody_hears_of_it_who_does_not_ask() -> None:
    """Without a NullHandler, Python would print warnings of the logger by itself."""
    assert any(
        isinstance(handler, logging.NullHandler) for handler in logging.getLogger("tacit").handlers
    )
