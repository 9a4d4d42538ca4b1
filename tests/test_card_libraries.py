"""Where the libraries of a card are looked for."""

import sys
from pathlib import Path

import pytest

from tacit.libraries import folders


def installed(place: Path) -> Path:
    """Makes a place where wheels are installed, with PyTorch's and two of NVIDIA's."""
    for folder in ("torch/lib", "nvidia/cu13/lib", "nvidia/nccl/lib", "nvidia/empty"):
        (place / folder).mkdir(parents=True)
    (place / "torch/__init__.py").touch()
    return place


def test_libraries_are_those_beside_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with the name of NVIDIA's wheels, where a program runs, comes from anybody."""
    place, here = installed(tmp_path / "wheels"), tmp_path / "here"
    (here / "nvidia/cu13/lib").mkdir(parents=True)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "path", [str(here), str(place)])
    expected = ["nvidia/cu13/lib", "nvidia/nccl/lib", "torch/lib"]
    assert folders() == [place / folder for folder in expected]
