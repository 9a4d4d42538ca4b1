"""Requests and responses of the Open Inference Protocol v2, with its binary tensor extension.

A body is JSON, or JSON whose length the header ``Inference-Header-Content-Length`` says, with the
raw bytes of tensors behind it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.client import Model
from tacit.gateway.backend import Array
from tacit.gateway.datatypes import (
    datatype,
    declared,
    dtype_of,
    fits,
    from_bytes,
    from_json,
    shape_of,
    to_bytes,
)
from tacit.gateway.json_numbers import parsed
from tacit.serving.http_messages import Refused, Request, Response, json_response

#: Header with the length of the JSON before raw bytes, in requests and responses.
HEADER_LENGTH = "Inference-Header-Content-Length"

#: The most bytes of JSON. To read it takes up to seven times as many, and raw bytes of tensors once
#: as many again.
MOST_JSON = 1 << 24

#: The longest ``id``, in characters, and the longest timeout, in seconds.
LONGEST_ID = 256
LONGEST_TIMEOUT = 3600.0

_MICROSECONDS = 1e6


@dataclass(frozen=True)
class InferRequest:
    """A checked request."""

    id: str | None
    inputs: Mapping[str, Array] = field(repr=False)
    #: The outputs that the response has, in order, and whether each is raw bytes.
    outputs: Mapping[str, bool]
    timeout: float | None


def decode(request: Request, model: Model) -> InferRequest:
    """Checks a request for a model.

    Raises:
        Refused: it is malformed, or not for this model; the text names the tensor.
    """
    content, rest = _split(request)
    asked = _object(parsed(content), "the request", {"id", "parameters", "inputs", "outputs"})
    given = asked.get("id")
    if given is not None and (not isinstance(given, str) or len(given) > LONGEST_ID):
        raise Refused(400, f"id must be a text of at most {LONGEST_ID} characters")
    parameters = _object(
        asked.get("parameters", {}), "parameters", {"binary_data_output", "timeout"}
    )
    return InferRequest(
        given,
        _inputs(asked.get("inputs"), rest, model),
        _outputs(asked.get("outputs"), _flag(parameters, "binary_data_output"), model),
        _timeout(parameters.get("timeout")),
    )


def encode(
    request: InferRequest, model: Model, version: str | None, results: Sequence[Array]
) -> Response:
    """Returns the response for a request's results, in the order of the model's outputs.

    Raises:
        Refused: the results are not those that the model has.
    """
    if not (
        len(results) == len(model.outputs)
        and all(
            fits(found.shape, each.shape)
            for found, each in zip(results, model.outputs, strict=True)
        )
    ):
        raise Refused(
            502,
            f"the service answered with other outputs than those of the last version of {model.name}: "
            "ask for that version",
        )
    by_name = dict(zip((each.name for each in model.outputs), results, strict=True))
    described, raw = [], []
    for name, is_raw in request.outputs.items():
        result = by_name[name]
        entry: dict[str, Any] = {
            "name": name,
            "datatype": datatype(result.dtype),
            "shape": list(result.shape),
        }
        if is_raw:
            raw.append(to_bytes(result))
            entry["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            entry["data"] = result.ravel().tolist()
        described.append(entry)
    answer: dict[str, Any] = {"model_name": model.name, "outputs": described}
    if version is not None:
        answer["model_version"] = version
    if request.id is not None:
        answer["id"] = request.id
    if not raw:
        return json_response(answer)
    header = json.dumps(answer, allow_nan=False).encode()
    return Response(
        200,
        b"".join([header, *raw]),
        "application/octet-stream",
        ((HEADER_LENGTH, str(len(header))),),
    )


def describe(model: Model) -> dict[str, Any]:
    """Returns the protocol's metadata of a model."""
    return {
        "name": model.name,
        "versions": list(model.versions),
        "platform": "tacit",
        **{
            kind: [
                {
                    "name": each.name,
                    "datatype": declared(each.dtype),
                    # Several requests may come at once, one after another.
                    "shape": [-1, *each.shape[1:]],
                }
                for each in tensors
            ]
            for kind, tensors in (("inputs", model.inputs), ("outputs", model.outputs))
        },
    }


def _split(request: Request) -> tuple[memoryview, memoryview]:
    """Returns the JSON of a body, and the raw bytes behind it."""
    body = memoryview(request.body)
    length = _length_of_json(request.headers)
    if length is None:
        length = len(body)
    if length > len(body):
        raise _no_length()
    if length > MOST_JSON:
        raise Refused(413, _LONG_JSON)
    return body[:length], body[length:]


#: What is said of JSON that is too long.
_LONG_JSON = (
    f"the JSON is longer than {MOST_JSON} bytes: send tensors as raw bytes, by the binary tensor "
    "data extension"
)


def longest(headers: Mapping[str, str]) -> tuple[int, str] | None:
    """Returns the most bytes of a body with these headers, and what is said of a longer one; or
    ``None`` if it may be as long as any.

    Raises:
        Refused: its JSON is too long.
    """
    length = _length_of_json(headers)
    if length is None:
        return MOST_JSON, _LONG_JSON
    if length > MOST_JSON:
        raise Refused(413, _LONG_JSON)
    return None


def _length_of_json(headers: Mapping[str, str]) -> int | None:
    """Returns the length that a header says, if there is one."""
    given = headers.get(HEADER_LENGTH.lower())
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 20):
        raise _no_length()
    return int(given)


def _no_length() -> Refused:
    return Refused(400, f"{HEADER_LENGTH} must be a length within the body")


def _object(content: Any, what: str, known: set[str]) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise Refused(400, f"{what} must be an object of JSON")
    if not content.keys() <= known:
        raise Refused(400, f"{what} may have {', '.join(sorted(known))}, and nothing else")
    return content


def _flag(parameters: Mapping[str, Any], name: str, otherwise: bool = False) -> bool:
    value = parameters.get(name, otherwise)
    if not isinstance(value, bool):
        raise Refused(400, f"{name} must be true or false")
    return value


def _timeout(given: Any) -> float | None:
    """Returns the timeout in seconds; the protocol has whole microseconds, and 0 for none."""
    if given is None or (type(given) is int and given == 0):
        return None
    if type(given) is not int or not 1 <= given <= LONGEST_TIMEOUT * _MICROSECONDS:
        raise Refused(
            400, f"timeout must be whole microseconds, of at most {LONGEST_TIMEOUT:.0f} seconds"
        )
    return given / _MICROSECONDS


def _named(entries: Any, what: str, known: Sequence[str]) -> list[dict[str, Any]]:
    """Returns entries of a list, each with the name of another tensor of the model."""
    if not isinstance(entries, list) or len(entries) > len(known):
        raise Refused(400, f"{what} must be a list of at most {len(known)} tensors")
    seen = set()
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in known or name in seen:
            raise Refused(400, f"{what} must name tensors of the model, each once: {_list(known)}")
        seen.add(name)
    return entries


def _inputs(entries: Any, rest: memoryview, model: Model) -> dict[str, Array]:
    wanted = {each.name: each for each in model.inputs}
    found: dict[str, Array] = {}
    for entry in _named(entries, "inputs", list(wanted)):
        name = entry["name"]
        tensor = f"input {name}"
        _object(entry, tensor, {"name", "shape", "datatype", "parameters", "data"})
        dtype = dtype_of(entry.get("datatype"), tensor)
        shape = shape_of(entry.get("shape"), tensor)
        its = wanted[name]
        if declared(its.dtype) != datatype(dtype):
            raise Refused(400, f"{tensor}: the model takes {declared(its.dtype)}")
        if not fits(shape, its.shape):
            raise Refused(
                400,
                f"{tensor}: the model takes the shape {list(its.shape)}, or several of them one "
                "after another in the first dimension",
            )
        parameters = _object(entry.get("parameters", {}), tensor, {"binary_data_size"})
        if "binary_data_size" not in parameters:
            found[name] = from_json(entry.get("data"), dtype, shape, tensor)
            continue
        size = parameters["binary_data_size"]
        if "data" in entry or type(size) is not int or not 0 <= size <= len(rest):
            raise Refused(
                400,
                f"{tensor}: binary_data_size stands instead of data, and counts bytes that follow "
                "the JSON",
            )
        found[name] = from_bytes(rest[:size], dtype, shape, tensor)
        rest = rest[size:]
    if len(rest):
        raise Refused(400, f"{len(rest)} bytes follow the JSON that belong to no input")
    if missing := wanted.keys() - found.keys():
        raise Refused(400, f"the model also takes the inputs {_list(sorted(missing))}")
    return found


def _outputs(entries: Any, is_raw: bool, model: Model) -> dict[str, bool]:
    known = [each.name for each in model.outputs]
    if entries is None or entries == []:
        return dict.fromkeys(known, is_raw)
    found = {}
    for entry in _named(entries, "outputs", known):
        tensor = f"output {entry['name']}"
        _object(entry, tensor, {"name", "parameters"})
        parameters = _object(entry.get("parameters", {}), tensor, {"binary_data"})
        found[entry["name"]] = _flag(parameters, "binary_data", is_raw)
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
