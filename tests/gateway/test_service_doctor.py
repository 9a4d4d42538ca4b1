"""``tacit doctor`` on a service's file: it asks whether the parties are ready."""

from pathlib import Path
from typing import Any

import pytest

from ports import free_ports
from tacit import cli
from tacit.serving.config import text_of
from tacit.serving.observed import Observed
from tacit.serving.status import NOT_READY, StatusPages


def written(folder: Path, status: list[str | None]) -> Path:
    """Writes a service of three parties, with certificates."""
    made = ["federated", "certificates", "--servers", "3", "--clients", "1", "--out", str(folder)]
    assert cli.main(made) == 0
    parties = [
        {
            "address": f"127.0.0.1:{7400 + number}",
            "clients": f"127.0.0.1:{7500 + number}",
            "certificate": f"server-{number}.pem",
            **({} if page is None else {"status": page}),
        }
        for number, page in enumerate(status)
    ]
    model = {
        "name": "lenet",
        "program": "model.py:lenet",
        "owner": 0,
        "shape": [1, 3],
    }
    client = {"name": "app", "certificate": "client-0.pem"}
    path = folder / "service.toml"
    path.write_text(text_of("digits", parties, [client], [model]))
    return path


def doctor(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Returns the exit status of the command, and its output without the versions."""
    capsys.readouterr()
    code: Any = 0
    try:
        cli.main(["doctor", *map(str, words)])
    except SystemExit as end:
        code = end.code
    return code, capsys.readouterr().out


def test_readiness_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    observed = Observed()
    (nobody,) = free_ports(1)
    with StatusPages(observed, "127.0.0.1", 0) as pages:
        # Party 0 shows its page on all addresses: it is asked at its own address.
        path = written(tmp_path, [f"0.0.0.0:{pages.address[1]}", f"127.0.0.1:{nobody}", None])
        code, out = doctor(capsys, "--config", path)
        assert code == 1
        assert f"ok    {path}: 3 parties, replicated: lenet 1\n" in out
        assert "ok    certificates: all 4 can be read\n" in out
        assert f"WRONG party 0: {NOT_READY}; start it, and read its log\n" in out
        assert f"WRONG party 1: no answer from http://127.0.0.1:{nobody}/readyz: " in out
        assert "ok    party 2: not asked: the file names no status page for it\n" in out
        observed.set("is_ready", 1)
        code, out = doctor(capsys, "--config", path, "--party", 0)
        assert code == 0
        assert "ok    key: " in out
        assert "ok    party 0: ready\n" in out
        assert "party 1" not in out


def test_what_is_wrong_with_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [None] * 3)
    (tmp_path / "server-1.key").chmod(0o644)
    code, out = doctor(capsys, "--config", path, "--party", 1)
    assert code == 1
    assert "can be read by other users" in out
    (tmp_path / "client-0.pem").unlink()
    code, out = doctor(capsys, "--config", path)
    assert code == 1
    assert "WRONG certificates: cannot read" in out
    path.write_text(path.read_text().replace("owner = 0", "owner = 9"))
    code, out = doctor(capsys, "--config", path)
    assert code == 1
    assert "owner" in out
