"""Checkpoints of training: saved, resumed, and refused if the files do not belong together."""

import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit import atomic_write, checksums
from tacit.checkpoint import files
from tacit.checkpoint.files import KIND, CheckpointFile

torch.manual_seed(4)
INPUTS, TARGETS = torch.randn(12, 5), torch.randn(12, 2)


def network() -> nn.Module:
    """Makes a small network with running statistics."""
    torch.manual_seed(9)
    return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def make() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Makes a secret network and its optimizer, in a party."""
    model = tacit.share_module(network(), owner=0, trainable=True)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Trains some steps, in a party."""
    x, y = tacit.share(INPUTS, owner=1), tacit.share(TARGETS, owner=1)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()


def saved(folder: str, step: int = 3) -> dict[str, Any]:
    """Trains, saves and continues, in a party."""
    model, optimizer = make()
    train(model, optimizer, step)
    tacit.save_checkpoint(folder, model, optimizer, step=step)
    train(model, optimizer, 2)
    state = tacit.reveal_module(model)
    assert state is not None
    return state


def resumed(
    folder: str, step: int | None = None, is_secret: bool = True
) -> tuple[int, dict[str, Any]]:
    """Resumes another session's checkpoint and trains as many further steps, in a party."""
    if is_secret:
        model, optimizer = make()
    else:
        model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    at = tacit.load_checkpoint(folder, model, optimizer, step=step)
    train(model, optimizer, 2)
    state = tacit.reveal_module(model)
    assert state is not None
    return at, state


SETTINGS = [("replicated", 3, None), ("additive", 2, "dealer"), ("plain", 2, None)]


@pytest.mark.parametrize(("protocol", "parties", "source"), SETTINGS)
@pytest.mark.parametrize("is_secret", [True, False])
def test_another_session_goes_on_where_one_stopped(
    tmp_path: Path, protocol: str, parties: int, source: str | None, is_secret: bool
) -> None:
    setting = {"protocol": protocol, "parties": parties, "source": source}
    through = tacit.launch(saved, str(tmp_path), **setting)[0]
    for at, state in tacit.launch(resumed, str(tmp_path), None, is_secret, **setting):
        assert at == 3
        assert list(state) == list(through)
        for name, value in state.items():
            assert torch.allclose(value.double(), through[name].double(), atol=2e-3), name
        assert int(state["1.num_batches_tracked"]) == 5
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_shows_a_value(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    tacit.launch(saved, str(tmp_path))
    name = "module.0.weight"
    shares = [load_file(path)[name] for path in sorted(tmp_path.iterdir())]
    assert len(shares) == 3
    # Shares are uniform words. For each file, the chance that none of 20 has a high bit is 2^-20.
    assert all((share.abs() > 1 << 40).any() for share in shares)
    plain = tacit.launch(lambda: tacit.reveal_module(make()[0]), protocol="plain")[0]["0.weight"]
    assert sum(shares).abs().max() < 1 << 20
    assert (sum(shares).double() / 2**20 - plain.double()).abs().max() < 0.5


def test_the_owner_alone_is_given_the_weights() -> None:
    def program() -> Any:
        model, _ = make()
        return tacit.reveal_module(model, to=1)

    found = tacit.launch(program)
    assert found[0] is None
    assert found[2] is None
    model = network()
    for name, value in model.state_dict().items():
        assert torch.allclose(found[1][name].double(), value.double(), atol=1e-4)
    assert model.load_state_dict(found[1])


def refusal(folder: Path, *args: Any, **setting: Any) -> str:
    """Returns the error of a session that tries to resume."""
    with pytest.raises(tacit.MisuseError) as caught:
        tacit.launch(resumed, str(folder), *args, **setting)
    return str(caught.value)


def file_of(folder: Path, party: int, step: int = 3) -> Path:
    """Returns the path of a party's file."""
    return folder / f"step-{step:09d}-party-{party}.safetensors"


def rewritten(path: Path, **changes: Any) -> None:
    """Rewrites a file with a changed manifest."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header["__metadata__"]["manifest"])
    for name, value in changes.items():
        (manifest if name in manifest else manifest["public"])[name] = value
    header["__metadata__"]["manifest"] = json.dumps(manifest)
    header["__metadata__"]["checksum"] = checksums.field(KIND)
    new = json.dumps(header).encode()
    made = len(new).to_bytes(8, "little") + new + content[8 + length :]
    path.write_bytes(checksums.filled(made, KIND))


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    tacit.launch(saved, str(first))
    tacit.launch(saved, str(second))
    assert "has no checkpoint of step 4 of all parties; party" in refusal(first, 4)
    assert "has no checkpoint" in refusal(tmp_path / "none")
    assert "was saved with parties 3" in refusal(
        first, protocol="additive", source="dealer", parties=2
    )

    def mixed(name: str) -> Path:
        return Path(shutil.copytree(first, tmp_path / name))

    swapped = mixed("swapped")
    shutil.copy(file_of(first, 0), file_of(swapped, 1))
    assert "it is the file of party 0, and this is party 1" in refusal(swapped)
    sessions = mixed("sessions")
    shutil.copy(file_of(second, 2), file_of(sessions, 2))
    assert "has a checkpoint of identifier" in refusal(sessions)
    steps = mixed("steps")
    os.replace(file_of(steps, 1), file_of(steps, 1, 4))
    assert "has no checkpoint of a step that all parties have" in refusal(steps)
    shutil.copy(file_of(steps, 1, 4), file_of(steps, 0, 4))
    shutil.copy(file_of(steps, 1, 4), file_of(steps, 2, 4))
    assert "not taken" in refusal(steps)


#: A manifest's entry for an optimizer.
ABOUT: dict[str, Any] = {"class": "SGD", "groups": [], "state": {"items": []}}


def test_files_that_are_not_whole_or_not_ours_are_refused(tmp_path: Path) -> None:
    tacit.launch(saved, str(tmp_path))
    path = file_of(tmp_path, 1)
    whole = path.read_bytes()
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "is not taken" in refusal(tmp_path)
    for place in (len(whole) - 3, len(whole) // 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert "is not taken" in refusal(tmp_path)
    deep = "[" * 100_000 + "]" * 100_000
    header = json.dumps({"__metadata__": {"manifest": deep}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    assert "it has no manifest" in refusal(tmp_path)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"version": 3}, "it is of version 3, and this is version 4"),
        ({"format": "other"}, "it is no checkpoint of tacit"),
        ({"step": 4}, "it is of step 4, whatever its name says"),
        ({"tensors": {}, "optimizer": None}, "its tensors are not those of its manifest"),
        (
            {"tensors": {"x": ["float32", [1 << 60, 1 << 60], 16]}},
            "its manifest is not as it should be",
        ),
        ({"optimizer": {"tensor": "none"}}, "its manifest is not as it should be"),
        (
            {"optimizer": {**ABOUT, "state": {"tensor": "none"}}},
            "its manifest is not as it should be",
        ),
        ({"optimizer": {**ABOUT, "class": 3}}, "its manifest is not as it should be"),
    ]
    for change, message in changes:
        path.write_bytes(whole)
        rewritten(path, **change)
        assert message in refusal(tmp_path)
    path.write_bytes(whole)
    assert tacit.launch(resumed, str(tmp_path))[0][0] == 3


def test_nothing_is_overwritten_before_the_new_one_is_whole(tmp_path: Path) -> None:
    def program() -> list[str]:
        model, optimizer = make()
        for step in (1, 2):
            tacit.save_checkpoint(str(tmp_path), model, optimizer, step=step)
        fails = tacit.session().party == 1
        if fails:
            os.replace, kept = _fail, os.replace
        try:
            tacit.save_checkpoint(str(tmp_path), model, optimizer, step=3)
        finally:
            if fails:
                os.replace = kept
        return []

    with pytest.raises(
        tacit.SetupError, match=r"cannot write the checkpoint .*step-000000003-.*: no space"
    ):
        tacit.launch(program, transport="tcp")
    assert all(file_of(tmp_path, party, step).exists() for party in range(3) for step in (1, 2))
    assert not list(tmp_path.glob(f"*{atomic_write.UNFINISHED}"))
    assert tacit.launch(resumed, str(tmp_path))[0][0] == 2


def test_a_session_that_resumed_and_was_killed_while_it_saved_is_no_hindrance(
    tmp_path: Path,
) -> None:
    """Such a crash leaves files of one step from two sessions. The step before it is complete."""
    first, second = tmp_path / "first", tmp_path / "second"

    def save(folder: str) -> None:
        model, optimizer = make()
        for step in (2, 3):
            train(model, optimizer, 1)
            tacit.save_checkpoint(folder, model, optimizer, step=step)

    for folder in (first, second):
        tacit.launch(save, str(folder))
    shutil.copy(file_of(second, 1), file_of(first, 1))
    assert tacit.launch(resumed, str(first))[0][0] == 2
    assert "has a checkpoint of identifier" in refusal(first, 3)
    # If the latest file is damaged, the session does not silently resume an earlier one.
    file_of(first, 1).write_bytes(file_of(first, 1).read_bytes()[:5])
    assert "is not taken: it is cut" in refusal(first)


def test_what_a_party_that_was_killed_had_begun_to_write_goes(tmp_path: Path) -> None:
    """A party removes only its own remains, because parties may share a folder."""

    def end(path: Any, *_: Any, **__: Any) -> None:
        if os.path.exists(path):
            raise KeyboardInterrupt

    def save(step: int) -> None:
        tacit.save_checkpoint(str(tmp_path), nn.Linear(2, 2), step=step)

    for party in (1, 7):
        file = CheckpointFile({"step": 1}, party, {})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(atomic_write.os, "replace", end)
            patch.setattr(atomic_write.os, "unlink", end)
            with pytest.raises(KeyboardInterrupt):
                files.write(tmp_path, file)
    begun = sorted(tmp_path.iterdir())
    assert len(begun) == 2
    tacit.launch(save, 2, protocol="plain", parties=2)
    assert not begun[0].exists()
    assert begun[1].exists()


def _fail(*_: Any) -> None:
    raise OSError("no space")


def test_older_files_go_and_two_stay(tmp_path: Path) -> None:
    def program() -> None:
        model, optimizer = make()
        for step in range(5):
            tacit.save_checkpoint(str(tmp_path), model, optimizer, step=step)

    tacit.launch(program)
    assert {path.name[:14] for path in tmp_path.iterdir()} == {"step-000000003", "step-000000004"}


def test_parties_that_save_different_things_are_refused(tmp_path: Path) -> None:
    def program() -> None:
        tacit.save_checkpoint(str(tmp_path), make()[0], step=tacit.session().party // 2)

    with pytest.raises(
        tacit.MisuseError, match="party 2 saves step 1, party 0 '0'; save the same step"
    ):
        tacit.launch(program)
    assert not list(tmp_path.iterdir())


def test_another_architecture_is_refused_and_nothing_of_it_changed(tmp_path: Path) -> None:
    def program() -> str:
        model = tacit.share_module(nn.Sequential(nn.Linear(5, 3)), owner=0)
        before = copy.deepcopy(model)
        try:
            tacit.load_checkpoint(str(tmp_path), model)
        except tacit.MisuseError as error:
            assert torch.equal(model[0].weight.reveal(), before[0].weight.reveal())
            return str(error)
        return ""

    tacit.launch(saved, str(tmp_path))
    message = tacit.launch(program)[0]
    assert "is of another architecture: 0.bias has shape [4] there and [3] here" in message


def sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, **options)


def two_groups(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([{"params": part.parameters()} for part in (model[0], model[3])], lr=0.1)


def backwards(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(list(model.parameters())[::-1], lr=0.1)


def of_another(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([*model.parameters(), *nn.Linear(2, 2).parameters()], lr=0.1)


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters())


Making = Callable[[nn.Module], torch.optim.Optimizer]

#: The optimizer that saved, the optimizer that resumes, and the expected error.
OTHER_OPTIMIZERS: dict[str, tuple[Making, Making, str]] = {
    "class": (adam, sgd, "was saved with the optimizer Adam, and this is SGD"),
    "class the other way": (sgd, adam, "was saved with the optimizer SGD, and this is Adam"),
    "number of groups": (two_groups, sgd, "other parameter groups: 2 of them there and 1 here"),
    "order": (
        sgd,
        backwards,
        "number 0 has 0.weight, 0.bias, 1.weight, 1.bias, 3.weight, 3.bias there and 3.bias",
    ),
    "parameters": (sgd, of_another, "3.weight, 3.bias, [2, 2], [2] here"),
}


@pytest.mark.parametrize("is_secret", [True, False])
@pytest.mark.parametrize("what", OTHER_OPTIMIZERS)
def test_another_optimizer_is_refused_and_nothing_changed(
    tmp_path: Path, what: str, is_secret: bool
) -> None:
    saving, resuming, said = OTHER_OPTIMIZERS[what]

    def save() -> None:
        model = tacit.share_module(network(), owner=0, trainable=True)
        optimizer = saving(model)
        train(model, optimizer, 1)
        tacit.save_checkpoint(str(tmp_path), model, optimizer, step=3)

    def resume() -> str:
        model = tacit.share_module(network(), owner=0, trainable=True) if is_secret else network()
        optimizer = resuming(model)
        parameters, state = list(model.parameters()), optimizer.state_dict()
        before = tacit.reveal_module(model)
        with pytest.raises(tacit.MisuseError) as caught:
            tacit.load_checkpoint(str(tmp_path), model, optimizer)
        after = tacit.reveal_module(model)
        assert all(mine is kept for mine, kept in zip(model.parameters(), parameters, strict=True))
        assert optimizer.state_dict() == state
        assert before is not None
        assert after is not None
        assert all(torch.equal(after[name], before[name]) for name in before)
        return str(caught.value)

    tacit.launch(save, protocol="plain", parties=2)
    for found in tacit.launch(resume, protocol="plain", parties=2):
        assert said in found


def test_a_state_that_an_optimizer_has_not_is_refused(tmp_path: Path) -> None:
    def save() -> None:
        model, optimizer = make()
        train(model, optimizer, 1)
        tacit.save_checkpoint(str(tmp_path), model, optimizer, step=3)

    tacit.launch(save)
    path = file_of(tmp_path, 0)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    public = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["manifest"])["public"]
    state = dict(public["optimizer"]["state"]["items"])
    (group,) = state["param_groups"]["list"]
    options = [option for option in group["items"] if option[0] != "momentum"]
    changes = [
        [["state", state["state"]]],
        [["state", {"items": [[77, {"items": []}]]}], ["param_groups", state["param_groups"]]],
        [["state", state["state"]], ["param_groups", {"list": []}]],
        [["state", state["state"]], ["param_groups", {"list": [{"items": options}]}]],
        [["state", state["state"]], ["param_groups", {"list": [3]}]],
    ]
    for items in changes:
        for party in range(3):
            about = {**public["optimizer"], "state": {"items": items}}
            rewritten(file_of(tmp_path, party), optimizer=about)
        assert "has a state that does not fit this SGD" in refusal(tmp_path)


def test_another_dtype_or_what_was_plain_is_refused(tmp_path: Path) -> None:
    def program(is_double: bool) -> str:
        model = network().double() if is_double else tacit.share_module(network(), owner=0)
        with pytest.raises(tacit.MisuseError) as caught:
            tacit.load_checkpoint(str(tmp_path), model)
        return str(caught.value)

    def save() -> None:
        tacit.save_checkpoint(str(tmp_path), network(), step=1)

    tacit.launch(save, protocol="plain", parties=2)
    found = [
        tacit.launch(program, is_double, protocol="plain", parties=2)[0]
        for is_double in (True, False)
    ]
    assert "0.bias has dtype float32 there and float64 here" in found[0]
    assert "has a plain 0.weight, which is secret here" in found[1]
