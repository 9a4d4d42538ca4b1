"""Hostile programs, written to crash the process that loads them, end in errors of tacit with
little time and memory."""

import json
from importlib import import_module
from typing import Any

import pytest
import torch
from written import node, program

import tacit
from tacit.compilation import verify
from tacit.compilation.allowlist import by_name
from tacit.compilation.dry_run import metered
from tacit.compilation.execute import share_weights
from tacit.compilation.format import MOST_LISTED, canonical, read
from tacit.compilation.program import Program
from tacit.errors import MisuseError

X = {"of": "x"}


def refused(text: bytes, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        Program.parsed(text, "the file")


# Memory that is not the program's
# --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_reshape_alias", "mkldnn_rnn_layer"])
def test_no_program_calls_what_pytorch_believes(name: str) -> None:
    """These operators trust their arguments: from four numbers they would read any amount of the
    process's memory."""
    assert f"aten.{name}.default" not in by_name()
    refused(program(node("y", f"aten.{name}.default", X, [64], [1])), "which no program may")


def test_an_alias_of_secret_numbers_reads_none_beyond_them() -> None:
    def run() -> None:
        x = tacit.share(torch.arange(6.0), owner=0)
        alias = torch.ops.aten._reshape_alias
        assert alias(x, [2, 3], [3, 1]).reveal().tolist() == [[0, 1, 2], [3, 4, 5]]
        for size, stride in (([64], [1]), ([2], [5]), ([1 << 40], [1 << 20])):
            with pytest.raises(RuntimeError, match="invalid for input of size 6"):
                alias(x, size, stride)

    tacit.launch(run)


@pytest.mark.parametrize(("first", "size", "offset"), [(0, 4, 4), (0, 8, 0), (50, 4, 0)])
def test_of_a_public_input_no_more_is_seen_than_was_given(
    first: int, size: int, offset: int
) -> None:
    """Strides address memory, and a slice of a larger tensor shares its memory with the rest."""
    nodes = (
        node("y", "aten.as_strided.default", X, [size], [1], offset),
        node("z", "aten.neg.default", {"of": "y"}),
    )
    loaded = Program.parsed(program(*nodes), "the file")
    larger = torch.cat([torch.full((first,), 7.0), torch.ones(4), torch.full((50,), 7.0)])

    def run() -> torch.Tensor:
        return share_weights(loaded, {}, 0)(larger[first : first + 4])

    if size + offset > 4:
        with pytest.raises(MisuseError, match=r"as_strided\.default: setStorage"):
            tacit.launch(run)
    else:
        assert all(found.tolist() == [-1] * 4 for found in tacit.launch(run))


@pytest.mark.parametrize("layers", [[2, 1], [1, 2]])
def test_states_of_unlike_layers_are_refused(layers: list[int]) -> None:
    """PyTorch read the memory of a layer that does not exist, and the process crashed."""
    shapes = {
        "x": (5, 1, 3),
        "h": (layers[0], 1, 4),
        "c": (layers[1], 1, 4),
        "w": (16, 3),
        "u": (16, 4),
    }
    x, h, c, w, u = ({"of": name} for name in shapes)
    lstm = node("y", "aten.lstm.input", x, [h, c], [w, u], False, 1, 0.0, False, False, False)
    refused(
        program(lstm, node("z", "item", {"of": "y"}, 0), shapes=shapes),
        "different numbers of layers",
    )


@pytest.mark.parametrize("short", ["weight", "bias", "running_mean", "running_var"])
@pytest.mark.parametrize("operator", ["native_batch_norm", "_native_batch_norm_legit_no_training"])
def test_statistics_of_fewer_channels_are_refused(operator: str, short: str) -> None:
    """PyTorch reads beyond the end of the statistics."""
    names = ("weight", "bias", "running_mean", "running_var")
    shapes = {"x": (2, 3), **dict.fromkeys(names, (3,))}
    training = [False] * (operator == "native_batch_norm")
    arguments = [{"of": name} for name in shapes]
    nodes = (
        node("y", f"aten.{operator}.default", *arguments, *training, 0.1, 1e-5),
        node("z", "item", {"of": "y"}, 0),
    )
    Program.parsed(program(*nodes, shapes=shapes), "the file")
    refused(
        program(*nodes, shapes={**shapes, short: (0,)}),
        f"{short} is not one number for each of 3 channels",
    )


# Memory and time
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [(1 << 14) + 1, 1 << 62])
def test_nothing_is_no_millions_of_pieces(pieces: int) -> None:
    cut = (node("y", "aten.chunk.default", X, pieces), node("z", "item", {"of": "y"}, 0))
    refused(program(*cut, shapes={"x": (0,)}), "cut into pieces is at most 16384 long")


def test_lists_are_not_of_millions() -> None:
    sizes = [0] * MOST_LISTED + [4]
    cut = (node("y", "aten.split_with_sizes.default", X, sizes), node("z", "item", {"of": "y"}, 0))
    refused(program(*cut), "y: an argument is a number, a list")


def test_operators_give_a_bounded_number_of_tensors_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = [node(f"n{at}", "aten.unbind.int", X) for at in range(8)]
    last = node("y", "aten.neg.default", X)
    Program.parsed(program(*cut, last), "the file")
    monkeypatch.setattr(verify, "MOST_VALUES", 24)
    refused(program(*cut, last), "n6 is one too many: a program has 24 tensors and steps at most")


def test_steps_of_recurrent_layers_count(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {"x": (5, 1, 3), "h": (2, 1, 4), "w": (12, 3), "u": (12, 4), "v": (12, 4)}
    x, h, w, u, v = ({"of": name} for name in shapes)
    gru = node("y", "aten.gru.input", x, h, [w, u, v, u], False, 2, 0.0, False, False, False)
    text = program(gru, node("z", "item", {"of": "y"}, 0), shapes=shapes)
    Program.parsed(text, "the file")
    # Five steps of two layers make ten values.
    monkeypatch.setattr(verify, "MOST_VALUES", 9)
    refused(text, "y is one too many")


BEGIN = b'{"format":"tacit-program","version":7,"more":'


@pytest.mark.parametrize(
    "more",
    [
        b"[" + b"[]," * 1000 + b"[]]",
        b'"' + b"a" * 3000 + b'"',
        b'{"data":"' + b"\\u0061" * 1000 + b'"}',
        b"[" + b'{"data":"aaa="},' * 300 + b"0]",
    ],
)
def test_what_is_no_constant_is_bounded(more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed content takes up to thirty times the memory of the text, so its size is checked before
    parsing."""
    content = import_module("tacit.compilation.format")
    monkeypatch.setattr(content.json, "loads", lambda *_, **__: pytest.fail("it was read"))
    monkeypatch.setattr(content, "MOST_BARE", 2000)
    with pytest.raises(
        MisuseError, match=r"more than the 2000 bytes .* beside its public constants: compile"
    ):
        read(BEGIN + more + b"}", "the file")


def test_data_of_constants_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    content = import_module("tacit.compilation.format")
    text = program(
        node("y", "aten.add.Tensor", X, {"of": "c"}), constants={"c": torch.rand(10_000, 4)}
    )
    monkeypatch.setattr(content, "MOST_BARE", 2000)
    assert Program.parsed(text, "the file").text == text
    # Constants beyond the permitted number count as other content.
    monkeypatch.setattr(content, "MOST_NODES", 0)
    refused(text, "beside its public constants")


def test_wide_characters_are_not_read() -> None:
    refused(BEGIN + b'"\xf0\x9f\x98\x80' + b"a" * 100 + b'"}', "is not a compiled program")


# Errors of PyTorch
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["inputs", "nodes"])
def test_names_are_not_numbered_beyond_what_python_reads(kind: str) -> None:
    content = json.loads(program(node("y", "aten.neg.default", X)))
    content[kind].append({**content[kind][0], "name": "n_" + "9" * 5000})
    refused(canonical(content), "a name of its own")


@pytest.mark.parametrize(
    ("operator", "named"),
    [
        ("amax", {"self": X}),
        ("max_pool2d", {"self": X, "kernel_size": [2, 2]}),
        ("relu", {"self": X}),
    ],
)
def test_what_is_necessary_has_its_place(operator: str, named: dict[str, Any]) -> None:
    """Code that walks a program expects required arguments at their positions."""
    text = program(node("y", f"aten.{operator}.default", **named), shapes={"x": (1, 1, 4, 4)})
    refused(text, "self is a named argument")


def test_what_runs_into_an_error_of_pytorch_ends_in_one_of_tacit() -> None:
    """The shapes alone permit this program."""
    text = program(
        node("y", "aten.embedding.default", {"of": "c"}, {"of": "places"}),
        constants={"c": torch.rand(4, 2), "places": torch.tensor([7])},
    )
    loaded = Program.parsed(text, "the file")
    with pytest.raises(
        MisuseError, match=r"party \d: the program cannot run: y, aten\.embedding\.default: index"
    ):
        tacit.launch(metered, loaded, protocol="plain")
