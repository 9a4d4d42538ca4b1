"""Devices: what parties evaluate products on, by name, and what they say about it."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import tacit
from tacit import cli
from tacit.commands.device import described
from tacit.errors import MisuseError, SetupError
from tacit.providers import DEVICES

ROOT = Path(__file__).resolve().parent.parent


def trained(steps: int) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Trains a small network, and returns its weights and what the device has done."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 6 * 6, 5),
    )
    tacit.share_module(model, owner=0, trainable=True)
    images = tacit.share(torch.linspace(-1, 1, 8 * 36).reshape(8, 1, 6, 6), owner=1)
    targets = tacit.share(torch.linspace(0, 1, 40).reshape(8, 5), owner=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(images), targets).backward()
        optimizer.step()
    return [parameter.reveal() for parameter in model.parameters()], tacit.session().device


def test_each_party_chooses_its_device() -> None:
    devices = ["simulated", "cpu", "simulated"]
    mixed = tacit.launch(trained, 2, device=devices)
    alone = tacit.launch(trained, 2)
    for (weights, device), (expected, own), kind in zip(mixed, alone, devices, strict=True):
        assert device["kind"] == kind
        assert device["products"] == own["products"] >= 10
        assert (device["bytes_copied"] > 0) == (kind == "simulated")
        assert own["kind"] == "cpu"
        assert own["bytes_copied"] == 0
        for found, like in zip(weights, expected, strict=True):
            # Truncations round at random.
            assert torch.allclose(found, like, atol=1e-3)


def weights_stay(times: int) -> list[int]:
    """Multiplies by the same shared weights again and again; returns what each copied."""
    layer = torch.nn.Linear(64, 64, bias=False)
    tacit.share_module(layer, owner=0)
    x = tacit.share(torch.ones(1, 64), owner=1)
    copied = [0]
    for _ in range(times):
        layer(x)
        copied.append(tacit.session().device["bytes_copied"])
    return [after - before for before, after in pairwise(copied)]


def test_weights_are_copied_once() -> None:
    words = 64 * 64 * 8
    for first, *others in tacit.launch(weights_stay, 4, device="simulated"):
        assert first >= 2 * words
        assert max(others) < words / 4
        assert len(others) == 3


def test_processes_have_devices_too() -> None:
    results = tacit.launch(trained, 1, transport="tcp", device=["cpu", "simulated", "cpu"])
    assert [device["kind"] for _, device in results] == ["cpu", "simulated", "cpu"]


def product() -> int:
    """Multiplies matrices, whose masks a dealer multiplies too."""
    x = tacit.share(torch.ones(20, 20), owner=0)
    assert torch.equal((x @ x).reveal(), torch.full((20, 20), 20.0))
    return tacit.session().device["products"]


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_a_dealer_has_the_device_that_is_asked_for(transport: str) -> None:
    """A device that a dealer lacks ends the session, so it is not another one."""
    dealt = {"protocol": "additive", "parties": 2, "source": "dealer", "transport": transport}
    for device in ("simulated", ["cpu", "cpu", "simulated"], ["simulated", "cpu"]):
        assert min(tacit.launch(product, device=device, **dealt)) > 0
    with pytest.raises(MisuseError, match="device: 4 names for 2 parties"):
        tacit.launch(product, device=["cpu"] * 4, **dealt)
    if not has_card():
        with pytest.raises(SetupError, match='choose device "cpu"'):
            tacit.launch(product, device=["cpu", "cpu", "cuda"], **dealt)


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_wrong_names_are_refused(transport: str) -> None:
    with pytest.raises(MisuseError, match='unknown device \'gpu\'; known are "cpu", "cuda" or'):
        tacit.launch(trained, 1, transport=transport, device="gpu")
    with pytest.raises(MisuseError, match="device: 2 names for 3 parties: give one name for all"):
        tacit.launch(trained, 1, transport=transport, device=["cpu", "cpu"])


def test_the_threat_model_says_whom_a_card_trusts() -> None:
    def program() -> str:
        return tacit.session().threat_model

    models = tacit.launch(program, device=["cpu", "simulated", "cpu"])
    assert all("card" not in model for model in models)


def has_card() -> bool:
    """Whether this machine has a card that tacit can use."""
    try:
        tacit.launch(lambda: None, parties=2, protocol="plain", device="cuda")
    except SetupError:
        return False
    return True


def test_a_machine_without_a_card_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    if has_card():
        pytest.skip("this machine has a card")
    with pytest.raises(SetupError, match='choose device "cpu"'):
        tacit.launch(trained, 1, device="cuda")
    assert cli.main(["device"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("This machine has no card that tacit can use: setup: ")


def test_a_card_is_described() -> None:
    found = {
        "card": "NVIDIA H100",
        "capability": [9, 0],
        "driver": [13, 0],
        "compiler": [13, 2],
        "memory_free": 70 << 30,
        "memory_total": 80 << 30,
        "wrong": None,
        "rates": [(4096, 1.25e13, 2.5e10)],
    }
    assert described(found) == [
        "card: NVIDIA H100, compute capability 9.0",
        "driver: supports CUDA 13.0; NVRTC 13.2",
        "memory: 70.0 of 80.0 GiB free",
        "self-test: its products are the processor's",
        "products 4096 x 4096 x 4096: 12.50 * 10^12 multiply-adds a second, 25.0 GB/s copied",
    ]
    product = "the convolution of 2 × 64×6×5 by 28×32×3×3"
    assert described({**found, "wrong": product})[3] == f"self-test: WRONG: {product}"


def test_a_card_whose_products_are_wrong_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        "card": "NVIDIA H100",
        "capability": [9, 0],
        "driver": [13, 0],
        "compiler": [13, 2],
        "memory_free": 70 << 30,
        "memory_total": 80 << 30,
        "wrong": None,
        "rates": [],
    }
    monkeypatch.setattr("tacit._core.probe_card", lambda: found)
    assert cli.main(["device"]) == 0
    monkeypatch.setattr("tacit._core.probe_card", lambda: {**found, "wrong": "a product"})
    assert cli.main(["device"]) == 1
    printed = capsys.readouterr()
    assert "self-test: WRONG: a product" in printed.out
    assert "the card's products are not the processor's" in printed.err


def test_the_demo_reports_devices(tmp_path: Path) -> None:
    out = tmp_path / "demo.json"
    assert cli.main(["demo", "--samples", "16", "--device", "simulated", "--json", str(out)]) == 0
    devices = json.loads(out.read_text())["device"]
    assert [device["kind"] for device in devices] == ["simulated"] * 3
    assert all(device["products"] > 0 and device["bytes_copied"] > 0 for device in devices)


def test_the_page_lists_all_devices() -> None:
    page = (ROOT / "docs/devices.md").read_text()
    assert [name for name in DEVICES if f'| `"{name}"` |' not in page] == []
