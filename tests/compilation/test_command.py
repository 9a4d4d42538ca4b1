"""Compilation from the command line, as a new user types it, with real processes."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from commands import Command, tacit
from models import Residual, normalised
from ports import free_ports

MODEL = """
import sys
sys.path.insert(0, {folder!r})
import torch
from models import Residual, normalised

def build():
    return normalised(Residual()), torch.zeros(2, 3, 8, 8)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its calibration data, and the compiled files."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "model.py").write_text(MODEL.format(folder=str(Path(__file__).parent)))
    images = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        labels = normalised(Residual())(images).argmax(1)
    np.save(folder / "images.npy", images.numpy())
    np.save(folder / "labels.npy", labels.numpy())
    np.save(folder / "x.npy", images[:2].numpy())
    ended = tacit(
        "compile", f"{folder}/model.py:build", "--calibrate", folder / "images.npy",
        "--labels", folder / "labels.npy", "-o", folder / "model.tacit",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "for their owner alone" in ended.stdout
    assert (folder / "model.weights").is_file()
    return folder


def test_a_program_is_inspected(folder: Path) -> None:
    ended = tacit("inspect", folder / "model.tacit", "--json", folder / "inspect.json")
    assert ended.returncode == 0, ended.stderr
    assert "proved by the party that compiled it: below 2^" in ended.stdout
    assert "public to all who have the file" in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 100
    found = json.loads((folder / "inspect.json").read_text())
    assert found["digest"] in ended.stdout
    name, bits = next(iter(found["weight_scales"].items()))
    assert re.search(
        rf"^weights with {bits} fraction bits: .*\b{name}\b", ended.stdout, re.MULTILINE
    )
    assert found["costs"][0]["rounds"] > 0
    assert {step["operator"] for step in found["steps"]} >= {
        "conv2d",
        "tacit.rectified_affine",
        "linear",
    }


def test_a_tolerance_is_shown_by_layer(folder: Path) -> None:
    source = f"{folder}/model.py:build"
    ended = tacit("compile", source, "--tolerance", 0.01, "-o", folder / "loose.tacit")
    assert ended.returncode == 0, ended.stderr
    assert "ReLUs drop low bits" in ended.stderr
    shown = tacit("inspect", folder / "loose.tacit").stdout
    assert re.search(
        r"rectified_affine .*without the lowest 9 bits: below 0\.0078125 it may become zero",
        " ".join(shown.split()),
    )
    refused = tacit("compile", source, "--tolerance", -1, "-o", folder / "loose.tacit")
    assert refused.returncode == 1
    assert "a tolerance is a number above 0, not -1.0" in refused.stderr


@pytest.mark.parametrize(
    ("images", "setting"),
    [
        ("x.npy", ["--protocol", "additive", "--source", "dealer"]),
        ("x.npy", ["--parties", 3]),
        ("images.npy", ["--streams", 2]),
    ],
)
def test_a_program_is_tried(folder: Path, images: str, setting: list[object]) -> None:
    ended = tacit(
        "try", folder / "model.tacit", "--weights", folder / "model.weights",
        "--input", folder / images, "--json", folder / "try.json", *setting,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "Threat model:" in ended.stdout
    found = json.loads((folder / "try.json").read_text())
    assert set(found) == {"compiled", "eager"}
    for run in found.values():
        assert set(run) == {
            "seconds", "rounds", "bytes_sent_per_party", "normalised_squared_error", "argmax_agreement",
        }  # fmt: skip
        assert run["argmax_agreement"] == 1.0
        assert run["normalised_squared_error"] < 1e-3
    assert found["compiled"]["rounds"] < found["eager"]["rounds"]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            np.zeros((2, 3, 8, 8), np.int64),
            "is int64, the program takes float32: convert it, and scale it",
        ),
        (np.full((2, 3, 8, 8), np.inf, np.float32), "has numbers outside of"),
        (np.full((2, 3, 8, 8), np.nan, np.float32), "holds NaN, which has no fixed-point encoding"),
        (
            np.zeros((0, 3, 8, 8), np.float32),
            "has shape (0, 3, 8, 8), the program was compiled for",
        ),
    ],
)
def test_inputs_that_a_trial_refuses(folder: Path, x: Any, message: str) -> None:
    np.save(folder / "refused.npy", x)
    ended = tacit(
        "try", folder / "model.tacit", "--weights", folder / "model.weights",
        "--input", folder / "refused.npy", "--json", folder / "none.json",
    )  # fmt: skip
    assert ended.returncode == 1
    assert f"the input x {message}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (folder / "none.json").exists()


def configured(folder: Path) -> Path:
    """Writes keys and the configuration of three parties."""
    config, ports = folder / "parties.toml", free_ports(3)
    if not (folder / "certificates").exists():
        assert (
            tacit("certificates", "--parties", 3, "--out", folder / "certificates").returncode == 0
        )
    parties = "".join(
        f'\n[[party]]\naddress = "127.0.0.1:{port}"\ncertificate = '
        f'"certificates/party-{party}.pem"\n'
        f'key = "certificates/party-{party}.key"\n'
        for party, port in enumerate(ports)
    )
    config.write_text(f'protocol = "replicated"\ntimeout = 60\n{parties}')
    return config


def run(folder: Path, *parts: list[object]) -> list[tuple[int, str, str]]:
    """Runs the parties, each with its own options, and returns their results."""
    config = configured(folder)
    running = [
        Command("run", "--config", config, "--party", party, *part)
        for party, part in enumerate(parts)
    ]
    return [each.ended() for each in running]


def test_three_processes_run_it(folder: Path) -> None:
    program = folder / "model.tacit"
    ended = run(
        folder,
        [program, "--weights", folder / "model.weights"],
        [program, "--input", folder / "x.npy", "--output", folder / "y.npy"],
        [program],
    )
    assert [code for code, _, _ in ended] == [0, 0, 0], ended
    with torch.no_grad():
        plain = normalised(Residual())(torch.from_numpy(np.load(folder / "x.npy")))
    result = torch.from_numpy(np.load(folder / "y.npy"))
    assert float((result - plain).norm() / plain.norm()) < 3e-2
    assert result.argmax(1).equal(plain.argmax(1))


def test_a_batch_runs_over_streams_that_all_parties_have(folder: Path) -> None:
    program, images = folder / "model.tacit", np.load(folder / "images.npy")
    owner = [program, "--weights", folder / "model.weights"]
    receiver = [program, "--input", folder / "images.npy", "--output", folder / "batch.npy"]
    ended = run(folder, *([*part, "--streams", 3] for part in (owner, receiver, [program])))
    assert [code for code, _, _ in ended] == [0, 0, 0], ended
    with torch.no_grad():
        plain = normalised(Residual())(torch.from_numpy(images))
    result = torch.from_numpy(np.load(folder / "batch.npy"))
    assert float((result - plain).norm() / plain.norm()) < 3e-2
    (folder / "batch.npy").unlink()

    ended = run(folder, owner, [*receiver, "--streams", 2], [program])
    assert all(code == 1 for code, _, _ in ended)
    # Any party may be the first to report the difference between itself and another.
    for _, _, told in ended:
        assert re.search(
            r"party [012] runs batches over [12] streams, party [012] over [12]: give all", told
        )
    np.save(folder / "odd.npy", images[:5])
    uneven = [
        program,
        "--input",
        folder / "odd.npy",
        "--output",
        folder / "batch.npy",
        "--streams",
        2,
    ]
    ended = run(folder, owner, uneven, [program])
    assert "5 rows, which is no multiple of the 2" in ended[1][2]
    ended = run(folder, [*owner, "--streams", 0], receiver, [program])
    assert "streams are 1 to 64, not 0" in ended[0][2]
    assert all(
        code == 1 and "its program, options or files are wrong" in told
        for code, _, told in ended[1:]
    )
    assert not (folder / "batch.npy").exists()


def test_nobody_who_has_the_weights_is_told_to_all(folder: Path) -> None:
    program = folder / "model.tacit"
    ended = run(
        folder,
        [program],
        [program, "--input", folder / "x.npy", "--output", folder / "n.npy"],
        [program],
    )
    assert all(code == 1 for code, _, _ in ended)
    for _, _, errors in ended:
        assert "no party has the weights: --weights FILE at their owner" in errors
    assert not (folder / "n.npy").exists()


def test_what_is_wrong_at_one_party_reaches_the_others(folder: Path) -> None:
    program = folder / "model.tacit"
    np.save(folder / "large.npy", np.full((2, 3, 8, 8), 1000.0, np.float32))
    ended = run(
        folder,
        [program, "--weights", folder / "model.weights"],
        [program, "--input", folder / "large.npy", "--output", folder / "n.npy"],
        [program],
    )
    assert all(code == 1 for code, _, _ in ended)
    assert "numbers outside of" in ended[1][2]
    for party in (0, 2):
        assert "its program, options or files are wrong" in ended[party][2]


def test_weights_of_another_program_are_refused_with_both_hashes_and_all_are_told(
    folder: Path,
) -> None:
    program, other = folder / "model.tacit", folder / "of_another.tacit"
    ended = tacit("compile", f"{folder}/model.py:build", "--widths", "uniform", "-o", other)
    assert ended.returncode == 0, ended.stderr
    parties = run(
        folder,
        [program, "--weights", folder / "of_another.weights"],
        [program, "--input", folder / "x.npy", "--output", folder / "n.npy"],
        [program],
    )
    assert all(code == 1 for code, _, _ in parties)
    for path in (program, other):
        assert digest(folder, path)[:16] in parties[0][2]
    for party in (1, 2):
        assert "its program, options or files are wrong" in parties[party][2]
    assert not (folder / "n.npy").exists()


def digest(folder: Path, program: Path) -> str:
    """Returns the hash of a program as ``inspect`` prints it."""
    assert tacit("inspect", program, "--json", folder / "digest.json").returncode == 0
    return str(json.loads((folder / "digest.json").read_text())["digest"])


SUM = """
import torch

def build():
    net = torch.nn.Sequential(torch.nn.Linear(1024, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2)).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1.0 if parameter.dim() == 2 else 0.0)
    return net, torch.zeros(1, 1024)
"""


def test_who_was_to_learn_a_result_is_told_of_a_guard_that_failed(folder: Path) -> None:
    (folder / "sum.py").write_text(SUM)
    signs = np.tile(np.array([1, -1], np.float32), (4, 512))
    np.save(folder / "signs.npy", signs)
    np.save(folder / "ones.npy", np.ones((1, 1024), np.float32))
    refused = tacit(
        "compile", f"{folder}/sum.py:build", "--calibrate", folder / "signs.npy",
        "--margin", "0.1", "-o", folder / "sum.tacit",
    )  # fmt: skip
    assert refused.returncode == 1
    assert "the margin of guards is 1 to" in refused.stderr
    ended = tacit(
        "compile", f"{folder}/sum.py:build", "--calibrate", folder / "signs.npy",
        "--margin", "2", "-o", folder / "sum.tacit",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    program = folder / "sum.tacit"
    assert "that are tested" in tacit("inspect", program, "--no-cost").stdout
    ended = run(
        folder,
        [program, "--weights", folder / "sum.weights"],
        [program, "--input", folder / "ones.npy", "--output", folder / "sum.npy"],
        [program],
    )
    code, _, errors = ended[1]
    assert code == 1
    assert "numbers left the range that the program was compiled for in 0" in errors
    assert "a greater margin" in errors
    assert not (folder / "sum.npy").exists()
    for party in (0, 2):
        code, _, errors = ended[party]
        assert code == 1
        assert "its program raised MisuseError" in errors
        assert "range" not in errors.lower()


def test_a_model_of_onnx_is_compiled_and_tried(folder: Path) -> None:
    images = torch.from_numpy(np.load(folder / "x.npy"))
    torch.onnx.export(
        normalised(Residual()),
        (images,),
        folder / "model.onnx",
        input_names=["images"],
        dynamo=True,
        verbose=False,
    )
    ended = tacit(
        "compile",
        folder / "model.onnx",
        "--calibrate",
        folder / "images.npy",
        "-o",
        folder / "onnx.tacit",
    )
    assert ended.returncode == 0, ended.stderr
    shown = tacit("inspect", folder / "onnx.tacit", "--no-cost")
    assert "input images: (2, 3, 8, 8) within" in shown.stdout
    ended = tacit(
        "try", folder / "onnx.tacit", "--weights", folder / "onnx.weights",
        "--input", folder / "x.npy", "--json", folder / "onnx.json",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads((folder / "onnx.json").read_text())
    assert found["compiled"]["normalised_squared_error"] < 1e-3
    assert found["compiled"]["argmax_agreement"] == 1.0
    assert found["compiled"]["rounds"] < found["eager"]["rounds"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.onnx"], "there is no file nothing.onnx"),
        (["model.h5"], "of no format that is compiled"),
        (["model.py:nothing"], "has no function 'nothing'"),
    ],
)
def test_other_models_are_refused(folder: Path, arguments: list[str], message: str) -> None:
    ended = tacit("compile", *arguments, "-o", folder / "other.tacit", folder=folder)
    assert ended.returncode == 1
    assert message in ended.stderr
    assert not (folder / "other.tacit").exists()
