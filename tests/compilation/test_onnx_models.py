"""Models that PyTorch exports to ONNX give the same numbers after import."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_made
import pytest
import torch
import transformers
from onnx import helper
from torch import nn
from torchvision import models

import tacit
from tacit.compilation.execute import share_weights
from tacit.compilation.importers import onnx as importer
from tacit.compilation.importers.imported import Imported
from tacit.compilation.inspect import inspect
from tacit.errors import MisuseError


def read(module: nn.Module, inputs: tuple[Any, ...], folder: Path, opset: int = 20) -> Imported:
    """Exports the module to a file and imports it."""
    path = folder / "model.onnx"
    torch.onnx.export(
        module.eval(),
        inputs,
        str(path),
        dynamo=True,
        opset_version=opset,
        verbose=False,
        external_data=False,
    )
    return importer.load(path)


def same(module: nn.Module, inputs: tuple[Any, ...], folder: Path, opset: int = 20) -> Imported:
    """Checks the imported module against the original, both directly and as traced by
    `torch.export`."""
    imported = read(module, inputs, folder, opset)
    with torch.no_grad():
        wanted = module(*inputs)
        wanted = wanted if isinstance(wanted, torch.Tensor) else next(iter(wanted.values()))
        found = imported.module(*inputs)
        scale = float(wanted.abs().max())
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * scale)
        traced = torch.export.export(imported.module, inputs).module()(*inputs)
    torch.testing.assert_close(traced, found, rtol=0, atol=0)
    print(f"{type(module).__name__}: {float((found - wanted).abs().max() / scale):.1e}")
    assert [tuple(each.shape) for each in inputs] == [shape for _, _, shape in imported.inputs]
    return imported


def lenet() -> nn.Module:
    """LeCun's network, with max pooling."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [18, 23])
def test_lenet(opset: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = lenet()
    imported = same(model, (torch.randn(2, 1, 28, 28),), tmp_path, opset)
    held = {tuple(each.shape) for each in imported.module.parameters()}
    assert {tuple(each.shape) for each in model.parameters()} == held
    assert not list(imported.module.buffers())
    assert "0_weight" in {name.lstrip("_") for name, _ in imported.module.named_parameters()}


class Numbers(nn.Module):
    """A model with constants of a formula, learned scalars, and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(2.6))
        self.linear, self.slope = nn.Linear(4, 4), nn.PReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.gelu(self.linear(x) * 0.37 + 1.5) * self.temperature
        return torch.softmax(self.slope(y) + torch.full((4, 4), -torch.inf).triu(1), -1) / 3.3


def test_what_is_public(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Numbers(), torch.randn(4, 4)
    imported = same(model, (x,), tmp_path)
    assert "temperature" in imported.public
    assert sorted(each.numel() for each in imported.module.parameters()) == [1, 4, 16]
    # The mask must not be a weight for the tracer either.
    assert not list(imported.module.buffers())
    constants = torch.export.export(imported.module, (x,)).constants
    assert [tuple(each.shape) for each in constants.values()] == [(4, 4)]
    kept = importer.load(tmp_path / "model.onnx", secret=["temperature"])
    assert "temperature" not in kept.public
    assert torch.equal(kept.module.temperature, model.temperature)
    torch.testing.assert_close(kept.module(x), model(x))
    operators = [str(node.target) for node in torch.export.export(kept.module, (x,)).graph.nodes]
    # Operators that PyTorch has as a whole are not decomposed.
    assert [name.split(".")[1] for name in operators if name.startswith("aten")] == [
        "linear", "mul", "add", "gelu", "mul", "reshape", "prelu", "add", "softmax", "div",
    ]  # fmt: skip


def test_numbers_are_kept_secret_by_name(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Numbers(), torch.randn(4, 4)
    same(model, (x,), tmp_path)
    told: list[str] = []
    for secret in ([], ["temperature"]):
        program, weights = tacit.compile(
            tmp_path / "model.onnx", secret=secret, progress=told.append
        )
        # The number is in its owner's weights only, or in the program that all parties have.
        numbers = [float(each) for each in weights.values.values() if each.numel() == 1]
        assert (pytest.approx(2.6) in numbers) == bool(secret)
        assert (str(model.temperature.item()) in program.text.decode()) != bool(secret)
        shown = next(
            line for line in told if line.startswith("numbers of the file that become public")
        )
        assert ("temperature" in shown) != bool(secret)
        told.clear()
    with pytest.raises(
        MisuseError, match=r"no number named 'heat' that could be secret; .*temperature"
    ):
        tacit.compile(tmp_path / "model.onnx", secret=["heat"])
    with pytest.raises(MisuseError, match="the parameters of a module are secret anyway"):
        tacit.compile(model, x, secret=["temperature"])


def test_bert_layer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    settings = transformers.BertConfig(
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        num_hidden_layers=1,
        vocab_size=50,
    )
    model = transformers.BertModel(settings, add_pooling_layer=True).eval()

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=ids).pooler_output

    same(Plain(), (torch.randint(0, 50, (2, 7)),), tmp_path)


class Mixed(nn.Module):
    """Layers that are less common in models."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1, output_padding=1, groups=1)
        self.norm, self.instance = nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True)
        self.memory = nn.LSTM(8, 5, bidirectional=True, batch_first=True)
        self.gated = nn.GRU(10, 6, num_layers=2)
        self.final = nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardswish(self.instance(self.norm(self.up(x))))
        x = nn.functional.pad(x, (1, 2, 1, 0), mode="reflect")
        x = nn.functional.interpolate(x, size=(7, 9), mode="bilinear")
        x = nn.functional.avg_pool2d(
            x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False
        )
        x, _ = self.memory(x.flatten(2).transpose(1, 2))
        x, _ = self.gated(x.transpose(0, 1))
        return self.final(x).amax(0) - x.mean(0)


def test_less_usual_layers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    imported = same(Mixed(), (torch.randn(2, 3, 5, 6),), tmp_path)
    # Biases that are still zero are ordinary weights.
    held = {name: tuple(each.shape) for name, each in imported.module.named_parameters()}
    assert held["instance_bias"] == (8,)
    assert held["final_bias"] == (6,)


def torchvision_model(name: str) -> nn.Module:
    """A torchvision model with non-trivial statistics."""
    model = models.get_model(name, weights=None, num_classes=10)
    for each in model.modules():
        if isinstance(each, nn.BatchNorm2d):
            nn.init.uniform_(each.running_mean, -0.2, 0.2)
            nn.init.uniform_(each.running_var, 0.5, 1.5)
    return model.eval()


@pytest.mark.long
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "squeezenet1_1", "densenet121"])
def test_torchvision(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    same(torchvision_model(name), (torch.randn(1, 3, 64, 64),), tmp_path)


def bert() -> nn.Module:
    """Two BERT layers that take embeddings as input."""
    settings = transformers.BertConfig(
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        num_hidden_layers=2,
        vocab_size=50,
    )
    model = transformers.BertModel(settings, add_pooling_layer=True)

    class Given(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.model(inputs_embeds=x).pooler_output

    return Given()


def network(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Returns one of the models that are compiled from both formats, and an input."""
    torch.manual_seed(0)
    if name == "lenet":
        return lenet(), torch.randn(1, 1, 28, 28)
    if name == "bert":
        return bert(), torch.randn(1, 7, 32)
    return torchvision_model(name), torch.randn(1, 3, 64, 64)


@pytest.mark.parametrize(
    "name",
    [
        "lenet",
        pytest.param("bert", marks=pytest.mark.long),
        pytest.param("squeezenet1_1", marks=pytest.mark.long),
        pytest.param("resnet18", marks=pytest.mark.long),
        pytest.param("mobilenet_v2", marks=pytest.mark.long),
        pytest.param("densenet121", marks=pytest.mark.long),
    ],
)
def test_programs_are_alike_by_export_and_by_onnx(name: str, tmp_path: Path) -> None:
    """Both formats need equal rounds, about equal bytes, and are equally precise."""
    model, x = network(name)
    read(model, (x,), tmp_path)
    # The usual scale is used. A scale chosen on few inputs preserves classes, not numbers.
    exported, imported = tacit.compile(model, x), tacit.compile(tmp_path / "model.onnx", x)

    def run() -> list[tuple[torch.Tensor, int, int]]:
        found = []
        for program, weights in (exported, imported):
            owns = tacit.session().party == 0
            bound = share_weights(program, weights.values if owns else None, 0)
            before = tacit.session().meter.total
            result = bound(bound.given(x, owner=1)).reveal()
            spent = tacit.session().meter.total - before
            found.append((result, spent.frames, spent.payload_bytes))
        return found

    (one, frames, sent), (other, same_frames, same_sent) = tacit.launch(run)[0]
    with torch.no_grad():
        plain = model(x)
    assert same_frames == pytest.approx(frames, rel=0.02)
    assert same_sent == pytest.approx(sent, rel=0.05)
    close = 0.02 * float(plain.abs().max())
    torch.testing.assert_close(one, plain, rtol=0, atol=close)
    torch.testing.assert_close(other, plain, rtol=0, atol=close)


def test_steps_have_the_names_of_the_files_nodes(tmp_path: Path) -> None:
    # Names may be missing, duplicated, those of attributes, or any text.
    names = [
        "/block/Relu",
        "",
        "twice",
        "twice",
        "forward",
        "a.b",
        "\x1b[2J\n",
        "x" * 100_000,
        "ö/ü",
    ]
    nodes = [
        helper.make_node("Relu" if at % 2 else "Neg", [f"v{at}"], [f"v{at + 1}"], name=name)
        for at, name in enumerate(names)
    ]
    last = f"v{len(names)}"
    onnx.save(onnx_made.model(nodes, {"v0": [2, 3]}, [last]), tmp_path / "odd.onnx")
    x = torch.randn(2, 3)
    program, _ = tacit.compile(tmp_path / "odd.onnx", x)
    told = [step.layer for step in inspect(program, []).steps]
    assert told[:3] == ["/block/Relu", "v2", "twice"]
    assert "a.b" in told
    assert "ö/ü" in told
    assert all(layer.isprintable() and 0 < len(layer) <= 210 for layer in told), told
    assert len(set(told)) == len(names)
    lines = str(inspect(program, [])).splitlines()
    assert all(0 <= len(line) <= 100 for line in lines), lines
    assert "".join(map(str.strip, lines)).count("x" * 200) == 1
    assert any(line.startswith("relu ") and line.endswith("  v2") for line in lines), lines
    # Each step is followed by why it is right.
    at = next(at for at, line in enumerate(lines) if line.endswith("  v2"))
    assert lines[at + 1] == "    64 bits hold every number in range"


@pytest.mark.parametrize(
    "name", ["class", "lambda", "None", "self", "forward", "__class__", "1", "w\n", "ä"]
)
def test_names_that_python_keeps_for_itself_are_names(name: str, tmp_path: Path) -> None:
    # The traced module is written as Python source.
    nodes = [
        helper.make_node("Mul", ["x", name], ["import"], name=name),
        helper.make_node("Add", ["import", "x"], ["y"], name="import"),
    ]
    held = {name: np.array([[2, 3]], np.float32)}
    onnx.save(onnx_made.model(nodes, {"x": [1, 2]}, ["y"], held), tmp_path / "odd.onnx")
    program, weights = tacit.compile(tmp_path / "odd.onnx", torch.zeros(1, 2))
    (factor,) = weights.values.values()
    assert factor.flatten().tolist() == [2.0, 3.0]
    assert [step.layer for step in inspect(program, []).steps][-1] == "import"
