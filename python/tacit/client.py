"""A client of a service: it asks parties for a model's results, and is no party itself.

    from tacit.client import Client

    with Client("service.toml") as client:
        y = client.infer("lenet", x)              # NumPy or PyTorch in, the same out
        z = await client.infer_async("lenet", x)

The client encodes the input in fixed point, splits it into one piece for each party, and sends each
party its piece. It gets from each party a share of the result, and adds these up. No party sees the
input or the result.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tacit import _core, fixed
from tacit.config_files import threat_model_of
from tacit.errors import (
    DeviationError,
    LateError,
    MisuseError,
    PeerError,
    RangeError,
    RequestRefusedError,
    TacitError,
    unused,
)
from tacit.serving.config import Service
from tacit.serving.description import Described, Tensor, described_in

__all__ = ["Client", "Model"]

#: Requests of one call that are under way at a time.
AT_ONCE = 16

#: Seconds that a call takes at most, if it does not say.
TIMEOUT = 60.0

#: Seconds between two attempts, if a refusal does not say when to come again.
PAUSE = 0.05

Array = np.ndarray[Any, Any] | torch.Tensor


class Model(NamedTuple):
    """A model of a service, as all its parties describe it."""

    name: str
    #: The last one answers requests that name none.
    versions: tuple[str, ...]
    #: Of the last version, for one request.
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class _Until(NamedTuple):
    """When a call ends."""

    #: All results are there.
    end: float
    #: All parties can be reached and are ready, as long as they have not got the request.
    ready: float

    @classmethod
    def after(cls, timeout: float, patience: float | None) -> "_Until":
        """Returns the times of a call that begins now."""
        now = time.monotonic()
        return cls(now + timeout, now + min(timeout, timeout if patience is None else patience))


class Client:
    """A client of a service. Threads may share one."""

    def __init__(
        self, service: str | Path, *, name: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        """Reads the configuration and the client's key. Makes no connection yet.

        Args:
            service: path of the service's file.
            name: of this client in the file; the first one if not given.
            timeout: seconds that a call takes at most, if it does not say.

        Raises:
            SetupError: the file, a certificate or the key is wrong.
            MisuseError: there is no such client.
        """
        self.service = Service.read(service)
        number, own = self.service.client(name)
        self.name = own.name
        self._timeout = timeout
        self._judging = self.service.judging
        self._core = _core.ServiceClient(
            self.service.name,
            self.service.protocol,
            self.service.certificates_of_parties(),
            [party.clients for party in self.service.parties],
            number,
            self.service.certificate_of(own),
            _core.read_private_key(str(own.key)),
            self._judging,
        )
        self._known: tuple[Described, ...] | None = None
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="tacit client")

    @property
    def threat_model(self) -> str:
        """What is protected against whom. Connections are protected by TLS 1.3."""
        service = self.service
        model = _core.threat_model(service.protocol, len(service.parties), service.source)
        return threat_model_of(model, self._judging)

    def models(self, timeout: float | None = None) -> dict[str, Model]:
        """Asks the parties for their models, by name.

        Raises:
            PeerError: a party cannot be reached in time, or describes other models than the others.
            RequestRefusedError: a party has no models ready yet.
        """
        until = _Until.after(self._timeout if timeout is None else timeout, None)
        known = self._known = self._described(until)
        found: dict[str, list[Described]] = {}
        for each in known:
            found.setdefault(each.name, []).append(each)
        return {
            name: Model(
                name,
                tuple(each.version for each in versions),
                versions[-1].inputs,
                versions[-1].outputs,
            )
            for name, versions in found.items()
        }

    def infer(
        self,
        model: str | None,
        x: Array | Mapping[str, Array],
        *,
        version: str | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> Any:
        """Returns a model's result for an input.

        Args:
            model: its name; ``None`` if the service has one model only.
            x: a NumPy array or tensor of the input's shape, or several of them one after another
                in the first dimension; by name if the model has several inputs. Each is one
                request.
            version: of the model; the last one if not given.
            timeout: seconds that the call takes at most.
            patience: seconds for which it waits for parties that cannot be reached or are not
                ready, as long as not all of them have the request; all the time if not given.

        Returns:
            An array or a tensor, as the input is one; a tuple of them if the model has several
            outputs.

        Raises:
            EncodingError: the input has a NaN, or values that are too large. Nothing was sent.
            MisuseError: there is no such model, or the input has another shape. Nothing was sent.
            RequestRefusedError: a party refuses it, for the reason in ``cause``, and says in
                ``retry_after`` when to come again.
            LateError: all parties have the request, and do not answer in time.
            PeerError: a party cannot be reached in time, or sent what belongs to no result.
        """
        until = _Until.after(self._timeout if timeout is None else timeout, patience)
        try:
            chosen = self._chosen(model, version, until)
        except (PeerError, RequestRefusedError) as error:
            raise unused(error) from None
        requests, is_tensor = _requests(chosen, x)
        if len(requests) == 1:
            results = [self._asked(chosen, requests[0], until)]
        else:
            results = self._asked_side_by_side(chosen, requests, until)
        return _joined(chosen, results, is_tensor=is_tensor)

    async def infer_async(
        self,
        model: str | None,
        x: Array | Mapping[str, Array],
        *,
        version: str | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> Any:
        """As :meth:`infer`, without blocking the event loop."""
        ask = partial(self.infer, version=version, timeout=timeout, patience=patience)
        return await asyncio.to_thread(ask, model, x)

    def is_ready(self, timeout: float = 1.0) -> bool:
        """Returns whether all parties can be reached and have the same models ready."""
        try:
            return bool(self.models(timeout))
        except TacitError:
            return False

    def close(self) -> None:
        """Ends the connections. Calls that are under way fail, and so do later ones.

        They end at once, or within ten seconds if a connection is just being made."""
        self._closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._core.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chosen(self, model: str | None, version: str | None, until: _Until) -> Described:
        """Returns the version of a model that a request is for.

        Raises:
            MisuseError: there is none.
        """
        known = self._known or self._described(until)
        for is_again in (False, True):
            if is_again:
                # The service may have got another version meanwhile.
                known = self._described(until)
            self._known = known
            if model is None and len({each.name for each in known}) > 1:
                names = ", ".join(sorted({each.name for each in known}))
                raise MisuseError(f"the service has several models: say which of {names}")
            for each in reversed(known):
                if model in (None, each.name) and version in (None, each.version):
                    return each
        names = ", ".join(f"{each.name} {each.version}" for each in known)
        asked = model if version is None else f"{model} {version}"
        raise MisuseError(f"the service has no model {asked!r}; it has {names}")

    def _described(self, until: _Until) -> tuple[Described, ...]:
        """Asks all parties for their description, until they have the same."""
        while True:
            told, refused = self._core.describe(_left(until.ready))
            if refused is not None:
                self._pause(_refusal(refused), until.ready)
                continue
            if len(set(told)) == 1:
                return described_in(told[0])
            # Parties switch one after another to another version.
            if time.monotonic() + PAUSE >= until.ready:
                raise PeerError(
                    "the parties describe different models: give all of them the same service.toml "
                    "and programs"
                )
            self._sleep(PAUSE)

    def _asked_side_by_side(
        self, chosen: Described, requests: Sequence[np.ndarray[Any, Any]], until: _Until
    ) -> list[torch.Tensor]:
        """Sends the requests of one call."""
        try:
            return list(self._pool.map(partial(self._asked, chosen, until=until), requests))
        except TacitError as error:
            # Whatever became of this one, others may have been used.
            raise unused(error, False) from None
        except (CancelledError, RuntimeError) as error:
            if not self._closed.is_set():
                raise
            raise _closed() from error

    def _asked(self, chosen: Described, words: np.ndarray[Any, Any], until: _Until) -> torch.Tensor:
        """Sends one request, and returns the words of its result.

        All attempts have one number, which a party computes for once."""
        request = self._core.request(chosen.digest, uuid.uuid4().bytes, words)
        try:
            parts = self._parts(request, until)
        except (PeerError, RequestRefusedError) as error:
            raise unused(error, request.is_unused) from None
        found = _joined_words(self.service.protocol, parts)
        if len(found) != chosen.returned:
            raise DeviationError(
                "the parties sent parts that are not of one result: check that all of them run the "
                "same release of tacit, and ask again"
            )
        if found[-1] != 1:
            raise RangeError(
                "numbers left the range that the model computes in, in this request or, if the "
                "model is a module in Python, in one that was computed with it: there is no "
                "result. Scale the input as the model's training data were"
            )
        return torch.from_numpy(found[:-1])

    def _parts(self, request: _core.Request, until: _Until) -> list[bytes]:
        """Returns the parties' parts of the result of a request."""
        while True:
            # A request that all parties may have is not given up for others.
            ready = until.ready if request.is_unused else until.end
            try:
                parts, refused, apart = self._core.ask(request, _left(until.end), _left(ready))
            except PeerError as error:
                if request.is_unused or time.monotonic() < until.end:
                    raise
                raise LateError(str(error)) from None
            if apart is not None:
                raise PeerError(
                    f"parties {apart[0]} and {apart[1]} sent parts of different computations: one "
                    "of them was started again meanwhile; ask again"
                )
            if refused is None:
                return parts
            refusal = _refusal(refused)
            if refusal.cause == "unknown":
                # Another version may have taken its place.
                self._known = None
            self._pause(refusal, until.ready if request.is_unused else until.end)

    def _pause(self, refusal: RequestRefusedError, until: float) -> None:
        """Waits until a party that starts may have started.

        Raises:
            RequestRefusedError: that is too late.
        """
        pause = PAUSE if refusal.retry_after is None else refusal.retry_after
        if refusal.cause != "starting" or time.monotonic() + pause >= until:
            raise refusal
        self._sleep(pause)

    def _sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise _closed()


def _closed() -> MisuseError:
    return MisuseError("this client was closed: make another one")


def _left(until: float) -> float:
    """Returns the seconds until a time; a little if it has passed."""
    return max(0.001, until - time.monotonic())


def _refusal(refused: tuple[int, str, str, float | None]) -> RequestRefusedError:
    party, cause, reason, again = refused
    return RequestRefusedError.of(cause, party, reason, again)


def _joined_words(protocol: str, parts: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """Joins the parties' parts of a result. Returns no words if they are not of one."""
    words = [np.frombuffer(part, np.int64) for part in parts]
    out = np.empty(max(map(len, words)), np.int64)
    found = _core.unseal(protocol, words, out)
    return out[: found or 0]


def _requests(
    chosen: Described, x: Array | Mapping[str, Array]
) -> tuple[list[np.ndarray[Any, Any]], bool]:
    """Encodes an input as the words of one request or several. Also returns whether it is made of
    tensors.

    Raises:
        EncodingError: a value is NaN, infinite or too large.
        MisuseError: the input is not what the model takes.
    """
    given = x if isinstance(x, Mapping) else {chosen.inputs[0].name: x}
    names = [each.name for each in chosen.inputs]
    if sorted(given) != sorted(names):
        raise MisuseError(
            f"model {chosen.name} takes the inputs {', '.join(names)}: give each by its name, as "
            "in {name: array}"
        )
    is_tensor = any(isinstance(each, torch.Tensor) for each in given.values())
    columns = [_rows(each, given[each.name]) for each in chosen.inputs]
    if len({len(column) for column in columns}) > 1:
        raise MisuseError("the inputs are different numbers of requests: give as many of each")
    return [torch.cat(row).numpy() for row in zip(*columns, strict=True)], is_tensor


def _rows(wanted: Tensor, values: Array) -> list[torch.Tensor]:
    """Encodes one input, a row for each request."""
    if not isinstance(values, np.ndarray | torch.Tensor):
        raise MisuseError(
            f"the input {wanted.name} is a NumPy array or a tensor, not {type(values).__name__}"
        )
    array = _whole(wanted, values) if isinstance(values, torch.Tensor) else values
    values = torch.from_numpy(_numbers(wanted, array))
    shape = tuple(values.shape)
    if wanted.shape[0] == 1 and shape == wanted.shape[1:]:
        values = values.unsqueeze(0)
    elif shape[1:] != wanted.shape[1:] or not shape or not shape[0] or shape[0] % wanted.shape[0]:
        raise MisuseError(
            f"the input {wanted.name} has shape {shape}, the model takes {wanted.shape}, or several "
            "of them one after another in the first dimension"
        )
    return [wanted.encoded(each) for each in torch.split(values, wanted.shape[0])]


def _whole(wanted: Tensor, values: torch.Tensor) -> np.ndarray[Any, Any]:
    """Returns a tensor as an array. NumPy lacks some dtypes of floats, so all are float64."""
    if values.dtype.is_complex:
        raise _wrong_dtype(wanted, values.dtype)
    try:
        values = values.detach().cpu()
        return (values.double() if values.dtype.is_floating_point else values).numpy()
    except (RuntimeError, TypeError, ValueError):
        # Sparse, nested, quantized and meta tensors, and those of some subclasses.
        raise MisuseError(
            f"the input {wanted.name} is no dense tensor on a device that PyTorch can copy from: "
            "convert it, for example by x.to_dense()"
        ) from None


def _numbers(wanted: Tensor, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns a copy of an array as float64 or int64, one row after another in memory. The array
    may have any strides and byte order."""
    if np.ma.isMaskedArray(values):
        raise MisuseError(
            f"the input {wanted.name} is a masked array: replace what is masked with a number, by "
            "x.filled(0)"
        )
    dtype = fixed.DTYPES[wanted.dtype]
    if values.dtype.kind not in "biuf" or (values.dtype.kind == "f") != dtype.is_floating_point:
        raise _wrong_dtype(wanted, values.dtype)
    if dtype.is_floating_point:
        # A number that float64 does not hold becomes infinite, which has no encoding.
        with np.errstate(all="ignore"):
            return np.array(values, np.float64, order="C", subok=False)
    if values.size:
        bounds = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        if int(values.min()) < bounds[0] or int(values.max()) > bounds[1]:
            raise MisuseError(f"the input {wanted.name} has numbers that are no {wanted.dtype}")
    return np.array(values, np.int64, order="C", subok=False)


def _wrong_dtype(wanted: Tensor, dtype: object) -> MisuseError:
    found = str(dtype).removeprefix("torch.")
    return MisuseError(
        f"the input {wanted.name} has the dtype {found}, the model takes {wanted.dtype}: convert it"
    )


def _joined(chosen: Described, results: Sequence[torch.Tensor], *, is_tensor: bool) -> Any:
    """Decodes the results of one call."""
    joined, begin = [], 0
    for output in chosen.outputs:
        end = begin + output.numbers
        each = torch.cat([output.decoded(words[begin:end]) for words in results])
        joined.append(each if is_tensor else _as_array(each))
        begin = end
    return joined[0] if len(joined) == 1 else tuple(joined)


def _as_array(values: torch.Tensor) -> np.ndarray[Any, Any]:
    # NumPy has no bfloat16.
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
