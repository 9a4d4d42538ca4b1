"""JSON that holds tensors, read in a bounded multiple of its own size.

Python's parser makes an object of each number and each list, and so takes up to 24 times the bytes
of a text. Therefore the lists of numbers are cut out before the rest is parsed. They are parsed
piece by piece, and only into arrays."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from tacit.serving.http_messages import Refused

#: The most bytes of JSON besides the lists of numbers.
MOST_REST = 1 << 20

#: Bytes of a list that are parsed at a time, up to the end of a number.
PIECE = 1 << 16

#: What stands for a list that was cut out. JSON itself has no such word.
_CUT = "NaN"

#: A list under the key "data", up to the next text or object. A text of JSON has no quotation mark
#: of its own but behind a backslash, so this key is none of the inside of a text. Whatever the list
#: holds beyond its end is found when it is read.
_DATA = re.compile(rb'"data"[ \t\r\n]*:[ \t\r\n]*(\[[^"{}]*\])')

#: A bracket that does not stand at the border of a number or of a list.
_MISPLACED = re.compile(rb"[^\[,\s]\s*\[|\]\s*[^\],\s]")

#: All bytes but those that make the structure of a list.
_UNSTRUCTURED = bytes(sorted(set(range(256)) - set(b"[],")))

_WITHOUT_BRACKETS = bytes.maketrans(b"[]", b"  ")


class Numbers:
    """The text of a list of numbers, which is not parsed yet."""

    def __init__(self, text: memoryview) -> None:
        self._text = text

    def pieces(self, shape: Sequence[int], tensor: str) -> Iterator[list[Any]]:
        """Yields the elements in row-major order, some at a time, in all as many as the shape has.
        They are numbers, or what JSON has beside texts, lists and objects.

        Raises:
            Refused: there are more or fewer; they are in lists that are not nested like the shape;
                or it is no JSON.
        """
        text = bytes(self._text)
        _check_structure(text, shape, tensor)
        flat = text.translate(_WITHOUT_BRACKETS)
        del text
        begin = came = 0
        while begin <= len(flat):
            end = flat.find(b",", begin + PIECE)
            end = len(flat) if end < 0 else end
            try:
                elements = _PIECES.decode(f"[{str(flat[begin:end], 'ascii', 'replace')}]")
            except ValueError:
                raise _no_json() from None
            came += len(elements)
            if elements:
                yield elements
            begin = end + 1
        if came != math.prod(shape):
            raise _another_number(came, shape, tensor)


def parsed(content: memoryview) -> Any:
    """Returns a JSON text's value, with ``Numbers`` in the place of each list that an object has as
    its ``data``, if it is one without texts and objects.

    Raises:
        Refused: it is no JSON, or too long without these lists.
    """
    lists: list[Numbers] = []
    rest = bytearray()
    begin = 0
    for found in _DATA.finditer(content):
        at, end = found.span(1)
        _append(rest, content[begin:at])
        rest += _CUT.encode()
        lists.append(Numbers(content[at:end]))
        begin = end
    _append(rest, content[begin:])
    waiting = iter(lists)

    def constant(name: str) -> Numbers:
        # Constants come in the order of the text. One that was not put in is counted at the end.
        found = next(waiting, None) if name == _CUT else None
        return _no_number() if found is None else found

    try:
        text = str(rest, "utf-8")
        value = json.loads(text, parse_constant=constant, object_pairs_hook=_without_doubles)
    except RecursionError:
        raise Refused(400, "the JSON is nested too deeply") from None
    except ValueError:
        # Also numbers of more digits than Python reads, and bytes that are no UTF-8.
        raise _no_json() from None
    if next(waiting, None) is not None:
        raise _no_json()
    return value


def _append(rest: bytearray, more: memoryview) -> None:
    if len(rest) + len(more) > MOST_REST:
        raise Refused(
            413,
            f"the JSON has more than {MOST_REST} bytes besides the numbers of tensors: send what "
            "the model's metadata name alone",
        )
    rest += more


def _check_structure(text: bytes, shape: Sequence[int], tensor: str) -> None:
    """Refuses a list that is neither flat nor nested like a shape, or of another length."""
    structure = text.translate(None, _UNSTRUCTURED)
    commas = structure.count(b",")
    if len(structure) - commas == 2:
        came = commas + 1 if text[1:-1].strip() else 0
        if came != math.prod(shape):
            raise _another_number(came, shape, tensor)
    else:
        length = 0
        for dimension in reversed(shape):
            length = dimension * length + dimension + 1
        if len(structure) != length or structure != _nested(shape):
            raise Refused(400, f"{tensor}: its data is nested, but not like its shape")
    if _MISPLACED.search(text):
        raise _no_json()


def _nested(shape: Sequence[int]) -> bytes:
    """Returns the brackets and commas of a list of lists of a shape."""
    found = b""
    for dimension in reversed(shape):
        found = b"[" + (found + b",") * (dimension - 1) + found + b"]"
    return found


def _another_number(came: int, shape: Sequence[int], tensor: str) -> Refused:
    return Refused(400, f"{tensor}: its shape needs {math.prod(shape)} numbers, and {came} came")


def _no_json() -> Refused:
    return Refused(400, "the body is no JSON")


def _no_number(*_: str) -> NoReturn:
    raise Refused(400, "the JSON has NaN or an infinity, which are no numbers of JSON")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused(400, "the JSON has an object with the same key twice")
    return found


#: Reads the pieces of lists.
_PIECES = json.JSONDecoder(parse_constant=_no_number)
