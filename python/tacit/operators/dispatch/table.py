"""The table of ATen operators and their implementations, and how an operator runs.

Every operator takes three steps. ``meta_propagation`` computes shape, dtype and scale of the
result. The implementation computes on components. Then the result is wrapped: it gets its dtype,
and shares memory with the arguments exactly if PyTorch's schema says so."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from typing import Any, NamedTuple, NoReturn, TypeVar

import torch

from tacit import buffers
from tacit.errors import EncodingError, MisuseError, UnsupportedOperatorError, hints, source_lines
from tacit.fixed import WHOLE, Scale, of_gradients, of_sum
from tacit.flags import Running, union
from tacit.modes import is_backward, is_tracing, with_constants
from tacit.operators.dispatch.agreement import note_values
from tacit.operators.dispatch.call_cache import call_of
from tacit.operators.dispatch.hints import LIKE_A_SECRET, rewrite
from tacit.operators.dispatch.meta_propagation import Outcome
from tacit.operators.dispatch.operands import as_kind_of, rescaled
from tacit.operators.dispatch.scales import Rule, kept, of_target
from tacit.sessions import Session
from tacit.sharings import ranges
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor, refuse
from tacit.trace import module_paths

Implementation = TypeVar("Implementation", bound=Callable[..., Any])


class Entry(NamedTuple):
    """Implementation and scale rule of an operator."""

    #: Called with the operator's own arguments.
    implementation: Callable[..., Any]
    #: Rule of the scale of resulting fractions.
    scale: Rule


#: Operator overload → its entry.
TABLE: dict[Any, Entry] = {}

#: Operators that would show values.
REVEALING = {
    torch.ops.aten._local_scalar_dense.default: "item()",
    torch.ops.aten.equal.default: "torch.equal",
    torch.ops.aten.is_nonzero.default: "a condition",
    torch.ops.aten.nonzero.default: "nonzero()",
}

#: Views whose schema does not say that they share memory with an argument. The argument is no
#: longer used.
UNSAFE_VIEWS = {torch.ops.aten._unsafe_view.default}

#: Operators that do not use values, so that lazy values stay uncomputed. PyTorch applies these to
#: the indices of a max pooling before it discards them.
RESHAPING = {
    torch.ops.aten.alias.default,
    torch.ops.aten.detach.default,
    torch.ops.aten.squeeze.dim,
    torch.ops.aten.unsqueeze.default,
    torch.ops.aten.view.default,
}


#: Operators that overwrite all of their first argument, or of each tensor in that list, and do not
#: read it.
OVERWRITING = {
    torch.ops.aten.copy_.default,
    torch.ops.aten.fill_.Scalar,
    torch.ops.aten.fill_.Tensor,
    torch.ops.aten.zero_.default,
    torch.ops.aten.normal_.default,
    torch.ops.aten.uniform_.default,
    torch.ops.aten._foreach_copy_.default,
    torch.ops.aten._foreach_zero_.default,
}


#: Functions that may write a result into a target themselves, and return whether they did.
_WRITERS: list[Callable[[SecretTensor, Any], bool]] = []

#: Functions that are called after a result was written into a target.
_ON_WRITE: list[Callable[[SecretTensor, Any], None]] = []

#: A function that is called with a result.
Report = Callable[[Any], None]

#: Functions that are called before each operator of the program runs.
_WATCHERS: list[Callable[[Session, Any, tuple[Any, ...], dict[str, Any], Any], Report | None]] = []

#: Operator overload → a function that replaces it if an operand is a sparse public tensor.
_OF_SPARSE: dict[Any, Callable[..., Any]] = {}

Write = TypeVar("Write", bound=Callable[[SecretTensor, Any], bool])
Carry = TypeVar("Carry", bound=Callable[[SecretTensor, Any], None])
Watch = TypeVar("Watch", bound=Callable[..., Report | None])


def writes(function: Write) -> Write:
    """Registers a function that may write a result into a target itself.

    It is called with the target and the result. It writes and returns true, or does nothing and
    returns false."""
    _WRITERS.append(function)
    return function


def on_write(function: Carry) -> Carry:
    """Registers a function that is called with a target and the result that was written into it."""
    _ON_WRITE.append(function)
    return function


def watches(function: Watch) -> Watch:
    """Registers a function that is called before each operator of the program runs.

    It is called with the session, the operator, its arguments and the expected outcome. It may
    return a function, which is called with the result."""
    _WATCHERS.append(function)
    return function


def implements(*overloads: Any, scale: Rule = kept) -> Callable[[Implementation], Implementation]:
    """Enters a function into the table, with the rule of its result's scale."""

    def enter(function: Implementation) -> Implementation:
        for overload in overloads:
            assert overload not in TABLE, f"{overload} has two implementations"
            TABLE[overload] = Entry(function, scale)
        return function

    return enter


def replaces(*overloads: Any) -> Callable[[Implementation], Implementation]:
    """Registers a function that replaces operators if an operand is a sparse public tensor.

    It calls operators that take its positions and values."""

    def enter(function: Implementation) -> Implementation:
        _OF_SPARSE.update(dict.fromkeys(overloads, function))
        return function

    return enter


def _is_sparse(operand: Any) -> bool:
    return isinstance(operand, torch.Tensor) and operand.layout is not torch.strided


def assign(target: SecretTensor, value: Any) -> SecretTensor:
    """Writes a value into a secret tensor and all views of it, as in-place operations do."""
    value = as_kind_of(value, target)
    claims = target._session.claims
    limit = claims.limit(value._parts)
    for mine, new in zip(writable(target), value._parts, strict=True):
        mine.copy_(new)
    target._session.dependencies.overwritten(target._parts)
    claims.limited(target._parts, limit)
    return target


def writable(target: SecretTensor) -> Parts:
    """Returns the components of a secret tensor for writing, and records the write."""
    target._session.storages.written(target._parts[0])
    target._session.claims.written(target._parts)
    target._session.dependencies.written(target._parts)
    return target._parts


@contextmanager
def at_scale_of(*targets: SecretTensor) -> Iterator[None]:
    """Sets the session's scale to the greatest scale of the targets, which take the results."""
    scales = [target._scale for target in targets if target._scale != WHOLE]
    session = targets[0]._session
    with session.using(scale=of_sum(scales) if scales else session.scale):
        yield


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator for ``SecretTensor.__torch_dispatch__``.

    Public tensors that secrets may be written into are handled before (``unwritten``).

    Raises:
        UnsupportedOperatorError: the table has no entry for it, or none for these arguments.
    """
    if func in _OF_SPARSE and any(_is_sparse(each) for each in args):
        return _OF_SPARSE[func](*args, **kwargs)
    operator = _operator(func)
    if operator is None:
        return _composed(func, args, kwargs)
    secrets = secrets_of(args, kwargs)
    session = _session_of_all(secrets)
    if session.operator or not is_backward():
        return _run(operator, session, secrets, func, args, kwargs)
    # Part of a backward pass.
    with session.using(scale=of_gradients(session.scale)):
        return _run(operator, session, secrets, func, args, kwargs)


def _run(
    operator: "Operator",
    session: Session,
    secrets: Sequence[SecretTensor],
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    call = call_of(operator.name, session, func, args, kwargs)
    if (later := secrets[0]._later) is not None and func in RESHAPING:
        outcome = call.expected(operator.scale, session, func, args, kwargs)
        shaped = SecretTensor(
            (), secrets[0]._scale, session, outcome.dtype, shape=outcome.shape, later=later
        )
        shaped._number = secrets[0]._number
        return shaped.depends(secrets[0].flags)
    if session.operator and session.thread == get_ident():
        # A step of another operator, which was noted.
        expected = call.expected(operator.scale, session, func, args, kwargs)
        return _carried_out(operator, expected, args, kwargs, secrets)
    has_gradients = torch.is_grad_enabled()
    before = session.enter()
    if session.claims.is_much and not session.is_beside:
        session.claims.settle()
    session.operator = operator.name
    try:
        # Faster than torch.no_grad(), which does the same.
        if has_gradients:
            torch._C._set_grad_enabled(False)
        call.note(session, secrets, func, args, kwargs)
        expected = call.expected(operator.scale, session, func, args, kwargs)
        operands = None
        if session.dependencies.are_there:
            operands = union(each.flags for each in operator.used(args, kwargs))
        with session.dependencies.running(operands) as running:
            if is_tracing():
                with with_constants():
                    result = _carried_out(operator, expected, args, kwargs, secrets)
                return _numbered(_depending(session, running, result))
            reports = [watch(session, func, args, kwargs, expected) for watch in _WATCHERS]
            result = _carried_out(operator, expected, args, kwargs, secrets)
            result = _numbered(_depending(session, running, result))
            for report in reports:
                if report is not None:
                    report(result)
            return result
    except EncodingError as error:
        # The error is about a public operand. Its message has the values, but not the line.
        place = ", ".join(filter(None, (module_paths.current(), source_lines.line())))
        raise EncodingError(f"{error}; {operator.name} in {place}") from error
    finally:
        if has_gradients:
            torch._C._set_grad_enabled(True)
        session.operator = ""
        session.leave(before)


def _composed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator without an entry by PyTorch's decomposition, if there is one."""
    if func in REVEALING:
        refuse(REVEALING[func])
    with torch.no_grad():
        # Prims operators, which PyTorch's decompositions use, each have one ATen implementation.
        is_primitive = func.namespace == "prims"
        result = (func.impl_aten if is_primitive else func.decompose)(*args, **kwargs)
    if result is NotImplemented:
        unsupported(f"the operator {func}", rewrite(func))
    return result


def secrets_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[SecretTensor]:
    """Returns the secret tensors among an operator's arguments, also those in lists."""
    secrets = []
    for arg in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(arg, SecretTensor):
            secrets.append(arg)
        elif isinstance(arg, list | tuple):
            secrets += [leaf for leaf in arg if isinstance(leaf, SecretTensor)]
    return secrets


def _session_of_all(secrets: Sequence[SecretTensor]) -> Session:
    session = secrets[0]._session
    for secret in secrets:
        if secret._session is not session:
            raise MisuseError("tensors of two sessions cannot be combined in one operation")
    return session


class Operator(NamedTuple):
    """Facts about an operator, from the table and from its schema."""

    name: str
    implementation: Callable[..., Any]
    #: Rule of the scale of resulting fractions.
    scale: Rule
    #: Which of the results share no memory with any argument.
    fresh: tuple[bool, ...]
    #: Whether it overwrites its first argument without reading it.
    overwrites: bool
    #: Names of arguments that it only writes to.
    outs: frozenset[str]

    def used(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[SecretTensor]:
        """Returns the secret arguments whose values the operator reads."""
        kept = (
            {name: arg for name, arg in kwargs.items() if name not in self.outs}
            if self.outs
            else kwargs
        )
        return secrets_of(args[1:] if self.overwrites else args, kept)


@cache
def _operator(func: Any) -> Operator | None:
    entry = TABLE.get(func) or _writing(func)
    if entry is None:
        return None
    unsafe = func in UNSAFE_VIEWS
    fresh = tuple(value.alias_info is None and not unsafe for value in func._schema.returns)
    outs = frozenset(argument.name for argument in func._schema.arguments if argument.is_out)
    return Operator(str(func), entry.implementation, entry.scale, fresh, func in OVERWRITING, outs)


# In-place operators
# --------------------------------------------------------------------------------


def _writing(func: Any) -> Entry | None:
    """Derives an in-place operator from the one that returns a new tensor or a view."""
    name = func._schema.name.removeprefix("aten::")
    if outs := [argument.name for argument in func._schema.arguments if argument.is_out]:
        return _into(func, getattr(torch.ops.aten, name, None), outs)
    if not func._schema.is_mutable or not name.endswith("_") or name.endswith("__"):
        return None
    overload = _functional(func, getattr(torch.ops.aten, name[:-1], None))
    if overload not in TABLE:
        return None
    functional = TABLE[overload].implementation
    if torch.Tag.inplace_view in func.tags:
        return Entry(_reshaping(func, functional), of_target)

    def write(target: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not isinstance(target, SecretTensor):
            unsupported(
                "an in-place operation that would put a secret into a plain tensor",
                LIKE_A_SECRET,
            )
        with at_scale_of(target):
            result = functional(target, *args, **kwargs)
        if not any(each(target, result) for each in _WRITERS):
            assign(target, result)
            for carry in _ON_WRITE:
                carry(target, result)
        return target

    return Entry(write, of_target)


def _functional(func: Any, packet: Any) -> Any:
    """Finds the functional overload of an in-place operator.

    It is the overload of the same name, or else of the same arguments: ``transpose_`` belongs to
    ``transpose.int``."""
    if hasattr(packet, func._overloadname):
        return getattr(packet, func._overloadname)
    return _form(packet, _takes(func))


def _form(packet: Any, takes: list[tuple[str, str]]) -> Any:
    """Returns the overload with the given arguments, or ``None``."""
    forms = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    return next((form for form in forms if _takes(form) == takes), None)


def _takes(func: Any) -> list[tuple[str, str]]:
    return [(argument.name, str(argument.type)) for argument in func._schema.arguments]


def _into(func: Any, packet: Any, outs: list[str]) -> Entry | None:
    """Derives the ``out=`` overload of an operator, for targets of the results' shapes.

    Random operators are excluded, since each party would write its own samples."""
    functional = _form(packet, [argument for argument in _takes(func) if argument[0] not in outs])
    if functional is None or torch.Tag.nondeterministic_seeded in func.tags:
        return None

    def write(*args: Any, **kwargs: Any) -> Any:
        targets = [kwargs.pop(out) for out in outs]
        if not all(isinstance(target, SecretTensor) for target in targets):
            unsupported("out= that is plain", "use the form that returns a new tensor")
        with at_scale_of(*targets):
            results = functional(*args, **kwargs)
        results = results if isinstance(results, tuple | list) else [results]
        # Plain results were computed by each party alone, so they are compared.
        note_values(
            targets[0]._session, [each for each in results if not isinstance(each, SecretTensor)]
        )
        if any(
            target.shape != result.shape for target, result in zip(targets, results, strict=True)
        ):
            unsupported("out= of another shape", "use the form that returns a new tensor")
        written = [assign(target, result) for target, result in zip(targets, results, strict=True)]
        return tuple(written) if len(written) > 1 else written[0]

    def of_targets(_session: Scale, *_: Scale, **named: Scale) -> Scale:
        return of_sum([named[out] for out in outs])

    return Entry(write, of_targets)


def _reshaping(func: Any, functional: Callable[..., Any]) -> Callable[..., Any]:
    def reshape(target: SecretTensor, *args: Any, **kwargs: Any) -> SecretTensor:
        target._parts = functional(target, *args, **kwargs)._parts
        # Lazy values are in another order.
        target._later = None
        # Changes the sizes of the outer tensor itself.
        with torch._C._DisableTorchDispatch():
            func(target, *args, **kwargs)
        return target

    return reshape


# Execution
# ----------------------------------------------------------------------------


def _carried_out(
    operator: Operator,
    expected: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    secrets: Sequence[SecretTensor],
) -> Any:
    fresh, result = operator.fresh, operator.implementation(*args, **kwargs)
    if isinstance(result, SecretTensor):
        return _finished(result, expected, fresh[0], secrets)
    if not isinstance(result, tuple | list):
        return result
    if len(fresh) == 1:
        # A list of tensors.
        fresh = fresh * len(result)
    outcomes = expected if expected is not None else [None] * len(result)
    finished = (
        _finished(one, outcome, is_fresh, secrets) if isinstance(one, SecretTensor) else one
        for one, outcome, is_fresh in zip(result, outcomes, fresh, strict=True)
    )
    return type(result)(finished) if type(result) in (list, tuple) else tuple(finished)


def _depending(session: Session, running: Running, result: Any) -> Any:
    """Makes results depend on the flags of the operands and of the operator's own comparisons.

    So do the tensors that the operator wrote to."""
    known = session.dependencies.finish(running)
    if known is not None:
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, SecretTensor):
                one.depends(known)
    return result


def _numbered(result: Any) -> Any:
    """Gives new numbers to the tensors that an operator of the program returned or wrote to."""
    if isinstance(result, SecretTensor):
        return result.numbered()
    if isinstance(result, tuple | list):
        for one in result:
            if isinstance(one, SecretTensor):
                one.numbered()
    return result


def _finished(
    result: SecretTensor, expected: Outcome | None, is_fresh: bool, secrets: Sequence[SecretTensor]
) -> SecretTensor:
    """Brings a result to the dtype that PyTorch expects, and to the scale of the rule.

    A new tensor gets memory that it shares with no operand."""
    if result._later is not None:
        return result
    if expected is not None:
        result = rescaled(result, expected.scale)
    parts = result._parts
    own = dtype = result.dtype
    if expected is not None:
        # The shape is read from a component, which is faster than from the result.
        assert expected.shape == parts[0].shape, (
            f"shape {result.shape} in the place of {expected.shape}"
        )
        if expected.dtype != own:
            assert _kind(expected.dtype) == _kind(own), f"{own} in the place of {expected.dtype}"
            dtype = expected.dtype
    if is_fresh and _shares_memory(parts[0], secrets):
        parts = tuple(part.clone() for part in parts)
    if result._session.is_plain and dtype.is_floating_point:
        ranges.check_value(result._session, parts[0], result._scale)
    if dtype != own or parts is not result._parts:
        return result.like(parts, dtype=dtype, unreduced=result._unreduced)
    return result


def _shares_memory(part: torch.Tensor, secrets: Sequence[SecretTensor]) -> bool:
    is_whole = buffers.is_whole(part)
    mine = None if is_whole else part.untyped_storage()._cdata
    for secret in secrets:
        if not secret.is_computed:
            continue
        other = secret._parts[0]
        # A whole component is no view of another: it is an operand's component itself, or new.
        if part is other if is_whole else mine == other.untyped_storage()._cdata:
            return True
    return False


def _kind(dtype: torch.dtype) -> str:
    return (
        "boolean" if dtype == torch.bool else "fraction" if dtype.is_floating_point else "integer"
    )


def unsupported(what: str, remedy: str) -> NoReturn:
    """Raises an error that names a function that secret tensors lack, and the module that used it.

    Raises:
        UnsupportedOperatorError: always.
    """
    raise UnsupportedOperatorError.of(what, module_paths.current(), hints.here(what) or remedy)
