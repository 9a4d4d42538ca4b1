"""``tacit init service``: what it writes is a service that can be read and loaded."""

from pathlib import Path

import pytest
import torch

from tacit import cli
from tacit.commands.arrays import read
from tacit.commands.init import FILES_OF_SERVICE, MADE_FOR_SERVICE
from tacit.serving.config import Service
from tacit.serving.models import load


def test_it_writes_a_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert cli.main(["init", "service", str(folder)]) == 0
    said = capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {*FILES_OF_SERVICE, *MADE_FOR_SERVICE}
    assert "tacit serve --config service.toml --party 2" in said
    service = Service.read(folder / "service.toml")
    assert len(service.certificates_of_members()) == 3
    assert len(service.certificates_of_clients()) == 1
    loaded = load(service.models[0], 0)
    module = loaded.program()  # type: ignore[operator]
    module.load_state_dict(loaded.weights)
    x = read(folder / "x.npy")
    assert tuple(x.shape) == service.models[0].shape
    assert torch.isfinite(module(x)).all()
    # Nothing is written over, and one folder is enough.
    assert cli.main(["init", "service", str(folder)]) == 1
    assert cli.main(["init", "service", str(folder), "other"]) == 1
    assert "give one folder" in capsys.readouterr().err
