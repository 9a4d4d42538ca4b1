"""Execution of a program in a session.

The owner shares its weights, and the program runs on the operators of secret tensors. There is no
second runtime."""

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from tacit.fixed import DEFAULT, Scale, of_dtype
from tacit.module import share_weights_of
from tacit.refusals import Task, misuse, refusal, settle
from tacit.sessions import Session, session
from tacit.sharing import share_as, share_bits
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor, check_party
from tacit.trace import module_paths

#: The label of what is done before the first layer.
SHARING = "(sharing the weights)"

#: Remedies for weights that their scale changes noticeably, for the owner of the weights. The scale
#: belongs to the program. If there were calibration data, it was chosen on them.
COMPILE_AGAIN = (
    "compile the model with calibration data, on which scales are tried, or with these weights "
    "scaled up; "
    "tacit inspect shows the fraction bits of all"
)
CALIBRATED = (
    "on its calibration data the program is still as good as the plain model; if it is not on "
    "other inputs, which tacit try shows, compile the model with calibration data like them"
)


#: Runs a program on some examples, and returns the results of each.
_Run = Callable[[streams.Way], list[tuple[Any, ...]]]


class Bound:
    """A program with secret weights, in the session in which they were shared."""

    def __init__(
        self, program: Runnable, current: Session, weights: Mapping[str, torch.Tensor], count: int
    ) -> None:
        self.program = program
        self._session = current
        self._weights = weights
        self._streams = count
        self._stages = stages(program.graph)
        #: Correlations that a run on inputs from ``given`` takes, as found by a rehearsal; by the
        #: width of the session, by its checked mode and by the number of examples that are
        #: computed side by side.
        self._rehearsed: dict[tuple[int, bool, int], _core.Expectation | None] = {}
        self._has_warned = False

    def one_by_one(self) -> None:
        """Makes steps run one after another from now on, like those of a module that is called
        without compilation. All parties must call this method."""
        self._stages = [[[node for node in self.program.graph.nodes if node.op == "call_function"]]]

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """Runs the program on secret or public inputs and returns a tensor, or a tuple of tensors.

        A batch has a multiple of the rows that the program was compiled for. Its result is the
        results of the single examples, concatenated. As many examples as there are streams are
        computed side by side.

        Proved widths hold for numbers within the intervals that ``inspect`` shows. A plain tensor
        is checked against its interval. A secret tensor cannot be checked, so all comparisons then
        have 64 bits, and a CostWarning says so once. A secret tensor from ``given`` is an
        exception, because its owner has checked it. If the protocol has guards, and all inputs come
        from ``given``, comparisons have the widths of the guards. If a guard fails there is no
        result: ``reveal`` raises.

        Raises:
            MisuseError: an input has another shape or dtype, or is outside its interval.
        """
        results = self.each(*inputs)
        with torch.no_grad():
            parts = tuple(
                streams.joined(each, self._session) for each in zip(*results, strict=True)
            )
        return parts[0] if len(parts) == 1 else parts

    def each(self, *inputs: torch.Tensor) -> list[tuple[Any, ...]]:
        """Runs the program as a call does, and returns the results of each example, which depend on
        the guards of this example alone."""
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
                check_interval(program.inputs[name], x)
            if not self._is_promised(name, x) or not isinstance(x, SecretTensor):
                given[name] = program.inputs[name].scaled(x)
        unknown = [
            program.inputs[name].name for name, x in given.items() if not self._is_promised(name, x)
        ]
        is_proved = not unknown
        self._warn_of_costs(unknown)
        is_given = is_proved and all(isinstance(x, SecretTensor) for x in given.values())
        # Public values are not guarded, so guards would prove nothing.
        widths = _Widths(is_proved, is_given and current.core.guards)
        if widths.guarded and any(_is_guarded(node) for node in program.graph.nodes):
            # Inputs are fixed now, so no party that chose one knew these coins.
            current.core.toss()
        results = []
        with torch.no_grad(), current.using(scale=Scale(program.scale)):
            for first in range(0, count, self._streams):
                together = range(first, min(count, first + self._streams))
                run = self._together(_examples(given, together, count), widths)
                with self._expected(run, len(together) if is_given else 0):
                    results += run(streams.side_by_side)
        return results

    def announce(self, *inputs: SecretTensor) -> None:
        """Lets the source of correlations make what a call on such inputs takes, while nothing
        runs. The next call takes it, also if it has more examples, or fewer. No interaction.

        Args:
            inputs: as from :meth:`given` or :meth:`submitted`, of as many examples as there are
                streams at most. Their numbers do not matter.
        """
        current, program = self._session, self.program
        given = dict(zip(program.inputs, inputs, strict=True))
        count = same_kind(program, given)
        widths = _Widths(True, current.core.guards)
        with torch.no_grad(), current.using(scale=Scale(program.scale)):
            self._expect(self._together(_examples(given, range(count), count), widths), count)

    def _together(self, examples: list[dict[str, torch.Tensor]], widths: "_Widths") -> _Run:
        """Returns what runs the program on these examples, and returns the results of each."""
        lasting = {**self._weights, **self.program.constants}

        def run(go: streams.Way) -> list[tuple[Any, ...]]:
            graph = self.program.graph
            under_way = [Values(graph, {**example, **lasting}) for example in examples]
            for stage in self._stages:
                go(
                    self._session,
                    [
                        [partial(_carry_out, values, node, widths) for node in lane]
                        for values in under_way
                        for lane in stage
                    ],
                )
            return [values.results() for values in under_way]

        return run

    def given(
        self, tensor: torch.Tensor | None, *, owner: int, name: str | None = None, count: int = 1
    ) -> SecretTensor:
        """Shares an input, after its owner has checked that it is within its interval.

        If it is not, every party raises, and the session continues. The errors of the other parties
        contain no values.

        Args:
            tensor: the input in its owner; ``None`` in the other parties.
            name: name of the input, if the program takes several.
            count: number of examples, if the input is a batch; the same in every party.

        Raises:
            EncodingError: the input has a NaN, or values that are too large.
            MisuseError: the input has another shape, or numbers outside its interval; or its owner
                passes ``None``.
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
            check_interval(wanted, tensor)

        made = share_as(
            None if tensor is None else wanted.scaled(tensor),
            shape,
            wanted.dtype,
            owner=owner,
            scale=Scale(program.scale),
            what=f"the input {wanted.name} of the program",
            check=check,
        )
        self._promised(placeholder, made)
        return made

    def submitted(self, parts: Parts, placeholder: str) -> SecretTensor:
        """Returns an input that clients outside of the session have shared.

        They have checked that it is within its interval, as an owner does in :meth:`given`. A
        client that did not gets wrong results for its own examples.

        Args:
            parts: this party's components, of the shape of one example or several.
            placeholder: of the input.
        """
        wanted = self.program.inputs[placeholder]
        scale = of_dtype(Scale(self.program.scale), wanted.dtype)
        made = SecretTensor(parts, scale, self._session, wanted.dtype).numbered()
        self._promised(placeholder, made)
        return made

    def _promised(self, placeholder: str, made: SecretTensor) -> None:
        # The promise is dropped as soon as anything writes to the tensor.
        self._session.storages.derive(self._promise(placeholder), [made._parts[0]], True)

    @contextmanager
    def _expected(self, run: _Run, given: int) -> Iterator[None]:
        """Announces to the source of correlations what will be taken of it within this context."""
        try:
            self._expect(run, given)
            yield
        finally:
            self._session.core.expect_no_more()

    def _expect(self, run: _Run, given: int) -> None:
        """Announces to the source of correlations what will be taken of it.

        The source then makes that one layer ahead, and nothing else. The demand follows from
        shapes: ``run`` is rehearsed first, without numbers or messages.

        Inputs from ``Bound.given``, of ``given`` examples, have one shape, one scale and no names.
        The weights' masks are kept. The demand can then depend only on the width of the session and
        on whether it is checked, so it is found once for each.

        Steps that go side by side take correlations by turns, in another order than in the
        rehearsal. At most what a few of them take is then made earlier than necessary.
        """
        current = self._session
        core, trace = current.core, current.trace
        key = current.numerics.width, current.numerics.is_checked, given
        known = self._rehearsed.get(key)
        if known is not None and core.expect_again(known):
            return
        try:
            if core.rehearse():
                current.trace = None
                with current.storages.rehearsed(), checks.dry(current):
                    run(streams.by_turns)
                found = core.expect()
                if given:
                    self._rehearsed[key] = found
        finally:
            current.trace = trace

    def _is_promised(self, placeholder: str, x: torch.Tensor) -> bool:
        """Returns whether the present numbers of an input were checked against its interval."""
        if not isinstance(x, SecretTensor):
            return True
        return self._session.storages.derived(self._promise(placeholder), [x._parts[0]]) is not None

    def _warn_of_costs(self, unknown: list[str]) -> None:
        """Warns once about the cost of inputs of which nothing is proved, and says how to share
        them instead."""
        chosen = ("width", "guard", "narrow", "scale", "fits")
        nodes = self.program.graph.nodes
        if (
            not unknown
            or self._has_warned
            or not any(node.meta.get(name) for node in nodes for name in chosen)
        ):
            return
        self._has_warned = True
        warnings.warn(
            "these inputs were not checked against what the program was compiled for: "
            f"{', '.join(unknown)}; so nothing is proved of them, comparisons have 64 bits and no "
            "guards, and proofs save nothing; share inputs by program.share(...).given(x, "
            "owner=...), which checks them at their owner, instead of tacit.share",
            CostWarning,
            stacklevel=3,
        )

    def _promise(self, placeholder: str) -> tuple[str, str, str]:
        return "promised", self.program.digest, placeholder


def revealed(result: torch.Tensor, to: int | None = None) -> torch.Tensor | None:
    """Reveals a result of a program to one party or to all.

    A result that follows from public values alone is public and returned as it is."""
    return result.reveal(to=to) if isinstance(result, SecretTensor) else result


def share_weights(
    program: Runnable,
    weights: Mapping[str, torch.Tensor] | None,
    owner: int,
    count: int = 1,
    remedy: str | None = None,
    check: Callable[[], None] | None = None,
) -> Bound:
    """Shares the owner's weights, after checking that all parties have the same program and the
    same number of streams.

    If the owner has no weights, or its check raises, all parties raise.

    Args:
        count: number of streams.
        remedy: advice about weights that are too small; by default, what the owner of a program can
            do.
        check: called in the owner alone; raises if these are not weights of the program.

    Raises:
        SetupError: a party has another program (the error shows both hashes), or another number of
            streams.
        MisuseError: the owner passes no weights, or its check raises.
    """
    current = session()
    check_party(current, owner, "owner")
    streams.check(count)
    task = Task()
    if current.party == owner:
        with task.keep_error():
            if weights is None:
                raise misuse(
                    "nothing", f"party {owner} owns the weights and must pass them, not None"
                )
            if check is not None:
                check()
    else:
        # Only the owner's numbers count, so the other parties need no memory for them.
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
    """Shares the Boolean weights in one message."""
    shapes = {name: each.shape for name, each in program.weights.items() if not each.bits}
    sizes = [math.prod(shape) for shape in shapes.values()]
    if not sum(sizes):
        return {name: torch.zeros(shape, dtype=torch.bool) for name, shape in shapes.items()}
    known = None if weights is None else torch.cat([weights[name].flatten() for name in shapes])
    shared = share_bits(known, sum(sizes), owner=owner)
    parts = zip(shapes.items(), shared.split(sizes), strict=True)
    return {name: part.reshape(shape) for (name, shape), part in parts}


def _remedy(program: Runnable) -> str:
    """Returns the remedy for weights that are too small, by whether the program was calibrated.

    A calibrated program has intervals of its inputs. If its inputs are integers and have no
    intervals, its scale is hardly ever the default one."""
    was = program.scale != DEFAULT.bits or any(each.interval for each in program.inputs.values())
    return CALIBRATED if was else COMPILE_AGAIN


def _compare(current: Session, program: Runnable, count: int, owner: int, task: Task) -> None:
    """Compares the parties' programs and numbers of streams, and learns whether the owner refuses.

    Every party sends its program's hash and its number of streams, and the owner also whether it
    refuses. One round."""
    refused = {}
    for party, told in enumerate(reports_of(current, program, [count, task.told])):
        if len(told) != 2 or type(told[0]) is not int:
            raise DeviationError.of(party, "reported no number of streams")
        if party == owner and (cause := refusal(told[1], owner)) is not None:
            refused[owner] = cause
        if told[0] != count:
            raise setup_error(
                f"party {party} runs batches over {told[0]} streams, party {current.party} over "
                f"{count}: "
                "give all parties the same number"
            )
    settle(current, task, refused, "to share the weights of the program")


def reports_of(current: Session, program: Runnable, own: list[Any]) -> list[list[Any]]:
    """Returns what each party reports about its part in a program, after checking that all have the
    same program.

    This party reports ``own``. All parties have reported before any of them raises. A party that
    first hears of another party's error raises the same error.

    Raises:
        SetupError: a party has another program; both hashes are shown.
        DeviationError: a party's report does not begin with a hash.
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
                raise DeviationError.of(party, "reported no hash of a program")
        if theirs != program.digest:
            raise setup_error(
                f"party {party} has another program, with the hash {theirs}; that of party "
                f"{current.party} "
                f"has {program.digest}: give all parties the same file"
            )
    return found


def _in_own_memory(x: torch.Tensor) -> torch.Tensor:
    """Copies a public input to its own memory, so that operators that address memory by strides see
    no more than the input."""
    if isinstance(x, SecretTensor) or x.untyped_storage().nbytes() == x.numel() * x.itemsize:
        return x
    return x.clone(memory_format=torch.contiguous_format)


def _examples(
    given: Mapping[str, torch.Tensor], which: Iterable[int], count: int
) -> list[dict[str, torch.Tensor]]:
    """Returns these examples of inputs."""
    return [
        {name: _in_own_memory(streams.one_of(x, at, count)) for name, x in given.items()}
        for at in which
    ]


class _Widths(NamedTuple):
    """Kinds of widths of a program that hold in a run."""

    proved: bool
    guarded: bool


def _is_guarded(node: fx.Node) -> bool:
    guard = node.meta.get("guard")
    return guard is not None and guard.reach > 0


def _carry_out(values: Values, node: fx.Node, widths: _Widths, own: Session) -> None:
    """Carries out a step of an example, in the session of its lane.

    Raises:
        MisuseError: PyTorch rejects arguments whose shapes fit, but from which no numbers can be
            computed. The program is wrong then, not tacit.
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
    """Returns whether code of these packages raised an error, or called the compiled code that did.

    An exception from a signal handler surfaces in whatever code is running, but belongs to the
    handler."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        trace is not None and trace.tb_frame.f_globals.get("__name__", "").split(".")[0] in packages
    )


@contextmanager
def _around(current: Session, node: fx.Node, widths: _Widths) -> Iterator[None]:
    """Enters the contexts that an operator runs in.

    They are its layer's name, its proved or guarded width, whether its products are narrow, the low
    bits that it drops, the series that were chosen for it, and the scale of a result that is not
    truncated."""
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
    # A series that holds only on an interval is used only where the interval is proved, as for
    # widths.
    if fits and (widths.proved or all(each.is_everywhere for each in fits_of(fits).values())):
        settings["fits"] = fits
    with _layer(current, node.meta.get("layer") or node.name), current.using(**settings):
        yield


@contextmanager
def _layer(current: Session, label: str) -> Iterator[None]:
    """Attributes operators to a layer in errors, in the meter and in a trace, within this
    context."""
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
