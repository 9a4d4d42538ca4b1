"""The paths of the Open Inference Protocol v2, answered by a service's client."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Self, TypeVar
from urllib.parse import unquote

import tacit
from tacit.client import Model
from tacit.errors import (
    DeviationError,
    LateError,
    MisuseError,
    RangeError,
    RequestRefusedError,
    TacitError,
)
from tacit.gateway.backend import Backend
from tacit.gateway.messages import InferRequest, decode, describe, encode
from tacit.serving.http_messages import (
    Refused,
    Request,
    Response,
    json_response,
    only,
    refuse_pages,
)
from tacit.serving.spans import span

logger = logging.getLogger(__name__)

#: Requests that are with the parties at a time, each in a thread of this process.
MOST_WAITING = 64

#: Seconds after which a client may ask again where the service names no time.
USUAL_WAIT = 1.0

#: The longest time that an application is told to wait.
LONGEST_WAIT = 3600.0

_Result = TypeVar("_Result")


class Routes:
    """Answers the requests of applications through a client of the service.

    Args:
        backend: the client.
        hosts: the names by which applications may address this gateway, or None for any.
        most_waiting: the most requests that are with the parties at a time.
    """

    def __init__(
        self,
        backend: Backend,
        hosts: frozenset[str] | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._backend = backend
        self._hosts = hosts
        self._most_waiting = most_waiting
        self._waiting = 0
        # Requests have all threads but one, so that health is answered when they have theirs.
        self._threads = ThreadPoolExecutor(most_waiting, thread_name_prefix="gateway")
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="gateway-models")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the threads, without waiting for requests that are under way."""
        for threads in (self._threads, self._asking):
            threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, request: Request) -> Response:
        """Answers a request.

        Raises:
            Refused: it is answered with an error.
        """
        refuse_pages(request, self._hosts, "the gateway")
        match _path(request.target):
            case ["v2"]:
                only(request, "GET", "HEAD")
                return json_response(
                    {
                        "name": "tacit",
                        "version": tacit.__version__,
                        "extensions": ["binary_tensor_data"],
                    }
                )
            case ["v2", "health", "live"]:
                only(request, "GET", "HEAD")
                return json_response({"live": True})
            case ["v2", "health", "ready"]:
                only(request, "GET", "HEAD")
                await self._models()
                return json_response({"ready": True})
            case ["v2", "models", name, *rest]:
                version, action = _action(rest)
                return await self._of_model(request, name, version, action)
        raise _no_path()

    async def _of_model(
        self, request: Request, name: str, version: str | None, action: str | None
    ) -> Response:
        if action == "infer":
            only(request, "POST")
        else:
            only(request, "GET", "HEAD")
        model = (await self._models()).get(name)
        if model is None:
            raise Refused(404, "the service has no model of this name")
        if version is not None and version not in model.versions:
            raise Refused(404, f"{name} has the versions {', '.join(model.versions)}")
        if action == "infer":
            return await self._infer(request, model, version)
        if action == "ready":
            return json_response({"name": name, "ready": True})
        return json_response(describe(model))

    async def _infer(self, request: Request, model: Model, version: str | None) -> Response:
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise Refused(415, "send the body without Content-Encoding")
        if self._waiting >= self._most_waiting:
            raise Refused(
                429, f"{self._waiting} requests are with the service: come again later", USUAL_WAIT
            )
        self._waiting += 1
        begin, status = monotonic(), 500
        try:
            answer = await self._run(self._threads, lambda: self._answer(request, model, version))
            status = answer.status
            return answer
        except Refused as refused:
            status = refused.status
            raise
        finally:
            self._waiting -= 1
            seconds = round(monotonic() - begin, 6)
            logger.info(
                "%s: %s after %.3f s",
                model.name,
                status,
                seconds,
                extra={"fields": {"model": model.name, "status": status, "seconds": seconds}},
            )

    def _answer(self, request: Request, model: Model, version: str | None) -> Response:
        """Decodes a request, asks the service, and encodes the answer, in a thread."""
        asked: InferRequest = decode(request, model)
        # The id is the application's, which may use it twice. It names the answer alone; the client
        # gives each request a name of its own, by which the parties use it once.
        with span("tacit.gateway.infer", model=model.name, version=version or "newest"):
            results = self._backend.infer(
                model.name, asked.inputs, version=version, timeout=asked.timeout
            )
        return encode(asked, model, version, results)

    async def _models(self) -> Mapping[str, Model]:
        return await self._run(self._asking, self._backend.models)

    async def _run(self, threads: ThreadPoolExecutor, call: Callable[[], _Result]) -> _Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, call)
        except TacitError as error:
            raise refusal(error) from error


#: HTTP's status for the cause of a refusal; 429 if it is not here, as for "busy" and "quota".
_STATUSES = {
    "starting": 503,
    "draining": 503,
    "lost": 503,
    "deadline": 504,
    "unknown": 404,
    "conflict": 409,
    "invalid": 400,
    "range": 422,
}


#: Statuses with which an application always learns when to come again.
_LATER = (429, 503)


def refusal(error: TacitError) -> Refused:
    """Returns the answer for an error of the client."""
    if isinstance(error, RequestRefusedError):
        status = _STATUSES.get(error.cause, 429)
        wait = _seconds(error.retry_after)
        return Refused(
            status, str(error), USUAL_WAIT if wait is None and status in _LATER else wait
        )
    if isinstance(error, RangeError):
        return Refused(422, str(error))
    if isinstance(error, MisuseError):
        return Refused(400, str(error))
    logger.warning("the service could not be asked: %s", type(error).__name__)
    if isinstance(error, LateError):
        return Refused(504, str(error))
    if isinstance(error, DeviationError):
        return Refused(502, str(error))
    return Refused(503, str(error), USUAL_WAIT)


def _seconds(wait: float | None) -> float | None:
    """Returns a party's number of seconds, which nobody has checked, within bounds."""
    if wait is None or math.isnan(wait):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT)


def _path(target: str) -> list[str]:
    """Returns the parts of a path. Queries have no meaning here, and are dropped."""
    path = target.partition("?")[0]
    return [unquote(part) for part in path.removeprefix("/").removesuffix("/").split("/")]


def _action(rest: list[str]) -> tuple[str | None, str | None]:
    """Returns the version and the action of ``[versions/VERSION][/ready|/infer]``."""
    version = None
    if len(rest) >= 2 and rest[0] == "versions":
        version, rest = rest[1], rest[2:]
    if not rest:
        return version, None
    if len(rest) == 1 and rest[0] in ("ready", "infer"):
        return version, rest[0]
    raise _no_path()


def _no_path() -> Refused:
    return Refused(404, "no such path: the gateway serves /v2 of the Open Inference Protocol")
