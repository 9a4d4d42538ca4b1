"""Models of a service: read from this party's files, and bound in a session.

A model that is bound stays secret-shared in memory, and computes the results of batches.

**What a guard that fails tells, and whom.** A compiled program computes each request of a batch as
an example of its own (:mod:`tacit.compilation.streams`). So a guard judges the numbers of one
request, and its flag stays secret. The words of a result, and a marker of 1 after them, are
multiplied by the flags that this result depends on, and by no others, and are sealed to the client.
So a client whose numbers left their range gets zeros, and learns that they did. The results of
other clients are those that they would be without it, in the same messages of the same sizes. No
party learns of it: it sees the flags as shares, and opens none."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from tacit import _core, fixed
from tacit.compilation import streams
from tacit.compilation.execute import Bound as BoundProgram
from tacit.compilation.graph import outputs
from tacit.compilation.program import Program, read_program
from tacit.compilation.weights import load_weights
from tacit.errors import MisuseError, SetupError, cause, printable, setup_error
from tacit.flags import union
from tacit.module import share_module
from tacit.serving.config import Model
from tacit.serving.description import Described, Tensor
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor


class Loaded(NamedTuple):
    """A model as this party has it, before any session."""

    model: Model
    #: The hash of the program's file, which all parties must have.
    digest: str
    #: The compiled program, or what makes the module.
    program: Program | Callable[[], Any]
    #: At the owner: the weights of a program, or the state of a module.
    weights: Any

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of one request."""
        model = self.model
        if isinstance(self.program, Program):
            return tuple(
                Tensor(
                    each.name,
                    str(each.dtype).removeprefix("torch."),
                    each.shape,
                    self.program.scale if each.dtype.is_floating_point else 0,
                    each.interval,
                    each.exponents,
                )
                for each in self.program.inputs.values()
            )
        assert model.shape is not None
        assert model.dtype is not None
        is_fraction = fixed.DTYPES[model.dtype].is_floating_point
        scale = fixed.DEFAULT.bits if is_fraction else 0
        return (Tensor("input", model.dtype, model.shape, scale),)


def load(model: Model, party: int) -> Loaded:
    """Reads a model's program, and at the owner its weights.

    Raises:
        SetupError: a file cannot be read, or the owner has no weights.
        MisuseError: a file is not what it should be.
    """
    is_owner = party == model.owner
    if is_owner and model.weights is None:
        raise setup_error(
            f"party {party} owns the weights of model {model.label}: give their file, weights = "
            '"FILE", in service.toml'
        )
    if model.callable is None:
        program = Program.parsed(read_program(model.program), str(model.program))
        _check_rows(model, program)
        weights = None
        if is_owner:
            assert model.weights is not None
            weights = load_weights(model.weights, with_model=False)
            weights.check(program)
        return Loaded(model, program.digest, program, weights)
    content, make = _callable(model.program, model.callable)
    weights = _state(model.weights) if is_owner and model.weights is not None else None
    return Loaded(model, _core.blake3(content), make, weights)


def digest_of_program(model: Model) -> str:
    """Returns the hash of a model's program, which all parties must have.

    Raises:
        SetupError: its file cannot be read.
        MisuseError: it is not a compiled program.
    """
    if model.callable is None:
        return Program.parsed(read_program(model.program), str(model.program)).digest
    return _core.blake3(_content(model.program))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise setup_error(f"cannot read the program {path}: {cause(error)}") from None


def _check_rows(model: Model, program: Program) -> None:
    """Checks that the results of a batch can be told apart.

    Raises:
        MisuseError: they cannot.
    """
    results = [tuple(node.meta["value"].shape) for node in outputs(program.graph)]
    try:
        streams.check_batch(program.inputs, results)
    except MisuseError as error:
        raise MisuseError(f"model {model.label}: {error}") from None


def _callable(path: Path, name: str) -> tuple[bytes, Callable[[], Any]]:
    """Runs a file of Python; returns its content, and the function of that name."""
    content = _content(path)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise MisuseError(
            f"the program {path} cannot be run: {type(error).__name__}: {printable(error)}"
        ) from error
    made = getattr(module, name, None)
    if not callable(made):
        raise MisuseError(f"the program {path} has no function {name!r}, which returns the module")
    return content, made


def _state(path: Path) -> Any:
    try:
        return torch.load(path, weights_only=True)
    except OSError as error:
        raise setup_error(f"cannot read the weights {path}: {cause(error)}") from None
    except Exception as error:
        raise SetupError(
            f"{path} holds no weights that torch.save wrote ({type(error).__name__}); write them "
            "by torch.save(module.state_dict(), path)"
        ) from None


class Bound:
    """A model that is bound in a session, where all parties have bound it."""

    def __init__(self, session: Session, loaded: Loaded, streams: int) -> None:
        """Shares the owner's weights, and runs the model once, on zeros.

        Raises:
            SetupError: parties have different programs.
            MisuseError: the module is none, does not take the input, or the weights are not its.
        """
        self._session = session
        self.model = loaded.model
        self._inputs = loaded.inputs
        self._program: BoundProgram | None = None
        self._module: Any = None
        _compare(session, loaded)
        if isinstance(loaded.program, Program):
            self._program = loaded.program.share(
                loaded.weights, owner=loaded.model.owner, streams=streams
            )
        else:
            self._module = _shared(loaded)
        (results,) = self._computed(self._zeros(), 1)
        names = [f"output {at}" if len(results) > 1 else "output" for at in range(len(results))]
        self.described = Described(
            self.model.name,
            self.model.version,
            loaded.digest,
            self._inputs,
            tuple(
                Tensor(
                    name,
                    str(each.dtype).removeprefix("torch."),
                    tuple(each.shape),
                    each._scale.bits,
                )
                for name, each in zip(names, results, strict=True)
            ),
        )

    def results(self, words: Parts, count: int) -> Parts:
        """Computes the results of requests.

        Args:
            words: this party's components, a row for each request.
            count: how many there are.

        Returns:
            This party's components, a row for each request: its outputs, and after them the
            marker, which is 1, or 0 if numbers of this request left their range.
        """
        given, begin = [], 0
        for each in self._inputs:
            end, shape = begin + each.numbers, (count * each.shape[0], *each.shape[1:])
            given.append(tuple(part[:, begin:end].contiguous().view(shape) for part in words))
            begin = end
        return self._sealable(self._computed(given, count), count)

    def announce(self, count: int) -> None:
        """Lets the source of correlations make what this many requests take, while nothing is
        computed. What a module takes is not known; a source makes as much of it ahead as was taken
        so far."""
        if self._program is not None and count:
            self._program.announce(*self._submitted(self._program, self._zeros(count)))

    def _zeros(self, count: int = 1) -> list[Parts]:
        shapes = [(count * each.shape[0], *each.shape[1:]) for each in self._inputs]
        return [
            shares.trivial(self._session, torch.zeros(shape, dtype=torch.int64)) for shape in shapes
        ]

    @staticmethod
    def _submitted(program: BoundProgram, given: Sequence[Parts]) -> list[SecretTensor]:
        return [
            program.submitted(parts, name)
            for parts, name in zip(given, program.program.inputs, strict=True)
        ]

    def _computed(self, given: Sequence[Parts], count: int) -> list[list[SecretTensor]]:
        """Runs the model on sharings of its inputs; returns the outputs of each request, or of all
        of them together if a module computes them."""
        if self._program is not None:
            found = self._program.each(*self._submitted(self._program, given))
        else:
            (only,), (parts,) = self._inputs, given
            dtype = fixed.DTYPES[only.dtype]
            scale = fixed.of_dtype(self._session.scale, dtype)
            with torch.no_grad():
                found = [self._module(SecretTensor(parts, scale, self._session, dtype).numbered())]
        together = count // len(found)
        return [
            [
                self._checked(streams.beside(each, self._session), together)
                for each in (several if isinstance(several, tuple | list) else (several,))
            ]
            for several in found
        ]

    def _checked(self, result: Any, count: int) -> SecretTensor:
        """Returns a result as numbers, after checking that it can be told apart by requests.

        Raises:
            MisuseError: it cannot.
        """
        label, rows = self.model.label, self._inputs[0].shape[0]
        if not isinstance(result, SecretTensor):
            raise MisuseError(
                f"model {label} gives a {type(result).__name__} that depends on no input: it must "
                "give a tensor, or a tuple of them, computed from its input"
            )
        if result.dtype == torch.bool:
            result = result.to(torch.uint8)
        if not result.dim() or result.shape[0] != count * rows:
            raise MisuseError(
                f"model {label} gives a tensor of shape {tuple(result.shape)} for {count * rows} "
                "rows: its first dimension must be theirs, so that requests can be told apart"
            )
        return result

    def _sealable(self, results: Sequence[Sequence[SecretTensor]], count: int) -> Parts:
        session, together = self._session, count // len(results)
        marker = shares.trivial(session, torch.ones(together, 1, dtype=torch.int64))
        tables: list[Parts] = [
            tuple(
                torch.cat([part.reshape(together, -1) for part in each], dim=1)
                for each in zip(*(each._parts for each in several), marker, strict=True)
            )
            for several in results
        ]
        flags = [union(each.flags for each in several) for several in results]
        return shares.joined(*shares.checked_each(session, tables, flags))


def _compare(session: Session, loaded: Loaded) -> None:
    """Checks that all parties have the same version of a model. One round."""
    model = loaded.model
    own = f"{model.label} {model.owner} {loaded.digest}".encode()
    for party, theirs in enumerate(session.told_by_all(own)):
        if theirs != own:
            raise setup_error(
                f"party {party} has another model than {model.label}, owned by party "
                f"{model.owner}, with the hash {loaded.digest}: give all parties the same tables "
                "[[model]] and the same program"
            )


def _shared(loaded: Loaded) -> Any:
    """Makes the module, and shares its owner's weights."""
    assert not isinstance(loaded.program, Program)
    label = loaded.model.label
    module = loaded.program()
    if not isinstance(module, torch.nn.Module):
        raise MisuseError(
            f"model {label}: {loaded.model.callable} returns a {type(module).__name__}; it returns "
            "the module"
        )
    if loaded.weights is not None:
        try:
            module.load_state_dict(loaded.weights)
        except (RuntimeError, TypeError) as error:
            raise MisuseError(
                f"model {label}: the weights are not those of its module: {printable(error)}"
            ) from None
    return share_module(module.eval(), owner=loaded.model.owner)
