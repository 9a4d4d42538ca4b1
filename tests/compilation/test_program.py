"""Programs as files: a canonical form, and careful parsing."""

import contextlib
import copy
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tacit
from models import Residual, normalised
from tacit.commands.run_program import parsed_part
from tacit.compilation.allowlist import by_name
from tacit.compilation.format import MOST_NODES, canonical
from tacit.compilation.inspect import inspect
from tacit.compilation.program import DAMAGED, Program
from tacit.compilation.weights import Weights
from tacit.errors import MisuseError, SetupError, TacitError

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))

COMPILED = tacit.compile(normalised(Residual()), IMAGES)


def changed(change: Any) -> bytes:
    """Returns the text of a program after a change."""
    content = copy.deepcopy(json.loads(COMPILED[0].text))
    change(content)
    return canonical(content)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    program, weights = COMPILED
    program.save(tmp_path / "model.tacit")
    weights.save(tmp_path / "model.weights")
    again, values = (
        tacit.load_program(tmp_path / "model.tacit"),
        tacit.load_weights(tmp_path / "model.weights"),
    )
    assert again.text == program.text
    assert again.digest == program.digest
    values.check(again)
    assert all(values.values[name].equal(value) for name, value in weights.values.items())


def test_a_party_reads_no_weights_of_the_model_as_it_was(tmp_path: Path) -> None:
    program, weights = COMPILED
    program.save(tmp_path / "model.tacit")
    weights.save(tmp_path / "model.weights")
    file = str(tmp_path / "model.weights")
    read = parsed_part(tmp_path / "model.tacit", ["--weights", file]).weights
    assert read is not None
    assert not read.of_model
    assert all(read.values[name].equal(value) for name, value in weights.values.items())
    assert tacit.load_weights(file).of_model.keys() == weights.of_model.keys()
    # Without the model's weights the file could not be read.
    with pytest.raises(MisuseError, match=r"read without those of the model.*load_weights\(path\)"):
        read.save(tmp_path / "again.weights")
    assert not (tmp_path / "again.weights").exists()


def test_compiling_again_gives_the_same_program() -> None:
    assert tacit.compile(normalised(Residual()), IMAGES)[0].digest == COMPILED[0].digest


def test_the_hash_is_that_of_the_file() -> None:
    # BLAKE3 of the empty string, from its specification.
    assert (
        tacit._core.blake3(b"")
        == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    )
    assert COMPILED[0].digest == tacit._core.blake3(COMPILED[0].text)


def test_a_program_holds_no_weights() -> None:
    for name, value in COMPILED[1].values.items():
        assert f"{float(value.flatten()[0])}" not in COMPILED[0].text.decode(), name


def rectified(content: Any) -> Any:
    """A node of the content that is rectified."""
    return next(node for node in content["nodes"] if "rectified_affine" in node["operator"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.update(version=8),
            "version 8 of the program format, and this tacit reads version 9",
        ),
        (lambda c: c["inputs"][0].update(exponents=[1]), "an exponent for each column"),
        (lambda c: c["inputs"][0].update(exponents=[65] * 8), "of magnitude 64 at most"),
        (lambda c: c.update(format="other"), "not a compiled program"),
        (lambda c: c.update(more=1), "a program has inputs"),
        (lambda c: c.update(scale=31), "a program has inputs"),
        (lambda c: c.update(scale=True), "a program has inputs"),
        (lambda c: c["nodes"][0].update(operator="aten.from_file.default"), "which no program may"),
        (lambda c: c["nodes"][0].update(operator="aten.relu_.default"), "which no program may"),
        (lambda c: c["nodes"][0].update(operator="prims.mul.default"), "which no program may"),
        (lambda c: c["nodes"][0].update(operator="aten.rand.default"), "which no program may"),
        (
            lambda c: c["nodes"][0].update(arguments=[{"of": "later"}]),
            "takes 'later', which no earlier node",
        ),
        (
            lambda c: c["nodes"][0].update(arguments=[{"of": c["nodes"][0]["name"]}]),
            f"a cycle or are out of order; {DAMAGED}",
        ),
        (
            lambda c: c["nodes"][0].update(arguments=[[{"of": c["nodes"][-1]["name"]}]]),
            f"a cycle or are out of order; {DAMAGED}",
        ),
        (
            lambda c: c["nodes"][0].update(arguments=[{"else": 1}]),
            r"what another node gives, not \{'else': 1\}",
        ),
        (lambda c: c["nodes"][0].update(arguments=[]), "missing"),
        (lambda c: c["nodes"][0].update(width=65), "65 bits"),
        (lambda c: c["nodes"][0].update(width=True), "bits"),
        (lambda c: c["nodes"][0].update(width=24), "compares 24 bits"),
        (lambda c: rectified(c).update(width=1), "compares 1 bits"),
        (lambda c: rectified(c).update(guard=[24, 0, 1]), "guards"),
        (lambda c: rectified(c).update(guard=[24]), "guards"),
        (lambda c: rectified(c).update(guard=24), "guards"),
        (lambda c: rectified(c).update(guard=[True, 8]), "guards"),
        (lambda c: rectified(c).update(guard=[24, False]), "guards"),
        (lambda c: rectified(c).update(guard=[24, 1]), "guards"),
        (lambda c: rectified(c).update(guard=[24, -1]), "guards"),
        (lambda c: rectified(c).update(guard=[24, 43]), "guards"),
        (lambda c: rectified(c).update(guard=[24, 63]), "guards"),
        (lambda c: rectified(c).update(guard=[1, 8]), "guards"),
        (lambda c: rectified(c).update(guard=[65, 0]), "guards"),
        (lambda c: (rectified(c).update(guard=[12, 8]), c.update(scale=7)), "guards"),
        (lambda c: c["nodes"][0].update(guard=[24, 0]), "guards"),
        (lambda c: c["nodes"][0].update(guard=[24, 8]), "guards"),
        *(
            (lambda c, bits=bits: rectified(c).update(dropped=bits), "drops .* low bits")
            for bits in (-1, 64, 1 << 70, 1.0, True, "3", None, [3])
        ),
        (lambda c: rectified(c).update(width=12, guard=None, dropped=9), "drops 9 low bits"),
        (lambda c: rectified(c).update(width=None, guard=[16, 0], dropped=13), "drops 13 low bits"),
        (lambda c: c["nodes"][0].update(dropped=1), "drops 1 low bits"),
        (lambda c: rectified(c).pop("dropped"), "its arguments"),
        (lambda c: rectified(c).update(fits={"gelu": "degree 4"}), "has no functions"),
        (lambda c: rectified(c).pop("fits"), "its arguments"),
        (lambda c: rectified(c).pop("scale"), "its arguments"),
        (lambda c: rectified(c).update(scale=24), "keeps 24 fraction bits"),
        (lambda c: rectified(c)["arguments"][4].pop(), "7 numbers"),
        (lambda c: rectified(c)["arguments"].__setitem__(4, [2**40] * 7), "rectified_affine"),
        (lambda c: rectified(c)["arguments"][0].pop(), "rectified_affine"),
        (
            lambda c: rectified(c)["arguments"].__setitem__(3, rectified(c)["arguments"][0]),
            "summands",
        ),
        (lambda c: c["nodes"][1].update(name=c["nodes"][0]["name"]), "a name of its own"),
        (lambda c: c["nodes"][0].update(name="a b"), "a name of its own"),
        (
            lambda c: c["inputs"][0].update(shape=[2, 3, -8, 8]),
            "a list of at most 64 whole sizes.*compile the model for the shapes",
        ),
        (lambda c: c["inputs"][0].update(shape=[2, 3, 1 << 20, 1 << 20]), "at most"),
        (lambda c: c["inputs"][0].update(dtype="complex64"), "not a dtype"),
        (lambda c: c["inputs"][0].update(interval=[1, 0]), "low and a high"),
        (lambda c: c["inputs"][0].update(interval=[0, 10**400]), "low and a high"),
        (lambda c: c["nodes"][0]["named"].update(device="cpu"), "which no program does"),
        (
            lambda c: c["nodes"][0].update(operator="aten.empty_like.default"),
            "which no program may",
        ),
        (
            lambda c: c["nodes"][0].update(arguments=[*c["nodes"][0]["arguments"][:3], [0, 0]]),
            "conv2d",
        ),
        (lambda c: c["weights"][0].update(scale=41), "fraction bits"),
        (
            lambda c: next(w for w in c["weights"] if "folded" in w["name"]).update(shape=[3, 3]),
            "conv2d",
        ),
        (lambda c: c.update(outputs=["nobody"]), "not a node"),
        (lambda c: c.update(outputs=[]), "it has no outputs"),
        (
            lambda c: c.update(nodes=c["nodes"] * (MOST_NODES // len(c["nodes"]) + 1)),
            f"nodes, and a program {MOST_NODES} at most; {DAMAGED}",
        ),
    ],
)
def test_what_cannot_be_is_refused(change: Any, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        Program.parsed(changed(change), "the file")


@pytest.mark.parametrize(
    "name",
    [
        "one\nBLAKE3: 0",
        "\x1b[2J",
        "\u202eright to left",
        "half \ud800",
        "two  spaces",
        " ",
        "a" * 501,
    ],
)
@pytest.mark.parametrize("kind", ["nodes", "inputs"])
def test_what_would_be_shown_as_something_else_is_refused(kind: str, name: str) -> None:
    def change(content: Any) -> None:
        content[kind][0][{"nodes": "layer", "inputs": "shown"}[kind]] = name

    with pytest.raises(MisuseError, match="has a name that could not be shown, such as") as told:
        Program.parsed(changed(change), "the file")
    assert str(told.value).isprintable()


def test_names_of_a_model_are_written_as_they_can_be_shown() -> None:
    module = nn.Sequential()
    module.add_module("one\u202e  two", nn.Linear(2, 2))
    module.add_module("long" * 200, nn.Linear(2, 2))
    module.add_module("größe 2", nn.Linear(2, 2))
    program, _ = tacit.compile(module.eval(), torch.ones(1, 2))
    assert [step.layer for step in inspect(program, []).steps] == [
        "one two",
        "long" * 125,
        "größe 2",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(version="5" * 10**6),
        lambda c: rectified(c).update(guard=["24" * 10**6]),
        lambda c: c["nodes"][0].update(operator="aten.relu_.default", name="n" * 10**6),
        lambda c: c["nodes"][0]["named"].update({"\x1b[2J" * 10**5: 1}),
    ],
)
def test_what_is_told_of_a_file_is_short(change: Any) -> None:
    with pytest.raises(MisuseError) as told:
        Program.parsed(changed(change), "the file")
    assert len(str(told.value)) < 1200
    assert str(told.value).isprintable()


def test_a_model_of_too_many_operators_is_refused_where_it_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("tacit.compilation.program"), "MOST_NODES", 9)
    with pytest.raises(
        MisuseError, match=r"operators, a program 9 at most: compile parts of the model"
    ):
        tacit.compile(normalised(Residual()), IMAGES)


def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("tacit.compilation.format"), "MOST_BYTES", 100)
    with pytest.raises(
        MisuseError, match=r"larger than the 100 bytes .* compile parts of the model"
    ):
        Program.parsed(COMPILED[0].text, "the file")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b"\x00",
        b"[" * 100_000,
        b"\x80\x02K\x01.",
        b'{"format":"tacit-program","version":NaN}',
    ],
)
def test_other_files_are_refused(text: bytes) -> None:
    with pytest.raises(MisuseError):
        Program.parsed(text, "the file")


def test_nothing_is_cut_into_millions_of_pieces() -> None:
    def change(content: Any) -> None:
        content["inputs"][0]["shape"] = [10**6]
        content["nodes"][0].update(
            operator="aten.unbind.int", arguments=[{"of": content["inputs"][0]["name"]}]
        )

    with pytest.raises(MisuseError, match="cut into pieces"):
        Program.parsed(changed(change), "the file")


@pytest.mark.parametrize("number", [-1, 6, 47, 1 << 40])
@pytest.mark.parametrize(
    "operator", ["aten.softmax.int", "aten.sum.default", "aten._to_copy.default"]
)
def test_a_number_is_no_dtype(operator: str, number: int) -> None:
    """PyTorch accepts numbers as dtypes, and some of them crash the process."""

    def change(content: Any) -> None:
        arguments: list[Any] = [{"of": content["inputs"][0]["name"]}]
        own = operator == "aten.softmax.int"
        content["nodes"][0].update(
            operator=operator,
            arguments=[*arguments, -1, number] if own else arguments,
            named={} if own else {"dtype": number},
            width=None,
        )

    with pytest.raises(MisuseError, match=f": {number} is not a dtype"):
        Program.parsed(changed(change), "the file")


@pytest.mark.parametrize("dims", [0, -1, 5, 1 << 40])
def test_no_list_is_made_of_dimensions_that_there_are_not(dims: int) -> None:
    def change(content: Any) -> None:
        arguments = [{"of": content["inputs"][0]["name"]}, dims, None, 1e-5]
        content["nodes"][0].update(
            operator="tacit.rms_norm.default", arguments=arguments, width=None
        )

    with pytest.raises(MisuseError, match=rf"rms_norm\.default: the last {dims} dimensions of 4"):
        Program.parsed(changed(change), "the file")


@pytest.mark.parametrize("long", ["input", "state"])
def test_a_recurrent_layer_has_no_millions_of_steps_or_layers(long: str) -> None:
    def change(content: Any) -> None:
        content["inputs"][0]["shape"] = [1 << 26]
        x, other = ({"of": content[kind][0]["name"]} for kind in ("inputs", "weights"))
        x, state = (x, other) if long == "input" else (other, x)
        arguments = [x, state, [other, other], False, 1, 0.0, False, True, False]
        content["nodes"][0].update(operator="aten.gru.input", arguments=arguments, width=None)

    with pytest.raises(MisuseError, match="cut into pieces is at most 16384 long"):
        Program.parsed(changed(change), "the file")


def test_no_program_makes_gradients() -> None:
    """PyTorch crashed on some backward operators without a forward pass before them."""

    def change(content: Any) -> None:
        x = {"of": content["inputs"][0]["name"]}
        operator = "aten.fractional_max_pool2d_backward.default"
        content["nodes"][0].update(operator=operator, arguments=[x, x, [2], [], x], width=None)

    with pytest.raises(MisuseError, match=r"max_pool2d_backward\.default', which no program may"):
        Program.parsed(changed(change), "the file")
    assert not any("backward" in name for name in by_name())


def test_another_way_to_write_it_is_refused() -> None:
    spaced = json.dumps(json.loads(COMPILED[0].text), sort_keys=True).encode()
    with pytest.raises(MisuseError, match=f"as tacit compile writes programs; {DAMAGED}"):
        Program.parsed(spaced, "the file")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_programs_end_in_errors_of_tacit(data: st.DataObject) -> None:
    text = bytearray(COMPILED[0].text)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(TacitError):
        Program.parsed(bytes(text), "the file")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_numbers_put_elsewhere_end_in_errors_of_tacit(data: st.DataObject) -> None:
    content = json.loads(COMPILED[0].text)
    node = data.draw(st.sampled_from(content["nodes"]))
    at = data.draw(st.integers(0, max(0, len(node["arguments"]) - 1)))
    anything = st.one_of(
        st.none(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.lists(st.integers(-(2**40), 2**40), max_size=4),
        st.sampled_from([{"of": each["name"]} for each in content["weights"]]),
        st.just({"dtype": "int8"}),
    )
    node["arguments"][at : at + 1] = [data.draw(anything)]
    with contextlib.suppress(TacitError):
        Program.parsed(canonical(content), "the file")


def test_weights_of_another_program_are_refused(tmp_path: Path) -> None:
    other, weights = tacit.compile(normalised(Residual()), IMAGES[:1])
    with pytest.raises(MisuseError, match="belong to another program"):
        COMPILED[1].check(other)
    named_alike = Weights(
        {**weights.values, "p_classify_bias": torch.zeros(3)},
        other.digest,
        weights.model,
        weights.of_model,
    )
    with pytest.raises(MisuseError, match=r"p_classify_bias has shape \(3,\), not \(5,\)"):
        named_alike.check(other)
    (tmp_path / "text").write_text("no weights")
    with pytest.raises(MisuseError, match="holds no weights"):
        tacit.load_weights(tmp_path / "text")
    with pytest.raises(SetupError, match="no such file"):
        tacit.load_weights(tmp_path / "nothing")
