"""TensorFlow models, tested without TensorFlow.

The tests check what is recognised, the errors if the conversion process is not as it should be, and
that tf2onnx's models give TensorFlow's results.
"""

import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper
from onnx_made import model

import tacit
from tacit.compilation.importers import tensorflow as importer
from tacit.compilation.importers.tensorflow import conversion
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights
from tacit.errors import MisuseError, SetupError, TacitError, UnsupportedOperatorError

HERE = Path(__file__).resolve().parent / "made_by_tensorflow"

#: A GraphDef begins with its first node.
GRAPH = b"\x0a\x00"


def saved(folder: Path) -> Path:
    """Writes a folder that looks like a SavedModel."""
    (folder / "saved").mkdir()
    (folder / "saved" / "saved_model.pb").write_bytes(b"\x08\x01")
    return folder / "saved"


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "{}")
    return path


def test_formats_are_recognised(tmp_path: Path) -> None:
    found = importer.format_of
    assert found(saved(tmp_path)) is importer.Format.SAVED_MODEL
    assert found(written(tmp_path / "graph.pb", GRAPH)) is importer.Format.FROZEN
    assert (
        found(archive(tmp_path / "m.keras", "config.json", "metadata.json"))
        is importer.Format.KERAS
    )
    assert found(tmp_path / "model.onnx") is None
    assert found(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda at: at, MisuseError, "is a folder without saved_model.pb"),
        (lambda at: at / "model.pb", SetupError, "there is no file"),
        (lambda at: at / "model.keras", SetupError, "there is no file"),
        (
            lambda at: saved(at) / "saved_model.pb",
            MisuseError,
            "is a part of a SavedModel: give the folder",
        ),
        (lambda at: written(at / "model.pb", b"\x08\x09"), MisuseError, "is no frozen graph"),
        (lambda at: written(at / "model.pb", b""), MisuseError, "is no frozen graph"),
        (
            lambda at: written(at / "m.keras", b"\x89HDF\r\n"),
            MisuseError,
            "is not what Keras 3 writes",
        ),
        (
            lambda at: archive(at / "m.keras", "other"),
            MisuseError,
            "holds no model of Keras (config.json)",
        ),
    ],
)
def test_what_is_named_so_and_is_something_else(
    make: Callable[[Path], Path], kind: type[TacitError], said: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    with pytest.raises(kind) as caught:
        tacit.compile(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


# The conversion process
# --------------------------------------------------------------------------------


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Compiles a SavedModel with a stand-in for the conversion process, and returns the error's
    text.

    MODEL in the text stands for the model's path. The stand-in's program knows the folder as
    ``folder``.
    """

    def told(program: str, kind: type[TacitError] = SetupError, **others: object) -> str:
        path, stand_in = saved(tmp_path), tmp_path / "python"
        stand_in.write_text(
            f"#!{sys.executable}\nimport json, os, pathlib, sys, time\n"
            f"folder = pathlib.Path(sys.argv[5])\n"
            f"def result(kind, text=''):\n"
            f"    (folder / 'result.json').write_text(json.dumps(dict(kind=kind, "
            f"text=text)))\n{program}\n"
        )
        stand_in.chmod(0o700)
        monkeypatch.setattr(conversion, "INTERPRETER", str(stand_in))
        with pytest.raises(kind) as caught:
            tacit.compile(path, **others)
        return str(caught.value).replace(str(path), "MODEL").replace(str(tmp_path), "HERE")

    return told


ELSEWHERE = (
    "convert it where TensorFlow is (python -m tf2onnx.convert --saved-model MODEL --opset 17 "
    "--output "
    "model.onnx) and compile model.onnx"
)


def test_it_is_not_installed(stand_in: Callable[..., str]) -> None:
    assert stand_in("result('absent', 'tensorflow and tf2onnx')") == (
        "MODEL is TensorFlow's, and tensorflow and tf2onnx cannot be found here: "
        f"pip install 'tacit-mpc[tensorflow]', or {ELSEWHERE}"
    )


def test_the_worker_itself_says_what_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses an interpreter without any libraries."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o700)
    monkeypatch.setattr(conversion, "INTERPRETER", str(bare))
    with pytest.raises(
        SetupError, match="tensorflow and tf2onnx cannot be found here: pip install"
    ):
        tacit.compile(saved(tmp_path))


def test_it_takes_too_long(stand_in: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "LONGEST", 0.5)
    assert (
        stand_in("time.sleep(60)") == f"MODEL was not converted to ONNX within 0.5 s: {ELSEWHERE}"
    )


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("os.kill(os.getpid(), 9)", "was killed by signal 9"),
        ("sys.exit(3)", "ended with exit code 3"),
        ("raise ValueError('inside')", "ended with exit code 1"),
        ("(folder / 'result.json').write_text('{')", "ended with exit code 0"),
        ("(folder / 'result.json').write_bytes(bytes(range(256)))", "ended with exit code 0"),
        ("(folder / 'result.json').write_text('[' * 100000)", "ended with exit code 0"),
        ("(folder / 'result.json').write_text('[1, 2]')", "ended with exit code 0"),
        ("result('converted', 7)", "ended with exit code 0"),
        ("result('converted', 'x' * (1 << 21))", "ended with exit code 0"),
    ],
)
def test_it_leaves_no_result(program: str, how: str, stand_in: Callable[..., str]) -> None:
    assert stand_in(program) == (
        f"MODEL was not converted to ONNX: the process of TensorFlow {how} and left no result; it "
        f"may lack "
        f"memory. Otherwise {ELSEWHERE}"
    )


def test_it_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "INTERPRETER", str(tmp_path / "none"))
    with pytest.raises(
        SetupError, match=r"cannot start .*/none to convert .*/saved: there is no such file"
    ):
        tacit.compile(saved(tmp_path))


def test_where_it_fails(stand_in: Callable[..., str]) -> None:
    told = stand_in(
        "result('failed', f'OSError: {folder}/saved and /usr/lib/python3/site.py\\nFile "
        "layer/conv')"
    )
    assert (
        told
        == "TensorFlow does not convert MODEL to ONNX: OSError: .../saved and ... File layer/conv"
    )


def test_what_it_refuses(stand_in: Callable[..., str]) -> None:
    assert stand_in("result('refused', 'it is not; save it')", MisuseError) == (
        "MODEL cannot be compiled: it is not; save it"
    )


def test_what_it_converts_is_no_onnx(stand_in: Callable[..., str]) -> None:
    assert stand_in("result('converted'); (folder / 'model.onnx').write_bytes(b'no')") == (
        "MODEL is not an ONNX file"
    )


def test_what_it_converts_is_not_there(stand_in: Callable[..., str]) -> None:
    assert stand_in("result('converted')").startswith("TensorFlow does not convert MODEL to ONNX")


def test_all_that_has_no_counterpart_is_told_at_once(
    stand_in: Callable[..., str], tmp_path: Path
) -> None:
    nodes = [
        helper.make_node(
            "Betainc", ["x"], ["a"], name="layer/Betainc", domain="ai.onnx.converters.tensorflow"
        ),
        helper.make_node("NonZero", ["a"], ["y"], name="layer/Where"),
    ]
    made = model(
        nodes,
        {"x": [2, 3]},
        ["y"],
        opset_imports=[helper.make_opsetid("ai.onnx.converters.tensorflow", 1)],
    )
    (tmp_path / "given.onnx").write_bytes(made.SerializeToString())
    told = stand_in(
        f"(folder / 'model.onnx').write_bytes(open({str(tmp_path / 'given.onnx')!r}, "
        f"'rb').read()); "
        "result('converted')",
        UnsupportedOperatorError,
    )
    assert told.splitlines()[:2] == [
        "MODEL cannot be imported:",
        "  Betainc 'layer/Betainc': this operator of TensorFlow has none of ONNX for it; replace "
        "it in the "
        "model, or leave it to the receiver",
    ]


# Models converted by tf2onnx
# ----------------------------------------------------------------------------------------

NAMES = sorted(path.stem for path in HERE.glob("*.onnx"))


def recorded(name: str) -> tuple[tuple[torch.Tensor, ...], list[torch.Tensor]]:
    """Returns the model's inputs and outputs, recorded in TensorFlow."""
    with np.load(HERE / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: torch.from_numpy(file[key]) for key in sorted(file.files)}
    return (
        tuple(each for key, each in arrays.items() if key.startswith("input")),
        [each for key, each in arrays.items() if key.startswith("output")],
    )


def test_there_are_some() -> None:
    assert NAMES == ["averages", "dense", "lenet", "mobile", "residual", "sequence"]


def test_open_shapes_are_those_of_data() -> None:
    """Shapes come from the example, from one row of calibration data, or from ``shapes``. Otherwise
    the error names the input."""
    path, (features,) = HERE / "dense.onnx", recorded("dense")[0]

    def shape(*example: object, **others: object) -> tuple[int, ...]:
        (taken,) = tacit.compile(path, *example, **others)[0].inputs.values()
        return taken.shape

    assert shape(features) == shape((features,)) == shape({"features": features}) == (3, 20)
    assert shape(calibrate=features) == shape(calibrate={"features": features}) == (1, 20)
    assert shape(features[:2], calibrate=features) == (2, 20)
    assert shape(calibrate=features, shapes={"features": (3, 20)}) == (3, 20)
    with pytest.raises(
        UnsupportedOperatorError, match=r"input 'features': its shape is \(unk__6, 20\)"
    ):
        tacit.compile(path)
    with pytest.raises(UnsupportedOperatorError, match="only static shapes are imported; give it"):
        tacit.compile(path, calibrate=features[:, :4])
    with pytest.raises(UnsupportedOperatorError, match="only static shapes are imported; give it"):
        tacit.compile(path, (features, features))
    with pytest.raises(MisuseError, match=r"the file takes: tensors of features \(1, 20\)"):
        tacit.compile(path, features, shapes={"features": (1, 20)})


@pytest.mark.parametrize("name", NAMES)
def test_what_tensorflow_said_is_computed_in_secret(name: str) -> None:
    given, expected = recorded(name)
    program, weights = tacit.compile(HERE / f"{name}.onnx", given, calibrate=given)
    results = outputs(program, weights, given)
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape
        error = float((result - wanted).square().sum() / wanted.square().sum())
        print(f"{name}: {error:.1e}")
        assert error < 1e-4


def outputs(
    program: Program, weights: Weights, given: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Returns the results that the owner of the inputs learns in a session."""

    def run() -> list[torch.Tensor]:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        names = list(program.inputs)
        values = [
            bound.given(
                each if tacit.session().party == 1 else None,
                owner=1,
                name=program.inputs[name].name,
            )
            for name, each in zip(names, given, strict=True)
        ]
        results = bound(*values)
        return [
            each.reveal() for each in (results if isinstance(results, tuple | list) else (results,))
        ]

    return tacit.launch(run)[1]
