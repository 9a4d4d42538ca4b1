"""Fused operators of ONNX's runtime, compared with what they are made of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import helper
from onnx_made import load, model
from torch.nn import functional

DOMAIN = "com.microsoft"
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(2, 4)).astype(np.float32)
HELD = {
    "bias": DRAW.normal(size=4).astype(np.float32),
    "scale": DRAW.normal(size=4).astype(np.float32),
    "square": DRAW.normal(size=(4, 4)).astype(np.float32),
    "skip": DRAW.normal(size=(2, 4)).astype(np.float32),
}
x, (bias, scale, square, skip) = torch.from_numpy(X), map(torch.from_numpy, HELD.values())


def layer_norm(total: torch.Tensor) -> torch.Tensor:
    centred = total - total.mean(1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(1, keepdim=True) + 1e-12) * scale


CASES: list[tuple[str, list[str], dict[str, Any], Callable[[], torch.Tensor]]] = [
    ("Gelu", [], {}, lambda: functional.gelu(x)),
    ("BiasGelu", ["bias"], {}, lambda: functional.gelu(x + bias)),
    ("FastGelu", ["bias"], {}, lambda: functional.gelu(x + bias, approximate="tanh")),
    ("QuickGelu", [], {"alpha": 1.5}, lambda: x * torch.sigmoid(1.5 * x)),
    ("FusedMatMul", ["square"], {"transB": 1, "alpha": 0.5}, lambda: 0.5 * (x @ square.t())),
    (
        "FusedGemm",
        ["square", "bias"],
        {"activation": "LeakyRelu", "activation_alpha": 0.25},
        lambda: functional.leaky_relu(x @ square + bias, 0.25),
    ),
    ("SkipLayerNormalization", ["skip", "scale"], {}, lambda: layer_norm(x + skip)),
    (
        "SkipSimplifiedLayerNormalization",
        ["skip", "scale"],
        {},
        lambda: (x + skip) * torch.rsqrt((x + skip).square().mean(1, keepdim=True) + 1e-12) * scale,
    ),
]


@pytest.mark.parametrize(("kind", "operands", "attributes", "wanted"), CASES)
def test_fused(
    kind: str,
    operands: list[str],
    attributes: dict[str, Any],
    wanted: Callable[[], torch.Tensor],
    tmp_path: Path,
) -> None:
    node = helper.make_node(kind, ["x", *operands], ["y"], domain=DOMAIN, **attributes)
    held = {name: HELD[name] for name in operands}
    own = [helper.make_opsetid(DOMAIN, 1)]
    made = model([node], {"x": [2, 4]}, ["y"], held, opset_imports=own)
    torch.testing.assert_close(load(made, tmp_path).module(x), wanted(), rtol=1e-5, atol=1e-5)


def test_the_sum_before_a_normalisation(tmp_path: Path) -> None:
    results = ["y", "", "", "sum"]
    node = helper.make_node(
        "SkipLayerNormalization", ["x", "skip", "scale"], results, domain=DOMAIN
    )
    own = [helper.make_opsetid(DOMAIN, 1)]
    held = {name: HELD[name] for name in ("skip", "scale")}
    made = model([node], {"x": [2, 4]}, ["y", "sum"], held, opset_imports=own)
    found, total = load(made, tmp_path).module(x)
    torch.testing.assert_close(found, layer_norm(x + skip))
    torch.testing.assert_close(total, x + skip)


def test_fused_convolution(tmp_path: Path) -> None:
    node = helper.make_node(
        "FusedConv", ["x", "w"], ["y"], domain=DOMAIN, activation="Relu", kernel_shape=[3, 3]
    )
    weight = DRAW.normal(size=(2, 1, 3, 3)).astype(np.float32)
    own = [helper.make_opsetid(DOMAIN, 1)]
    made = model([node], {"x": [1, 1, 5, 5]}, ["y"], {"w": weight}, opset_imports=own)
    image = torch.from_numpy(DRAW.normal(size=(1, 1, 5, 5)).astype(np.float32))
    wanted = torch.relu(functional.conv2d(image, torch.from_numpy(weight)))
    torch.testing.assert_close(load(made, tmp_path).module(image), wanted)
