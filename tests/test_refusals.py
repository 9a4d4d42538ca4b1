"""Steps of all parties in which one party fails: all raise the same error, no other party learns
a value, and the session continues."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from saying import said_twice
from tacit.compilation.program import Program
from tacit.errors import SetupError
from tacit.refusals import WHY, announcement, refusal, refuser

SETTINGS = [
    pytest.param({"protocol": "replicated"}, id="replicated"),
    pytest.param({"protocol": "additive", "parties": 2, "source": "dealer"}, id="additive"),
]

PROGRAMS = Path(__file__).parent.parent / "crates" / "riscv" / "programs"

#: Digits in the data that must not be in another party's error.
DIGITS = "1337"


def everywhere(attempt: Callable[[int], Any], setting: dict[str, Any]) -> list[tuple[str, str]]:
    """Attempts a step that fails in every party because of party 1, then computes; returns the
    kind and text of each party's error."""

    def program() -> tuple[str, str]:
        party = tacit.session().party
        with pytest.raises(tacit.MisuseError) as raised:
            attempt(party)
        assert refuser(raised.value) == (None if party == 1 else 1)
        secret = tacit.share(torch.tensor([2.0, 3.0]) if party == 1 else None, owner=1)
        assert (secret * secret).reveal().tolist() == [4.0, 9.0]
        assert not said_twice(str(raised.value))
        return type(raised.value).__name__, str(raised.value)

    return tacit.launch(program, **setting)


def check(found: list[tuple[str, str]], kind: str, owner: str, others: str) -> None:
    """Checks that all errors have one kind, and that the others' errors name party 1 and the
    cause, but no value."""
    assert [each for each, _ in found] == [kind] * len(found)
    assert re.search(owner, found[1][1]), found[1]
    for party, (_, text) in enumerate(found):
        if party != 1:
            assert re.search(f"^party 1 refused {others}", text), text
            assert "session goes on" in text
            assert DIGITS not in text


BAD = {
    "nan": (
        torch.tensor([1337.0, float("nan")]),
        "EncodingError",
        "NaN or infinite",
        "a value is NaN or inf",
    ),
    "inf": (
        torch.tensor([1337.0, float("-inf")]),
        "EncodingError",
        "NaN or infinite",
        "a value is NaN or inf",
    ),
    "large": (torch.tensor([1.337e12]), "EncodingError", r"1\.337e\+12", "a value is too large"),
    "None": (None, "MisuseError", "must pass a tensor", "it passed None"),
    "list": ([1337.0], "MisuseError", "not list", "it passed something else"),
    "complex": (
        torch.ones(2, dtype=torch.complex64),
        "MisuseError",
        "complex64",
        "its shape, dtype",
    ),
    "sparse": (torch.eye(2).to_sparse(), "MisuseError", "to_dense", "its shape, dtype"),
    "meta": (torch.ones(2, device="meta"), "MisuseError", "no values", "its shape, dtype"),
    "huge": (
        torch.empty(0).expand(1 << 20, 1 << 20, 0),
        "MisuseError",
        "at most",
        "its shape, dtype",
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_shared_all_refuse(what: str, setting: dict[str, Any]) -> None:
    tensor, kind, owner, others = BAD[what]

    def attempt(party: int) -> None:
        tacit.share(tensor if party == 1 else None, owner=1)

    found = everywhere(attempt, setting)
    check(found, kind, owner, rf"tacit\.share of its tensor \(.*test_refusals\.py:\d+\): {others}")


def test_what_is_secret_already_all_refuse() -> None:
    def attempt(_: int) -> None:
        secret = tacit.share(torch.ones(2), owner=0)
        tacit.share(secret, owner=1)

    check(everywhere(attempt, {}), "MisuseError", "secret already", r"tacit\.share")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("value", [float("nan"), 1.337e12])
def test_a_module_that_cannot_be_shared_stays_as_it_is(
    value: float, setting: dict[str, Any]
) -> None:
    def attempt(party: int) -> None:
        module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        if party == 1:
            module[0].weight.data[0, 1] = value
        with pytest.raises(tacit.EncodingError) as raised:
            tacit.share_module(module, owner=1)
        assert all(
            type(each) is torch.nn.Parameter and each.requires_grad for each in module.parameters()
        )
        # The remedy in the error.
        module[0].weight.data[0, 1] = 1.0
        tacit.share_module(module, owner=1)
        assert isinstance(module[0].weight, tacit.SecretTensor)
        raise raised.value

    others = r"tacit\.share_module of its weights \(.*\): a value is "
    check(everywhere(attempt, setting), "EncodingError", r"0\.weight", others)


INPUTS = {
    "nan": (
        torch.tensor([[1337.0, float("nan"), 0.0]]),
        "EncodingError",
        "holds NaN",
        "a value is NaN",
    ),
    "interval": (torch.full((1, 3), 1337.0), "MisuseError", "outside of", "values are outside"),
    "shape": (torch.zeros(1, 4), "MisuseError", "has shape", "its shape, dtype"),
    "kind": (torch.zeros(1, 3, dtype=torch.int64), "MisuseError", "int64", "its shape, dtype"),
    "batch": (torch.zeros(2, 3), "MisuseError", "2 examples, not 1", "its shape, dtype"),
    "None": (None, "MisuseError", "must pass it", "it passed None"),
}


@pytest.fixture(scope="module")
def model() -> tuple[Program, Any]:
    torch.manual_seed(3)
    inputs = torch.rand(64, 3) * 2 - 1
    layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    return tacit.compile(layers, inputs[:1], calibrate=inputs)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("what", INPUTS)
def test_what_cannot_be_given_to_a_program_all_refuse(
    what: str, setting: dict[str, Any], model: tuple[Program, Any]
) -> None:
    tensor, kind, owner, others = INPUTS[what]
    program, weights = model

    def attempt(party: int) -> None:
        bound = program.share(weights if party == 0 else None, owner=0)
        bound.given(tensor if party == 1 else None, owner=1)

    found = everywhere(attempt, setting)
    check(found, kind, owner, rf"the input .* of the program \(.*\): {others}")


@pytest.mark.parametrize("what", ["None", "others"])
def test_weights_that_cannot_be_shared_all_refuse(what: str, model: tuple[Program, Any]) -> None:
    program, _ = model
    other = tacit.compile(torch.nn.Linear(3, 2).eval(), torch.ones(1, 3))[1]

    def attempt(party: int) -> None:
        program.share(other if party == 1 and what == "others" else None, owner=1)

    owner = "must pass them" if what == "None" else "another program"
    check(everywhere(attempt, {}), "MisuseError", owner, "to share the weights of the program")


@pytest.mark.parametrize("what", ["float16", "rows", "None"])
def test_arrays_that_no_program_takes_all_refuse(what: str) -> None:
    array = {"float16": np.ones(3, np.float16), "rows": np.full((2, 2), 1337), "None": None}[what]

    def attempt(party: int) -> None:
        program = tacit.riscv.load(PROGRAMS / "arrays.elf")
        program.call("mean", ["x", "len:x"], secret={"x": (1, array if party == 1 else None)})

    owner = "but no values were given" if what == "None" else "arrays are of integers"
    check(everywhere(attempt, {}), "MisuseError", owner, "to give the program its arrays")


def test_a_damaged_checkpoint_all_refuse(tmp_path: Path) -> None:
    """Loading changes nothing. Once the file is whole again, the same session loads it."""

    def attempt(party: int) -> None:
        folder = tmp_path / str(party)
        module = torch.nn.Linear(2, 2)
        tacit.share_module(module, owner=0)
        tacit.save_checkpoint(folder, module, step=1337)
        (file,) = folder.glob("*.safetensors")
        whole = file.read_bytes()
        if party == 1:
            file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(tacit.MisuseError) as raised:
            tacit.load_checkpoint(folder, module)
        file.write_bytes(whole)
        assert tacit.load_checkpoint(folder, module) == 1337
        raise raised.value

    check(
        everywhere(attempt, {}),
        "MisuseError",
        "was damaged",
        "to load its part of the checkpoint .*: its file is",
    )


def test_a_checkpoint_that_one_party_cannot_write_all_refuse(tmp_path: Path) -> None:
    def program() -> str:
        party = tacit.session().party
        module = torch.nn.Linear(2, 2)
        tacit.share_module(module, owner=0)
        folder = tmp_path / str(party)
        if party == 1:
            folder.write_text("no folder")
        with pytest.raises((tacit.MisuseError, SetupError)) as raised:
            tacit.save_checkpoint(folder, module, step=1)
        if party == 1:
            folder.unlink()
        tacit.save_checkpoint(folder, module, step=2)
        return str(raised.value)

    for party, text in enumerate(tacit.launch(program)):
        assert ("File exists" in text) == (party == 1)
        assert party == 1 or "party 1 refused to save its part of the checkpoint" in text


def test_who_does_not_catch_it_learns_the_same(tmp_path: Path) -> None:
    """All parties raise it, whichever raises first. The launching program shows the owner's
    error."""

    def program(folder: Path) -> None:
        party = tacit.session().party
        try:
            tacit.share(torch.tensor([float("nan")]) if party == 2 else None, owner=2)
        except BaseException as error:
            (folder / str(party)).write_text(type(error).__name__)
            raise

    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with pytest.raises(tacit.EncodingError, match=r"^party 2: a value is NaN"):
            tacit.launch(program, folder)
        assert [path.read_text() for path in folder.iterdir()] == ["EncodingError"] * 3


def test_a_refusal_that_arrives_is_checked() -> None:
    assert [refusal({"refused": each}, 1) for each in WHY] == list(WHY)
    assert [refusal(each, 1) for each in ({}, [], None, {"shape": []})] == [None] * 4
    for wrong in ({"refused": "1337"}, {"refused": None}, {"refused": ["nan"]}, {"refused": {}}):
        with pytest.raises(tacit.PeerError, match="party 1 refused for an unknown cause"):
            refusal(wrong, 1)
    with pytest.raises(tacit.PeerError, match="party 1 announced"):
        announcement(b"{", 1)
