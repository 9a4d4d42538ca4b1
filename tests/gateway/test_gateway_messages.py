"""Requests of the Open Inference Protocol: what is read, and what is refused in which words."""

import gc
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from serving_in_clear import ADD, DOUBLE

from tacit.client import Model
from tacit.gateway import json_numbers
from tacit.gateway.datatypes import DTYPES, MOST_DIMENSIONS
from tacit.gateway.json_numbers import MOST_REST
from tacit.gateway.messages import MOST_JSON, InferRequest, decode, encode
from tacit.serving.description import Tensor
from tacit.serving.http_messages import Refused, Request

X: dict[str, Any] = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2.5, -3]}
RAW = {**{k: v for k, v in X.items() if k != "data"}, "parameters": {"binary_data_size": 12}}


def request(content: Any, rest: bytes = b"", **headers: str) -> Request:
    """Returns a request with JSON and raw bytes behind it."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    if rest:
        headers.setdefault("inference-header-content-length", str(len(text)))
    return Request("POST", "/v2/models/double/infer", headers, text + rest)


def refusal(model: Model, asked: Request) -> tuple[int, str]:
    """Returns the status and the text of a refusal."""
    with pytest.raises(Refused) as refused:
        decode(asked, model)
    return refused.value.status, str(refused.value)


@pytest.mark.parametrize(
    "data",
    [[1, 2.5, -3, 4, 5, 6], [[1, 2.5, -3], [4, 5, 6]]],
    ids=["flat", "nested"],
)
def test_json_tensors(data: Any) -> None:
    found = decode(request({"inputs": [{**X, "shape": [2, 3], "data": data}]}), DOUBLE)
    assert found.inputs["x"].dtype == np.float32
    assert found.inputs["x"].tolist() == [[1, 2.5, -3], [4, 5, 6]]
    assert found.outputs == {"twice": False, "sum": False}
    assert (found.id, found.timeout) == (None, None)


@pytest.mark.parametrize("name", DTYPES)
def test_raw_tensors_of_every_datatype(name: str) -> None:
    """Every datatype goes through both forms, with its least and greatest values."""
    dtype = DTYPES[name]
    if dtype.kind == "f":
        values = np.array([[np.finfo(dtype).min, np.finfo(dtype).max]], dtype)
    elif dtype.kind == "b":
        values = np.array([[False, True]])
    else:
        values = np.array([[np.iinfo(dtype).min, np.iinfo(dtype).max]], dtype)
    declared = Tensor("x", str(dtype), (1, 2), 0)
    model = Model("same", ("1",), (declared,), (declared._replace(name="y"),))
    entry = {"name": "x", "shape": [1, 2], "datatype": name}
    for asked in (
        request({"inputs": [{**entry, "data": values.tolist()}]}),
        request(
            {"inputs": [{**entry, "parameters": {"binary_data_size": values.nbytes}}]},
            values.tobytes(),
        ),
    ):
        found = decode(asked, model).inputs["x"]
        assert found.dtype == dtype
        assert found.tobytes() == values.tobytes()
        assert found.flags.writeable
        assert found.flags.aligned
        for is_raw in (False, True):
            answer = encode(InferRequest("7", {}, {"y": is_raw}, None), model, "1", (values,))
            header = dict(answer.headers).get("Inference-Header-Content-Length")
            length = len(answer.body) if header is None else int(header)
            said = json.loads(answer.body[:length])
            assert (said["id"], said["model_name"], said["model_version"]) == ("7", "same", "1")
            (output,) = said["outputs"]
            assert (output["name"], output["datatype"], output["shape"]) == ("y", name, [1, 2])
            if is_raw:
                assert output["parameters"] == {"binary_data_size": values.nbytes}
                assert answer.body[length:] == values.tobytes()
            else:
                assert np.array(output["data"], dtype).tobytes() == values.tobytes()


def test_inputs_in_another_order_take_their_own_bytes() -> None:
    a, b = np.array([[1, 2]]), np.array([[30, 40]])
    entries = [
        {"name": n, "shape": [1, 2], "datatype": "INT64", "parameters": {"binary_data_size": 16}}
        for n in ("b", "a")
    ]
    found = decode(request({"inputs": entries}, b.tobytes() + a.tobytes()), ADD).inputs
    assert (found["a"].tolist(), found["b"].tolist()) == ([[1, 2]], [[30, 40]])


def test_outputs_are_chosen_one_by_one() -> None:
    content = {
        "id": "9",
        "inputs": [X],
        "outputs": [{"name": "sum", "parameters": {"binary_data": False}}, {"name": "twice"}],
        "parameters": {"binary_data_output": True, "timeout": 1_500_000},
    }
    found = decode(request(content), DOUBLE)
    assert list(found.outputs.items()) == [("sum", False), ("twice", True)]
    assert (found.id, found.timeout) == ("9", 1.5)


def changed(**entries: Any) -> dict[str, Any]:
    """Returns a request whose input has other entries; those that are ``...`` are missing."""
    return {"inputs": [{k: v for k, v in {**X, **entries}.items() if v is not ...}]}


MALFORMED: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "the body is no JSON"),
    "no UTF-8": (b'{"id": "\xff"}', "the body is no JSON"),
    "empty": (b"", "the body is no JSON"),
    "a list": ([], "the request must be an object of JSON"),
    "deep": (b"[" * 100_000, "the JSON is nested too deeply"),
    "deep objects": (b'{"a":' * 100_000, "the JSON is nested too deeply"),
    "NaN": (b'{"inputs": [NaN]}', "the JSON has NaN or an infinity"),
    "infinity": (b'{"inputs": [-Infinity]}', "the JSON has NaN or an infinity"),
    "long digits": (b'{"id": ' + b"9" * 5000 + b"}", "the body is no JSON"),
    "a key twice": (b'{"id": "a", "id": "b"}', "the same key twice"),
    "unknown key": ({"inputs": [X], "input": 1}, "and nothing else"),
    "unknown parameter": ({"inputs": [X], "parameters": {"sequence_id": 4}}, "and nothing else"),
    "id": ({"id": 4, "inputs": [X]}, "id must be a text"),
    "long id": ({"id": "x" * 257, "inputs": [X]}, "id must be a text"),
    "timeout": ({"inputs": [X], "parameters": {"timeout": -1}}, "timeout must be"),
    "timeout of a bool": ({"inputs": [X], "parameters": {"timeout": True}}, "timeout must be"),
    "long timeout": ({"inputs": [X], "parameters": {"timeout": 10**18}}, "timeout must be"),
    "flag": ({"inputs": [X], "parameters": {"binary_data_output": 1}}, "must be true or false"),
    "no inputs": ({}, "inputs must be a list"),
    "none": ({"inputs": []}, "the model also takes the inputs x"),
    "inputs of texts": ({"inputs": ["x"]}, "inputs must name tensors of the model"),
    "another name": (changed(name="z"), "inputs must name tensors of the model, each once: x"),
    "twice": ({"inputs": [X, X]}, "inputs must be a list of at most 1 tensors"),
    "another output": (
        {"inputs": [X], "outputs": [{"name": "x"}]},
        "outputs must name tensors of the model, each once: twice, sum",
    ),
    "an output twice": (
        {"inputs": [X], "outputs": [{"name": "sum"}, {"name": "sum"}]},
        "outputs must name tensors of the model, each once",
    ),
    "datatype": (changed(datatype="BYTES"), "input x: its datatype must be one of BOOL, UINT8"),
    "another datatype": (changed(datatype="FP64"), "input x: the model takes FP32"),
    "shape": (changed(shape="1"), "input x: its shape must be a list"),
    "negative": (changed(shape=[-1, -3]), "input x: its shape must be a list"),
    "zero": (changed(shape=[0, 3], data=[]), "input x: its shape must be a list"),
    "bools": (changed(shape=[True, 3]), "input x: its shape must be a list"),
    "dimensions": (changed(shape=[1] * (MOST_DIMENSIONS + 1)), "input x: its shape must be"),
    "huge": (changed(shape=[2**63, 3]), "input x: its shape must be a list"),
    "large": (changed(shape=[2**40, 3]), "its shape needs 3298534883328 numbers, and 3 came"),
    "another shape": (changed(shape=[1, 4]), "input x: the model takes the shape [1, 3], or"),
    "fewer dimensions": (changed(shape=[3]), "input x: the model takes the shape [1, 3], or"),
    "fewer numbers": (changed(data=[1, 2]), "its shape needs 3 numbers, and 2 came"),
    "no data": (changed(data=...), "input x: its data must be a list"),
    "texts": (changed(data=["1", "2", "3"]), "input x: its data has values that are no FP32"),
    "bools as data": (changed(data=[1, True, 3]), "input x: its data has values that are no"),
    "null": (changed(data=[1, None, 3]), "input x: its data has values that are no FP32"),
    "nested otherwise": (changed(data=[[1], [2], [3]]), "nested, but not like its shape"),
    "ragged": (
        changed(shape=[2, 3], data=[[1, 2], [3, 4, 5, 6]]),
        "nested, but not like its shape",
    ),
    "nested in part": (changed(data=[[1, 2, 3], 4]), "nested, but not like its shape"),
    "nested deeper": (changed(data=[[[1], [2], [3]]]), "nested, but not like its shape"),
    "too large": (changed(data=[1, 1e39, 3]), "input x: a number is infinite or not a number"),
    "an infinite literal": (
        json.dumps(changed(data=[1, 4242, 3])).encode().replace(b"4242", b"1e999"),
        "input x: a number is infinite or not a number",
    ),
    "a long whole number": (changed(data=[1, 10**400, 3]), "input x: a number is outside of FP32"),
    "size without bytes": (
        changed(data=..., parameters={"binary_data_size": 12}),
        "input x: binary_data_size stands instead of data",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_json_is_refused(case: str) -> None:
    content, text = MALFORMED[case]
    status, said = refusal(DOUBLE, request(content))
    assert status == 400
    assert text in said


NUMBERS = np.array([[1, 2, 3]], np.float32).tobytes()

RAW_MALFORMED: dict[str, tuple[Request, str]] = {
    "short": (
        request({"inputs": [RAW]}, NUMBERS[:8]),
        "binary_data_size stands instead of data, and counts bytes that follow",
    ),
    "another size": (
        request({"inputs": [{**RAW, "parameters": {"binary_data_size": 8}}]}, NUMBERS),
        "its shape and datatype need 12 bytes, and 8 came",
    ),
    "more": (request({"inputs": [RAW]}, NUMBERS + b"left"), "4 bytes follow the JSON"),
    "both": (
        request({"inputs": [{**X, "parameters": {"binary_data_size": 12}}]}, NUMBERS),
        "binary_data_size stands instead of data",
    ),
    "negative": (
        request({"inputs": [{**RAW, "parameters": {"binary_data_size": -1}}]}, NUMBERS),
        "binary_data_size stands instead of data",
    ),
    "bool": (
        request({"inputs": [{**RAW, "parameters": {"binary_data_size": True}}]}, NUMBERS),
        "binary_data_size stands instead of data",
    ),
    "NaN": (
        request({"inputs": [RAW]}, np.array([1, np.nan, 3], np.float32).tobytes()),
        "input x: a number is infinite or not a number",
    ),
    "header beyond the body": (
        request({"inputs": [RAW]}, NUMBERS, **{"inference-header-content-length": "100000"}),
        "Inference-Header-Content-Length must be a length within the body",
    ),
    "header of a sign": (
        request({"inputs": [RAW]}, NUMBERS, **{"inference-header-content-length": "-1"}),
        "Inference-Header-Content-Length must be a length within the body",
    ),
    "header of other digits": (
        request({"inputs": [RAW]}, NUMBERS, **{"inference-header-content-length": "٣"}),
        "Inference-Header-Content-Length must be a length within the body",
    ),
    "header twice": (
        request({"inputs": [RAW]}, NUMBERS, **{"inference-header-content-length": "5, 5"}),
        "Inference-Header-Content-Length must be a length within the body",
    ),
}


@pytest.mark.parametrize("case", RAW_MALFORMED)
def test_malformed_raw_tensors_are_refused(case: str) -> None:
    asked, text = RAW_MALFORMED[case]
    status, said = refusal(DOUBLE, asked)
    assert status == 400
    assert text in said


def test_whole_numbers_stay_in_their_datatype() -> None:
    entry = {"name": "a", "shape": [1, 2], "datatype": "INT64"}
    other = {**entry, "name": "b", "data": [1, 2]}
    for data, text in (
        ([1, 2**63], "input a: a number is outside of INT64"),
        ([1, 2.0], "input a: its data has values that are no INT64"),
    ):
        status, said = refusal(ADD, request({"inputs": [{**entry, "data": data}, other]}))
        assert (status, text in said) == (400, True)


def column(values: str, rows: int) -> bytes:
    """Returns a request of ``rows`` numbers of a model that takes one."""
    entry = '"name": "x", "datatype": "FP64"'
    return f'{{"inputs": [{{{entry}, "shape": [{rows}, 1], "data": {values}}}]}}'.encode()


ONE = Model(
    "one",
    ("1",),
    (Tensor("x", "float64", (1, 1), 16),),
    (Tensor("y", "float64", (1, 1), 16),),
)


@pytest.mark.parametrize("number", ["0", "7e1", "257", "0.5"])
@pytest.mark.parametrize("is_nested", [False, True], ids=["flat", "nested"])
def test_json_takes_a_few_times_its_size(number: str, is_nested: bool) -> None:
    """An object for each number, and for each list, would take up to 24 times as many bytes."""
    rows = 1 << 17
    element = f"[{number}]" if is_nested else number
    body = column("[" + f"{element}, " * (rows - 1) + element + "]", rows)
    asked = request(body)
    gc.collect()
    tracemalloc.start()
    try:
        found = decode(asked, ONE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.inputs["x"].shape == (rows, 1)
    assert set(found.inputs["x"].ravel().tolist()) == {float(number)}
    # The body itself is not counted here.
    assert peak < 6 * len(body)


def test_json_besides_tensors_is_short() -> None:
    """A key that is written otherwise is the same key, and its list is parsed like any value."""
    numbers = "[" + "[1]," * (MOST_REST // 4) + "[1]]"
    hidden = column(numbers, 2).replace(b'"data"', b'"d\\u0061ta"')
    assert json.loads(hidden.replace(numbers.encode(), b"[1]"))["inputs"][0]["data"] == [1]
    for body in (hidden, b'{"id": ' + numbers.encode() + b"}"):
        status, said = refusal(ONE, request(body))
        assert (status, "besides the numbers of tensors" in said) == (413, True)


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2], [3]",
        "[1]]",
        "[[1]",
        "1[[],2[]]",
        "[[1]2,[]]",
        "[[]1,[]2]",
        "[1[],2[]]",
        "[[1],[2],]",
        "[[1],,[2]]",
        "[1 2]",
        "[[1] [2]]",
        "[1,]",
        "[,1]",
        "[]",
        "[[],[]]",
        "[[1],[]]",
        "[01, 2]",
        "[1, .5]",
        "[1, +2]",
        "[1, 0x2]",
        "[1, \x0c2]",
        "[1, NaN]",
        "[1, -Infinity]",
        "[1, nul]",
        "[1, 2",
    ],
)
def test_lists_of_numbers_that_are_no_json_are_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for piece in (1, 2, json_numbers.PIECE):
        monkeypatch.setattr(json_numbers, "PIECE", piece)
        assert refusal(ONE, request(column(text, 2)))[0] == 400


@pytest.mark.parametrize("text", ["[1,2]", " [ 1 ,\r\n\t2 ] ", "[[1],[2]]", "[ [1 ] , [ 2]]"])
@pytest.mark.parametrize("piece", [1, 2, 3, 1 << 16])
def test_lists_of_numbers_are_read_in_pieces(
    text: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_numbers, "PIECE", piece)
    found = decode(request(column(text, 2)), ONE).inputs["x"]
    assert found.tolist() == [[1], [2]]


def test_words_in_texts_are_no_tensors() -> None:
    """What looks like a tensor's data may stand in a text."""
    for given in ('"data": [1]', '\\"data\\": [1], NaN', "a\\"):
        content = {"id": given, "inputs": [X]}
        assert decode(request(content), DOUBLE).id == given
    for body in (
        b'{"inputs": [{"x\\"data": [1, 2.5, -3]}]}',
        b'{"data": [1], "inputs": []}',
        b'{"inputs": ["data": [1]]}',
        b'{"inputs": [{"data": NaN, "data": [1]}]}',
    ):
        assert refusal(DOUBLE, request(body))[0] == 400


def test_long_json_is_refused_before_it_is_read() -> None:
    status, said = refusal(DOUBLE, request(b" " * (MOST_JSON + 1)))
    assert status == 413
    assert "send tensors as raw bytes" in said


def test_refusals_quote_no_number_of_a_tensor() -> None:
    for data in ([7.123e38, 7.123e38, 7.123e39], [7.123, 7.123], ["7.123"] * 3):
        assert "7.123" not in refusal(DOUBLE, request(changed(data=data)))[1]
