"""Models that PyTorch writes as ONNX give the same numbers when they are read."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tacit.compile.importers import onnx as importer
from tacit.compile.importers.imported import Imported


def read(module: nn.Module, inputs: tuple[Any, ...], folder: Path, opset: int = 20) -> Imported:
    """Through a file."""
    path = folder / "model.onnx"
    torch.onnx.export(
        module.eval(), inputs, str(path), dynamo=True, opset_version=opset, verbose=False, external_data=False
    )
    return importer.load(path)


def same(module: nn.Module, inputs: tuple[Any, ...], folder: Path, opset: int = 20) -> Imported:
    """Holds what was read against the model: by itself, and as `torch.export` traces it."""
    imported = read(module, inputs, folder, opset)
    with torch.no_grad():
        wanted = module(*inputs)
        wanted = wanted if isinstance(wanted, torch.Tensor) else next(iter(wanted.values()))
        found = imported.module(*inputs)
        scale = float(wanted.abs().max())
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * scale)
        traced = torch.export.export(imported.module, inputs).module()(*inputs)
    torch.testing.assert_close(traced, found, rtol=0, atol=0)
    assert [tuple(each.shape) for each in inputs] == [shape for _, _, shape in imported.inputs]
    return imported


def lenet() -> nn.Module:
    """LeCun's, with maxima."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [18, 20, 23])
def test_lenet(opset: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = lenet()
    imported = same(model, (torch.randn(2, 1, 28, 28),), tmp_path, opset)
    held = {tuple(each.shape) for each in imported.module.parameters()}
    assert {tuple(each.shape) for each in model.parameters()} == held
    assert not list(imported.module.buffers())
    assert "0_weight" in {name.lstrip("_") for name, _ in imported.module.named_parameters()}
