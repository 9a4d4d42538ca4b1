"""Flags of guarded comparisons.

Flags propagate to everything that is computed from a guarded result, and block nothing else.
"""

import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import tacit
from guarded import COMPILED, layers, with_sum
from tacit.checkpoint import files
from tacit.errors import EncodingError, MisuseError, RangeError, StoppedError
from tacit.flags import Joined, each_of
from tacit.riscv import program as riscv_program
from tacit.tensor import SecretTensor

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_checkpoints import file_of, rewritten

#: A sum of inputs that passes the guard, and one that fails it.
GOOD, BAD = 7, 512

FAMILIES = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
]

PROGRAMS = Path(__file__).parents[2] / "crates" / "riscv" / "programs"


def result(total: float) -> SecretTensor:
    """Returns the program's result on party 1's input."""
    program, weights = COMPILED
    party = tacit.session().party
    bound = program.share(weights if party == 0 else None, owner=0)
    return bound(bound.given(with_sum(total) if party == 1 else None, owner=1))


def opened(secret: torch.Tensor, to: int | None = None) -> Any:
    """Returns the revealed values, or the layers named in the error if a guard failed."""
    assert isinstance(secret, SecretTensor)
    try:
        value = secret.reveal(to=to)
    except RangeError as error:
        return error.layers
    return None if value is None else value.tolist()


def all_say(fn: Callable[..., Any], *args: Any, **setting: Any) -> Any:
    told = tacit.launch(fn, *args, **setting)
    assert all(each == told[0] for each in told)
    return told[0]


# What depends on a flag
# ------------------------------------------------------------------------------


def _written(r: SecretTensor) -> SecretTensor:
    target = tacit.share(torch.zeros(1, 2), owner=0)
    target.copy_(r)
    return target


def _written_to_a_view(r: SecretTensor) -> SecretTensor:
    whole = tacit.share(torch.zeros(3, 2), owner=0)
    whole[1:2] += r
    return whole[0]


def _assigned(r: SecretTensor) -> SecretTensor:
    other = tacit.share(torch.zeros(1, 2), owner=0)
    other.data = r
    return other


def _gradient(r: SecretTensor) -> SecretTensor:
    weight = tacit.share(torch.ones(1, 2), owner=0).requires_grad_()
    (weight * r).sum().backward()
    assert isinstance(weight.grad, SecretTensor)
    return weight.grad


def _trained(r: SecretTensor) -> SecretTensor:
    weight = nn.Parameter(tacit.share(torch.ones(1, 2), owner=0))
    optimizer = torch.optim.Adam([weight])
    (weight * r).sum().backward()
    optimizer.step()
    return weight  # type: ignore[return-value]


def _normalised(r: SecretTensor) -> SecretTensor:
    statistics = nn.BatchNorm1d(2).eval()
    tacit.share_module(statistics, owner=0)
    statistics.running_mean.copy_(r[0])  # type: ignore[union-attr, operator]
    first = statistics(tacit.share(torch.ones(1, 2), owner=0))
    # This call reuses the factors that the first call cached.
    return first - first + statistics(tacit.share(torch.ones(1, 2), owner=0))  # type: ignore[no-any-return]


def _pooled(r: SecretTensor) -> SecretTensor:
    _, indices = nn.functional.max_pool1d(r[None], 2, return_indices=True)
    return indices  # type: ignore[no-any-return]


def _left_for_later(r: SecretTensor) -> SecretTensor:
    p = r.sigmoid().requires_grad_()
    (gradient,) = torch.autograd.grad(p.log().sum(), p)
    return gradient  # type: ignore[return-value]


#: PyTorch's tracer is global to the process, and the parties are threads here.
TRACER = Lock()


def _traced(r: SecretTensor) -> SecretTensor:
    with TRACER:
        graph = make_fx(lambda x: x * 2, tracing_mode="fake")(r)
    return graph(r)  # type: ignore[no-any-return]


def _taken_apart(r: SecretTensor) -> SecretTensor:
    """Works on the components of a secret tensor, as a tracer does."""
    names, rest = r.__tensor_flatten__()
    doubled = {name: getattr(r, name) * 2 for name in names}
    return SecretTensor.__tensor_unflatten__(doubled, rest, r.shape, r.stride())


DERIVED: dict[str, Callable[[SecretTensor], torch.Tensor]] = {
    "itself": lambda r: r,
    "a view": lambda r: r[:, :1].t(),
    "a sum": lambda r: r * 2 + 1,
    "an operand": lambda r: tacit.share(torch.ones(2, 2), owner=0) @ r.t(),
    "a comparison": lambda r: r > 0,
    "an index": lambda r: tacit.share(torch.arange(4), owner=0).gather(0, r.argmax(1)),
    "a choice": lambda r: torch.where(r > 0, torch.ones(1, 2), torch.zeros(1, 2)),
    "a list": lambda r: torch.cat([tacit.share(torch.ones(1, 2), owner=0), r]),
    "one of several": lambda r: r.sort(1).indices,
    "a copy": lambda r: copy.deepcopy(r),
    "detached": lambda r: r.detach().clone(),
    "an integer": lambda r: r.long() // 2,
    "written": _written,
    "written to a view": _written_to_a_view,
    "assigned": _assigned,
    "a gradient": _gradient,
    "trained": _trained,
    "a kept factor": _normalised,
    "indices": _pooled,
    "left for later": _left_for_later,
    "traced": _traced,
    "taken apart": _taken_apart,
    "shuffled": lambda r: tacit.shuffle(r, dim=1),
    "drawn": lambda r: tacit.random.bernoulli((r * 0 + 0.5).clamp(0, 1)),
}


def _derived(name: str, total: float) -> list[Any]:
    unrelated = tacit.share(torch.tensor([3.25]), owner=2)
    r = result(total)
    secret = DERIVED[name](r)
    return [
        opened(secret),
        opened(secret),
        opened(unrelated),
        opened(tacit.share(torch.ones(1), owner=0)),
    ]


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_whatever_is_computed_of_a_failure_is_never_opened(name: str) -> None:
    first, again, unrelated, later = all_say(_derived, name, BAD)
    assert first == again == ("0",)
    if name not in ("traced", "taken apart"):
        # Results of a tracer are not tracked, so all of them count as dependent.
        assert (unrelated, later) == ([3.25], [1.0])


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_whatever_is_computed_within_the_range_is_opened(name: str) -> None:
    told = all_say(_derived, name, GOOD)
    assert not any(isinstance(each, tuple) for each in told)


def _failing_after_a_write() -> Any:
    x = torch.cat([result(BAD), result(BAD) + 3.0])
    mean, variance = tacit.share(torch.zeros(2), owner=0), tacit.share(torch.ones(2), owner=0)
    with pytest.raises(EncodingError):
        nn.functional.batch_norm(
            x, mean, variance, torch.full((2,), 1e30), torch.zeros(2), training=True
        )
    return opened(mean)


def test_what_was_written_by_an_operator_that_failed_depends_on_it() -> None:
    assert all_say(_failing_after_a_write) == ("0",)


# What is overwritten
# ---------------------------------------------------------------------------------


def _buffer() -> SecretTensor:
    """A buffer that depends on a failure, as an optimiser's buffer may."""
    return result(BAD).clone()  # type: ignore[return-value]


def _ones() -> SecretTensor:
    return tacit.share(torch.ones(1, 2), owner=0)


def _by_index(x: SecretTensor) -> None:
    x[...] = _ones()


def _by_slices(x: SecretTensor) -> None:
    x[:, :] = 1.0


def _by_data(x: SecretTensor) -> None:
    x.data = torch.ones(1, 2)


def _by_secret_data(x: SecretTensor) -> None:
    x.data = _ones()


def _by_out(x: SecretTensor) -> None:
    torch.add(_ones(), torch.zeros(1, 2), out=x)


def _by_a_list(x: SecretTensor) -> None:
    torch._foreach_copy_([x], [_ones()])


def _by_zeros_of_a_list(x: SecretTensor) -> None:
    torch._foreach_zero_([x])
    x.add_(1.0)


def _by_a_view(x: SecretTensor) -> None:
    x.t()[:] = _ones().t()


OVERWRITING: dict[str, Callable[[SecretTensor], Any]] = {
    "copy_": lambda x: x.copy_(_ones()),
    "copy_ of what is public": lambda x: x.copy_(torch.ones(1, 2)),
    "zero_": lambda x: x.zero_().add_(1.0),
    "fill_": lambda x: x.fill_(1.0),
    "fill_ with a secret": lambda x: x.fill_(_ones()[0, 0]),
    "an index": _by_index,
    "slices": _by_slices,
    "data": _by_data,
    "secret data": _by_secret_data,
    "out": _by_out,
    "a list": _by_a_list,
    "zeros of a list": _by_zeros_of_a_list,
    "a view": _by_a_view,
}


def _overwritten(name: str) -> list[Any]:
    x = _buffer()
    view = x[:, :1]
    OVERWRITING[name](x)
    return [opened(x), opened(view) if name not in ("data", "secret data") else ("0",)]


@pytest.mark.parametrize("name", sorted(OVERWRITING))
def test_what_is_written_over_depends_on_what_is_written_alone(name: str) -> None:
    whole, view = all_say(_overwritten, name)
    assert whole == [[1.0, 1.0]]
    assert view == (("0",) if name in ("data", "secret data") else [[1.0]])


def _drawn_anew() -> list[Any]:
    x, y = _buffer(), _buffer()
    return [opened(x.normal_()), opened(y.uniform_())]


def test_what_is_drawn_depends_on_nothing_that_was_there() -> None:
    assert all(isinstance(each, list) for each in all_say(_drawn_anew))


def _ones_of_a_failure(x: SecretTensor) -> None:
    x.copy_(result(BAD) * 0 + 1)


def _part(x: SecretTensor) -> None:
    x[:, :1] = 1.0


def _overlapping(x: SecretTensor) -> torch.Tensor:
    """Writes through a view with the shape of the tensor that covers one element twice and another
    not at all."""
    four = torch.cat([x, x], 1)
    four.as_strided((2, 2), (1, 1)).copy_(torch.ones(2, 2))
    return four


def _with_an_operand(x: SecretTensor) -> None:
    torch.add(x, 1.0, out=x)


def _that_fails(x: SecretTensor) -> None:
    with pytest.raises(RuntimeError):
        x.copy_(torch.ones(3, 3))


KEEPING: dict[str, Callable[[SecretTensor], Any]] = {
    "a failure": _ones_of_a_failure,
    "a part": _part,
    "an overlapping view": _overlapping,
    "itself": lambda x: x.copy_(x.clone()),
    "an operand": _with_an_operand,
    "a product": lambda x: x.mul_(0),
    "a mask": lambda x: x.masked_fill_(torch.ones(1, 2, dtype=torch.bool), 1.0),
    "nothing": _that_fails,
}


def _kept(name: str) -> Any:
    x = _buffer()
    found = KEEPING[name](x)
    return opened(x if found is None else found)


@pytest.mark.parametrize("name", sorted(KEEPING))
def test_what_is_left_of_a_failure_is_never_opened(name: str) -> None:
    assert all_say(_kept, name) == ("0",)


def _trained_again() -> list[Any]:
    """A momentum buffer that received a refused gradient, and is then reset."""
    weight = nn.Parameter(_ones())
    optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.5)
    (weight * result(BAD)).sum().backward()
    optimizer.step()
    refused = opened(weight)
    with torch.no_grad():
        weight.copy_(_ones())
        optimizer.state[weight]["momentum_buffer"].zero_()
    optimizer.zero_grad()
    (weight * 1.0).sum().backward()
    optimizer.step()
    return [refused, opened(weight)]


def test_an_optimiser_whose_buffers_are_begun_anew_goes_on() -> None:
    assert all_say(_trained_again) == [("0",), [[0.5, 0.5]]]


def _view_of_what_is_left_for_later() -> list[int]:
    """Writes to a gradient made of powers of a mean inside a hook, and reads it through a view."""
    found: list[int] = []
    leaf = tacit.share(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), owner=0).requires_grad_()
    mean = leaf.pow(2).mean(-1, keepdim=True)
    mask = (result(BAD) > -1000.0).reshape(2, 1)

    def look(gradient: torch.Tensor) -> None:
        whole = gradient.detach()
        view = whole.view(2)
        whole.masked_fill_(mask, 0.0)
        found.extend(len(each_of(each.flags)) for each in (whole, view * 1.0))  # type: ignore[attr-defined]

    mean.register_hook(look)
    ones = tacit.share(torch.ones(2, 1), owner=0)
    (mean + 0.125).rsqrt().mul(ones).sum().backward()
    return found


def test_views_of_what_is_left_for_later_depend_on_what_is_written() -> None:
    assert all_say(_view_of_what_is_left_for_later) == [2, 2]


def _kept_factors() -> list[Any]:
    layers = [nn.BatchNorm1d(2).eval(), nn.ConvTranspose1d(1, 2, 2)]
    told = []
    for module in layers:
        tacit.share_module(module, owner=0)
        for own in module.buffers():
            if own.is_floating_point():
                # The write makes cached factors be computed anew.
                own.mul_(1.0)
        shape = (1, 2) if isinstance(module, nn.BatchNorm1d) else (1, 1, 2)
        bad, good = result(BAD).reshape(shape), tacit.share(torch.ones(shape), owner=1)
        told.append((opened(module(bad)), isinstance(opened(module(good)), list)))
    return told


def test_what_is_kept_of_weights_depends_on_weights_alone() -> None:
    assert all_say(_kept_factors) == [(("0",), True)] * 2


# Who receives the report
# -----------------------------------------------------------------------------------------


def _to(total: float, order: tuple[int | None, ...]) -> list[Any]:
    r = result(total)
    unrelated = tacit.share(torch.tensor([3.25]), owner=0)
    return [(opened(r, to), opened(unrelated, to), opened(r * 0, to)) for to in order]


@pytest.mark.parametrize("setting", FAMILIES, ids=lambda each: each["protocol"])
def test_the_receiver_alone_is_told_each_time(setting: dict[str, Any]) -> None:
    order = (1, 0, 1, None, 0, None)
    for party, told in enumerate(tacit.launch(_to, BAD, order, **setting)):
        for to, each in zip(order, told, strict=True):
            receives = to in (None, party)
            assert each == ((("0",), [3.25], ("0",)) if receives else (None, None, None)), (
                party,
                to,
            )


def _guesses(thresholds: list[Any], total: float) -> list[bool]:
    """Returns what party 0 learns about party 1's results. Party 0 owns the model and has chosen
    its thresholds."""
    seen, party = [], tacit.session().party
    for program, weights in thresholds:
        bound = program.share(weights if party == 0 else None, owner=0)
        r = bound(bound.given(with_sum(total) if party == 1 else None, owner=1))
        opened(r, 1)
        seen.append(opened(tacit.share(torch.ones(1), owner=2), 0) not in (None, [1.0]))
    return seen


def test_the_owner_of_a_model_learns_nothing_by_what_is_revealed_to_it_later() -> None:
    programs = [
        tacit.compile(layers(), with_sum(0), calibrate=with_sum(total), margin=1.0)
        for total in (1, 15, 63)
    ]
    for total in (2, 400):
        assert not any(map(any, tacit.launch(_guesses, programs, total)))


def _both() -> list[Any]:
    program, weights = COMPILED
    bound = program.share(weights, owner=0)
    bad, good = (bound(bound.given(with_sum(total), owner=1)) for total in (BAD, GOOD))
    return [
        opened(good),
        opened(bad),
        opened(good),
        opened(good + bad),
        opened(bad),
        opened(good * 2),
    ]


def test_another_result_is_opened_before_and_after() -> None:
    good = [[10.5, 5.25]]
    wanted = [good, ("0",), good, ("0",), ("0",), [[21.0, 10.5]]]
    assert all_say(_both) == wanted


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = layers()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layers(x)
        return y, y.sum(1)


def test_each_output_of_a_program_is_refused() -> None:
    calibrate = torch.cat([with_sum(total) for total in (2, 4, 7)])
    program, weights = tacit.compile(Two().eval(), with_sum(0), calibrate=calibrate, margin=4.0)

    def run() -> list[Any]:
        bound = program.share(weights, owner=0)
        return [opened(each) for each in bound(bound.given(with_sum(BAD), owner=1))]

    told = all_say(run)
    assert len(told) == 2
    assert all(isinstance(each, tuple) for each in told)


def _beside() -> list[Any]:
    program, weights = COMPILED
    bound = program.share(weights, owner=0, streams=2)
    batch = torch.cat([with_sum(GOOD), with_sum(BAD), with_sum(GOOD)])
    r = bound(bound.given(batch, owner=1, count=3))
    return [opened(r), opened(r[0]), opened(tacit.share(torch.ones(1), owner=0))]


def test_streams_keep_their_flags() -> None:
    first, again, unrelated = all_say(_beside)
    assert first == again != ()
    assert isinstance(first, tuple)
    assert unrelated == [1.0]


# Beyond a session's tensors
# --------------------------------------------------------------------------


def _machine(total: float, file: bytes, receiver: Any) -> list[Any]:
    program = tacit.riscv.Program(file)
    r = result(total)
    given = (r[0] * 4).long() + 7
    try:
        outcome = program.call(
            "greatest", ["given", "len:given"], secret={"given": given}, result=receiver
        )
    except RangeError as error:
        return [error.layers]
    return [outcome.result]


def test_functions_of_the_machine_carry_flags() -> None:
    file = (PROGRAMS / "arrays.elf").read_bytes()
    for to in ("all", 1):
        for total, wanted in ((GOOD, [49]), (BAD, [("0",)])):
            told = tacit.launch(_machine, total, file, to)
            for party, each in enumerate(told):
                assert each == (wanted if to in ("all", party) else [None]), (to, total, party)


def test_the_machine_has_zeros_of_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that receives an error instead of a result learns nothing more from the machine."""
    monkeypatch.setattr(riscv_program, "_refusal", lambda *_: None)
    file = (PROGRAMS / "arrays.elf").read_bytes()
    assert all_say(_machine, BAD, file, "all") == [0]


def _machine_and_on(file: bytes, receiver: Any) -> list[Any]:
    """Makes a call with one output that stays secret, and computes with it afterwards."""
    program = tacit.riscv.Program(file)
    given, told = (result(BAD)[0] * 4).long(), None
    call = {"result": receiver, "output": {"given": None}}
    try:
        outcome = program.call("greatest", ["given", "len:given"], secret={"given": given}, **call)
    except RangeError as error:
        outcome, told = error.outcome, error.layers
    left = outcome.outputs["given"]
    mine = tacit.share(torch.tensor([4, 9]), owner=0)
    later = program.call("greatest", ["mine", "len:mine"], secret={"mine": mine})
    return [told, outcome.result, opened(left * 1, 0), opened(mine + 1), later.result]


@pytest.mark.parametrize("receiver", [1, "all"])
def test_parties_go_on_whoever_of_them_is_told_of_a_call(receiver: Any) -> None:
    file = (PROGRAMS / "arrays.elf").read_bytes()
    for party, each in enumerate(tacit.launch(_machine_and_on, file, receiver)):
        told = ("0",) if receiver in ("all", party) else None
        assert each == [told, None, ("0",) if party == 0 else None, [5, 10], 9]


def _ends_by_a_call(file: bytes) -> None:
    """Makes a call whose failure is reported to all parties."""
    given = (result(BAD)[0] * 4).long()
    # The flags are evaluated first, so that one message reports to all parties.
    opened(given, 1)
    tacit.riscv.Program(file).call("greatest", ["given", "len:given"], secret={"given": given})


def test_all_are_told_of_a_call_before_one_ends_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = (PROGRAMS / "arrays.elf").read_bytes()

    def late(known: Any) -> Any:
        if tacit.session().party == 1:
            time.sleep(0.5)
        return each_of(known)

    def run() -> None:
        try:
            _ends_by_a_call(file)
        except tacit.TacitError as error:
            (tmp_path / f"{tacit.session().party}").write_text(type(error).__name__)
            raise

    monkeypatch.setattr(riscv_program, "each_of", late)
    with pytest.raises(RangeError):
        tacit.launch(run)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["RangeError"] * 3


def _stopped(total: float, file: bytes) -> list[Any]:
    program = tacit.riscv.Program(file)
    given, mine = (result(total)[0] * 4).long(), tacit.share(torch.tensor([4, 9]), owner=0)
    try:
        program.call("greatest", ["given", "len:given"], secret={"given": given}, result=1, limit=3)
    except (RangeError, StoppedError) as error:
        return [type(error), opened(mine)]
    return []


def test_a_receiver_is_told_where_the_program_stops() -> None:
    """The program may have stopped because of the zeros that it ran on."""
    file = (PROGRAMS / "arrays.elf").read_bytes()
    for total, wanted in ((GOOD, StoppedError), (BAD, RangeError)):
        for party, each in enumerate(tacit.launch(_stopped, total, file)):
            assert each == [wanted if party == 1 else StoppedError, [4, 9]]


def _machine_output(total: float, file: bytes) -> list[Any]:
    program = tacit.riscv.Program(file)
    given = (result(total)[0] * 4).long()
    outcome = program.call(
        "greatest",
        ["given", "len:given"],
        secret={"given": given},
        result=None,
        output={"given": None},
    )
    return [opened(outcome.outputs["given"]), opened(tacit.share(torch.ones(1), owner=0))]


def test_what_the_machine_leaves_secret_carries_flags() -> None:
    file = (PROGRAMS / "arrays.elf").read_bytes()
    assert all_say(_machine_output, BAD, file) == [("0",), [1.0]]
    assert all_say(_machine_output, GOOD, file) == [[42, 21], [1.0]]


class Saved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 2))
        self.other = nn.Parameter(torch.zeros(1, 2))
        #: A buffer that stays plain.
        self.steps = nn.Buffer(torch.zeros((), dtype=torch.int64))


def _save(path: str, total: float) -> None:
    module = Saved()
    tacit.share_module(module, owner=0)
    with torch.no_grad():
        module.weight.copy_(result(total))
    tacit.save_checkpoint(path, module, step=1)


def _load(path: str) -> list[Any]:
    module = Saved()
    tacit.load_checkpoint(path, module)
    try:
        state = tacit.reveal_module(module)
    except RangeError as error:
        return [error.layers, opened(module.weight), opened(module.weight, 1)]
    assert state is not None
    return [state["weight"].tolist()]


@pytest.mark.parametrize("setting", FAMILIES, ids=lambda each: each["protocol"])
def test_checkpoints_carry_flags_into_another_session(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    tacit.launch(_save, str(tmp_path / "bad"), BAD, **setting)
    for party, told in enumerate(tacit.launch(_load, str(tmp_path / "bad"), **setting)):
        assert told == [("0",), ("0",), ("0",) if party == 1 else None]
    tacit.launch(_save, str(tmp_path / "good"), GOOD, **setting)
    assert all_say(_load, str(tmp_path / "good"), **setting) == [[[10.5, 5.25]]]


def _save_both(path: str) -> None:
    module = tacit.share_module(Saved(), owner=0, trainable=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.5, foreach=False)
    with torch.no_grad():
        module.weight.copy_(result(BAD))
        module.other.copy_(result(GOOD))
    (module.weight.detach() * module.weight).sum().backward()
    (module.other * _ones() * 2.0).sum().backward()
    optimizer.step()
    tacit.save_checkpoint(path, module, optimizer, step=1)


def _load_both(path: str) -> list[Any]:
    module = Saved()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.5, foreach=False)
    tacit.load_checkpoint(path, module, optimizer)
    both = module.weight, module.other
    buffers = [optimizer.state[each]["momentum_buffer"] for each in both]
    return [opened(each) for each in (*both, *buffers)]


@pytest.mark.parametrize("setting", FAMILIES, ids=lambda each: each["protocol"])
def test_each_tensor_of_a_checkpoint_keeps_its_own_flags(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    tacit.launch(_save_both, str(tmp_path), **setting)
    refused, right = ("0",), [[9.5, 4.25]]
    assert all_say(_load_both, str(tmp_path), **setting) == [refused, right, refused, [[2.0, 2.0]]]


def test_sets_of_flags_that_cannot_be_are_refused(tmp_path: Path) -> None:
    tacit.launch(_save_both, str(tmp_path))
    path = file_of(tmp_path, 1, 1)
    whole = path.read_bytes()
    public = files.read(path, 1).public
    count = len(public["flags"])
    everything = public["depends"]["module.weight"]
    assert set(public["depends"]) == {
        "module.weight",
        "module.other",
        "optimizer.state.0.momentum_buffer",
    }
    for depends in (
        {"module.weight": files.written_set([count], count + 1)},
        {"module.weight": everything + "00"},
        {"module.weight": "00" * (len(everything) // 2)},
        {"module.weight": everything.upper() + "F"},
        {"module.weight": ""},
        {"module.weight": [0]},
        {"module.weight": None},
        {"module.none": everything},
        {"module.steps": everything},
        {"flags": everything},
        [],
    ):
        path.write_bytes(whole)
        rewritten(path, depends=depends)
        with pytest.raises(MisuseError, match="its manifest is not as it should be"):
            tacit.launch(_load_both, str(tmp_path))
    path.write_bytes(whole)
    # A valid manifest that differs from the others'.
    rewritten(path, depends={"module.other": everything})
    with pytest.raises(MisuseError, match="has a checkpoint of other depends"):
        tacit.launch(_load_both, str(tmp_path))


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 2))
        self.mask = nn.Buffer(torch.ones(2, dtype=torch.bool))


def _module(total: float) -> Any:
    module = Masked()
    module.mask = tacit.share(torch.ones(2, dtype=torch.bool), owner=0)
    tacit.share_module(module, owner=0)
    with torch.no_grad():
        module.weight.copy_(result(total))
    try:
        state = tacit.reveal_module(module, to=1)
    except RangeError as error:
        state = error.layers
    found = state if isinstance(state, tuple) else state is not None
    return found, opened(tacit.share(torch.ones(1), owner=0))


def test_a_module_is_opened_to_its_end_whatever_its_receiver_is_told() -> None:
    assert tacit.launch(_module, BAD) == [(False, [1.0]), (("0",), [1.0]), (False, [1.0])]
    assert tacit.launch(_module, GOOD) == [(False, [1.0]), (True, [1.0]), (False, [1.0])]


# Cost
# ---------------------------------------------------------------------------------------


def _rounds(total: float) -> list[int]:
    r, before = result(total), tacit.share(torch.ones(1), owner=0)
    # Compare public values first, and bring all parties to this point.
    opened(before)
    opened(before)
    rounds = []
    for to in (None, None, 1, 1):
        so_far = tacit.session().meter.total.rounds
        opened(r, to)
        rounds.append(tacit.session().meter.total.rounds - so_far)
    return rounds


def test_what_all_know_is_told_once() -> None:
    # Tossing coins takes one round, evaluating the flags 7, opening them one, and comparing public
    # values at most two. Flags that are not known to all parties take three more rounds each time.
    for rounds in tacit.launch(_rounds, GOOD):
        assert rounds[0] <= 1 + 7 + 1 + 1 + 2
        assert sum(rounds[1:]) <= 3 + 2
    for rounds in tacit.launch(_rounds, BAD):
        assert rounds[0] <= 1 + 7 + 1 + 2
        assert sum(rounds[1:]) <= 2


def _many() -> tuple[int, int]:
    x, step = result(GOOD), result(GOOD)
    weight = x.clone()
    for _ in range(200):
        weight.add_(step, alpha=1 / 256)
    known, nodes = [weight.flags], set()
    while known:
        at = known.pop()
        if isinstance(at, Joined) and id(at) not in nodes:
            nodes.add(id(at))
            known += at.of
    return len(each_of(weight.flags)), len(nodes)


def test_flags_are_counted_once_and_do_not_grow_where_the_same_values_meet() -> None:
    for flags, nodes in tacit.launch(_many):
        assert flags == 4
        assert nodes < 20
