"""A program in a session: its weights are shared by their owner, and it runs on the operators that
secret tensors have; there is no second runtime."""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import fx

from tacit import _core, checks
from tacit.compilation import streams
from tacit.compilation.allowlist import name_of
from tacit.compilation.approximating import fits_of
from tacit.compilation.check_inputs import check_interval, placeholder_of, same_kind
from tacit.compilation.graph import Values
from tacit.compilation.signature import Runnable
from tacit.compilation.stages import stages
from tacit.errors import (
    CostWarning,
    DeviationError,
    MisuseError,
    TacitError,
    printable,
    reason,
    setup_error,
)
from tacit.fixed import DEFAULT, Scale
from tacit.module import share_weights_of
from tacit.refusals import Task, misuse, refusal, settle
from tacit.sessions import Session, session
from tacit.sharing import share_as, share_bits
from tacit.tensor import SecretTensor, check_party
from tacit.trace import module_paths

#: The label of what is done before the first layer.
SHARING = "(sharing the weights)"

#: What their owner can do about weights that their scale changes noticeably: it is the program's,
#: which was chosen so where there were calibration data.
COMPILE_AGAIN = (
    "compile the model with calibration data, on which scales are tried, or with these weights "
    "scaled up; "
    "tacit inspect shows the fraction bits of all"
)
CALIBRATED = (
    "on its calibration data the program gives what is as good as what the plain model gives all "
    "the same; "
    "where that does not hold of other inputs, which tacit try shows, compile the model with "
    "calibration "
    "data like them"
)


class Bound:
    """A program with secret weights, in the session that they were shared in."""

    def __init__(
        self, program: Runnable, current: Session, weights: Mapping[str, torch.Tensor], count: int
    ) -> None:
        self.program = program
        self._session = current
        self._weights = weights
        self._streams = count
        self._stages = stages(program.graph)
        #: What a run takes of inputs that were given, from its rehearsal, by the session's width
        #: and by how many examples are side by side.
        self._rehearsed: dict[tuple[int, bool, int], _core.Expectation | None] = {}
        self._is_told = False

    def one_by_one(self) -> None:
        """Has steps go one after another from here on, as those of a module do that is called as it
        stands. All parties do so."""
        self._stages = [[[node for node in self.program.graph.nodes if node.op == "call_function"]]]

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """What the program gives of inputs, secret or public: a tensor, or a tuple of them.

        Of a batch, so many times the rows that the program was compiled for, it is what it gives of
        each example alone, one below the other; as many of them as there are streams are computed
        side by side.

        Widths that were proved hold for numbers within the intervals that ``inspect`` shows. A
        plain tensor is checked against them; of a secret tensor nobody can know, so all comparisons
        are of 64 bits then, unless it came by ``given``, which checks it at its owner; a
        CostWarning says so once. Where the protocol has guards, and all inputs came so, widths are
        those of the guards; one that fails leaves no
        result: ``reveal`` raises.

        Raises:
            MisuseError: an input has another shape or dtype, or is outside of its interval.
        """
        current, program = session(), self.program
        if current is not self._session:
            raise MisuseError(
                "these weights were shared in another session: share them in this one"
            )
        if len(inputs) != len(program.inputs):
            raise MisuseError(f"the program takes {len(program.inputs)} inputs, not {len(inputs)}")
        given = dict(zip(program.inputs, inputs, strict=True))
        count = same_kind(program, given)
        for name, x in given.items():
            if not isinstance(x, SecretTensor):
                check_interval(program, name, x)
        unknown = [
            program.inputs[name].name for name, x in given.items() if not self._is_promised(name, x)
        ]
        is_proved = not unknown
        self._tell_of_costs(unknown)
        is_given = is_proved and all(isinstance(x, SecretTensor) for x in given.values())
        # What is public is not guarded, so nothing would follow from guards.
        widths = _Widths(is_proved, is_given and current.core.guards)
        if widths.guarded and any(_is_guarded(node) for node in program.graph.nodes):
            # Inputs are fixed now: nobody who chose one knew these coins.
            current.core.toss()
        results = []
        with torch.no_grad(), current.using(scale=Scale(program.scale)):
            for first in range(0, count, self._streams):
                together = range(first, min(count, first + self._streams))
                examples = [
                    {name: _alone(streams.one_of(x, at, count)) for name, x in given.items()}
                    for at in together
                ]
                results += self._together(examples, widths, is_given)
            parts = tuple(streams.joined(each, current) for each in zip(*results, strict=True))
        return parts[0] if len(parts) == 1 else parts

    def _together(
        self, examples: list[dict[str, torch.Tensor]], widths: "_Widths", is_given: bool
    ) -> list[tuple[Any, ...]]:
        """What the program gives of these examples, which are computed side by side."""
        current, program = self._session, self.program
        lasting = {**self._weights, **program.constants}

        def run(go: streams.Way) -> list[tuple[Any, ...]]:
            under_way = [Values(program.graph, {**example, **lasting}) for example in examples]
            for stage in self._stages:
                go(
                    current,
                    [
                        [partial(_carry_out, values, node, widths) for node in lane]
                        for values in under_way
                        for lane in stage
                    ],
                )
            return [values.results() for values in under_way]

        with self._expected(
            current, partial(run, streams.by_turns), len(examples) if is_given else 0
        ):
            return run(streams.side_by_side)

    def given(
        self, tensor: torch.Tensor | None, *, owner: int, name: str | None = None, count: int = 1
    ) -> SecretTensor:
        """Shares an input, after its owner has checked that it is within its interval. Where it is
        not, every party raises, the others without any value, and the session goes on.

        Args:
            tensor: the owner's; ``None`` in the others.
            name: of the input, where the program takes several.
            count: of how many examples, if it is a batch; the same in every party.

        Raises:
            EncodingError: it has a NaN, or values that are too large.
            MisuseError: it has another shape, or numbers outside of the interval; or its owner
                passes none.
        """
        program = self.program
        placeholder = placeholder_of(program, name)
        check_party(self._session, owner, "owner")
        wanted = program.inputs[placeholder]
        shape = streams.batch(wanted, count)

        def check() -> None:
            if tensor is None:
                raise misuse("nothing", f"party {owner} owns the input and must pass it, not None")
            found = same_kind(program, {placeholder: tensor})
            if found != count:
                raise misuse(
                    "kind",
                    f"the input {wanted.name} is {found} examples, not {count}: "
                    f"say given(..., count={found}) in every party",
                )
            check_interval(program, placeholder, tensor)

        made = share_as(
            tensor,
            shape,
            wanted.dtype,
            owner=owner,
            scale=Scale(program.scale),
            what=f"the input {wanted.name} of the program",
            check=check,
        )
        # Forgotten as soon as somebody writes to it.
        self._session.storages.derive(self._promise(placeholder), [made._parts[0]], True)
        return made

    @contextmanager
    def _expected(self, current: Session, run: Callable[[], Any], given: int) -> Iterator[None]:
        """Within it the source of correlations knows what will be taken of it, and makes that a
        layer ahead and nothing else. It follows from shapes: ``run`` is gone through before,
        without numbers or messages.

        Inputs that were ``given``, of so many examples, have one shape, one scale and no names.
        With the weights' masks kept, the session's width and checked mode are left that what is
        taken could depend on, so it is found out once for each.

        Where steps go side by side they take by turns, in another order than when it is gone
        through: at most what a few of them take is then made earlier than it had to be.
        """
        core, trace = current.core, current.trace
        key = current.numerics.width, current.numerics.is_checked, given
        known = self._rehearsed.get(key)
        try:
            if (known is None or not core.expect_again(known)) and core.rehearse():
                current.trace = None
                with current.storages.rehearsed(), checks.off(current):
                    run()
                current.trace = trace
                found = core.expect()
                if given:
                    self._rehearsed[key] = found
            yield
        finally:
            current.trace = trace
            core.expect_no_more()

    def _is_promised(self, placeholder: str, x: torch.Tensor) -> bool:
        """Whether somebody has held the numbers against the interval of that input, as they are
        now."""
        if not isinstance(x, SecretTensor):
            return True
        return self._session.storages.derived(self._promise(placeholder), [x._parts[0]]) is not None

    def _tell_of_costs(self, unknown: list[str]) -> None:
        """Says once, of inputs of which nothing is proved, what they cost, and how to share them
        instead."""
        chosen = ("width", "guard", "narrow", "scale", "fits")
        nodes = self.program.graph.nodes
        if (
            not unknown
            or self._is_told
            or not any(node.meta.get(name) for node in nodes for name in chosen)
        ):
            return
        self._is_told = True
        warnings.warn(
            f"nobody has held {', '.join(unknown)} against what the program was compiled for, so "
            f"nothing is "
            "proved: comparisons have 64 bits and no guards, and nothing that was saved by proofs "
            "is; share "
            "inputs by program.share(...).given(x, owner=...), which checks them at their owner, "
            "instead of "
            "tacit.share",
            CostWarning,
            stacklevel=3,
        )

    def _promise(self, placeholder: str) -> tuple[str, str, str]:
        return "promised", self.program.digest, placeholder


def revealed(result: torch.Tensor, to: int | None = None) -> torch.Tensor | None:
    """What a program gave, shown to one party or to all; what follows from public values alone is
    public."""
    return result.reveal(to=to) if isinstance(result, SecretTensor) else result


def share_weights(
    program: Runnable,
    weights: Mapping[str, torch.Tensor] | None,
    owner: int,
    count: int = 1,
    remedy: str | None = None,
    check: Callable[[], None] | None = None,
) -> Bound:
    """Shares the owner's weights, after all parties were seen to have the same program and as many
    streams. Where the owner has none, or its check raises, all parties raise.

    Args:
        count: of streams.
        remedy: what is said of weights that are too small, if not what a program's owner can do.
        check: called in the owner alone: raises where these are no weights of the program.

    Raises:
        SetupError: a party has another program (both hashes are shown), or other streams.
        MisuseError: the owner gives no weights, or its check raises.
    """
    current = session()
    check_party(current, owner, "owner")
    streams.check(count)
    task = Task()
    if current.party == owner:
        with task.alone():
            if weights is None:
                raise misuse(
                    "nothing", f"party {owner} owns the weights and must pass them, not None"
                )
            if check is not None:
                check()
    else:
        # Only the owner's numbers count; the others need no memory for any.
        weights = None
    _compare(current, program, count, owner, task)
    holder = torch.nn.Module()
    numbers = {name: each for name, each in program.weights.items() if each.bits}
    for name, weight in numbers.items():
        value = torch.zeros(()).expand(weight.shape) if weights is None else weights[name]
        holder.register_buffer(name, value)
    with module_paths.labelled(SHARING):
        scales = {name: each.bits for name, each in numbers.items()}
        share_weights_of(holder, owner, scales, trainable=False, remedy=remedy or _remedy(program))
        booleans = _share_booleans(program, weights, owner)
    return Bound(program, current, {**dict(holder.named_buffers()), **booleans}, count)


def _share_booleans(
    program: Runnable, weights: Mapping[str, torch.Tensor] | None, owner: int
) -> dict[str, torch.Tensor]:
    """Those of the weights, in one message."""
    shapes = {name: each.shape for name, each in program.weights.items() if not each.bits}
    sizes = [math.prod(shape) for shape in shapes.values()]
    if not sum(sizes):
        return {name: torch.zeros(shape, dtype=torch.bool) for name, shape in shapes.items()}
    known = None if weights is None else torch.cat([weights[name].flatten() for name in shapes])
    shared = share_bits(known, sum(sizes), owner=owner)
    parts = zip(shapes.items(), shared.split(sizes), strict=True)
    return {name: part.reshape(shape) for (name, shape), part in parts}


def _remedy(program: Runnable) -> str:
    """By whether the program was calibrated: then its inputs have intervals, and where they are
    integers its scale is hardly the usual one."""
    was = program.scale != DEFAULT.bits or any(each.interval for each in program.inputs.values())
    return CALIBRATED if was else COMPILE_AGAIN


def _compare(current: Session, program: Runnable, count: int, owner: int, task: Task) -> None:
    """Every party tells its program's hash and how many streams it has, and the owner whether it
    refuses. One round."""
    refused = {}
    for party, told in enumerate(told_of(current, program, [count, task.told])):
        if len(told) != 2 or type(told[0]) is not int:
            raise DeviationError.of(party, "told no number of streams")
        if party == owner and (cause := refusal(told[1], owner)) is not None:
            refused[owner] = cause
        if told[0] != count:
            raise setup_error(
                f"party {party} runs batches over {told[0]} streams, party {current.party} over "
                f"{count}: "
                "give all parties the same number"
            )
    settle(current, task, refused, "to share the weights of the program")


def told_of(current: Session, program: Runnable, own: list[Any]) -> list[list[Any]]:
    """What each party tells of its part in a program, this one ``own``, after all were seen to have
    the same program. All have told before anybody raises, and whoever hears of another's error
    first hears the same.

    Raises:
        SetupError: a party has another program; both hashes are shown.
        DeviationError: what a party told is no hash with something behind it.
    """
    found = []
    for party, content in enumerate(
        current.told_by_all(json.dumps([program.digest, *own]).encode())
    ):
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            told = None
        match told:
            case [str(theirs), *rest] if len(theirs) == len(program.digest) and theirs.isalnum():
                found.append(rest)
            case _:
                raise DeviationError.of(party, "told no hash of a program")
        if theirs != program.digest:
            raise setup_error(
                f"party {party} has another program, with the hash {theirs}; that of party "
                f"{current.party} "
                f"has {program.digest}: give all parties the same file"
            )
    return found


def _alone(x: torch.Tensor) -> torch.Tensor:
    """An input in memory of its own where it is public: operators that go through memory by strides
    are to see no more of it than was given."""
    if isinstance(x, SecretTensor) or x.untyped_storage().nbytes() == x.numel() * x.itemsize:
        return x
    return x.clone(memory_format=torch.contiguous_format)


class _Widths(NamedTuple):
    """Which widths of a program hold in a run."""

    proved: bool
    guarded: bool


def _is_guarded(node: fx.Node) -> bool:
    guard = node.meta.get("guard")
    return guard is not None and guard.reach > 0


def _carry_out(values: Values, node: fx.Node, widths: _Widths, own: Session) -> None:
    """A step of an example, in the session of its lane.

    Raises:
        MisuseError: what PyTorch has to say of arguments that fit by their shapes, and which all
            the same no
            numbers can be computed of: the program is wrong, not tacit.
    """
    try:
        with _around(own, node, widths):
            values.carry_out(node, partial(streams.beside, current=own))
    except (TacitError, MemoryError):
        raise
    except Exception as error:
        if not _is_raised_in(error, "tacit", "torch"):
            raise
        what = f"{node.name}, {name_of(node.target)}: {printable(reason(error))}"
        raise MisuseError(f"the program cannot run: {what}") from error


def _is_raised_in(error: BaseException, *packages: str) -> bool:
    """Whether code of these raised it, or called what did that is not Python's. What a signal's
    handler raises comes out of whatever runs then, and is its own."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        trace is not None and trace.tb_frame.f_globals.get("__name__", "").split(".")[0] in packages
    )


@contextmanager
def _around(current: Session, node: fx.Node, widths: _Widths) -> Iterator[None]:
    """What an operator runs in: its layer's name, the width that was proved for it, or is guarded,
    whether its products are narrow, the low bits that it drops, the series that were chosen for it,
    and the scale of what is not truncated."""
    settings: dict[str, Any] = {}
    width, guard = node.meta.get("width"), node.meta.get("guard")
    if guard is not None and widths.guarded:
        if guard.reach:
            settings["guard"] = tuple(guard)
        else:
            settings |= {"width": guard.width, "is_promised": False}
    elif width is not None and widths.proved:
        settings |= {"width": width, "is_promised": False}
    if (scale := node.meta.get("scale")) and widths.proved:
        settings["scale"] = Scale(scale)
    if (narrow := node.meta.get("narrow")) and widths.guarded:
        settings["narrow"] = narrow
    if dropped := node.meta.get("dropped"):
        settings["dropped"] = dropped
    fits = node.meta.get("fits") or {}
    # A series that holds on an interval alone needs proved intervals, as widths do.
    if fits and (widths.proved or all(each.is_everywhere for each in fits_of(fits).values())):
        settings["fits"] = fits
    with _layer(current, node.meta.get("layer") or node.name), current.using(**settings):
        yield


@contextmanager
def _layer(current: Session, label: str) -> Iterator[None]:
    """Within it, operators stand under that layer in errors, in the meter and in a trace."""
    current.modules.labels.append(label)
    current.core.set_label(label)
    if current.trace is not None:
        current.trace.enter(label, "module")
    try:
        yield
    finally:
        current.modules.labels.pop()
        current.core.set_label(current.modules.labels[-1] if current.modules.labels else "")
        if current.trace is not None:
            current.trace.leave()
