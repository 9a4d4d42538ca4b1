"""Collects log records for tests, and searches all of them for a secret value."""

import pytest

#: A value that does not occur in a log by chance, as programs write it and in fixed point.
SECRET = 8421.375
MARKS = ("8421", "421.375", str(int(SECRET * 2**16)), float(SECRET).hex())


def logged(caplog: pytest.LogCaptureFixture) -> dict[tuple[str, str], list[str]]:
    """Returns tacit's log messages by logger and level; fails if one contains the marked value."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in caplog.records:
        if record.name.split(".")[0] == "tacit":
            found.setdefault((record.name, record.levelname), []).append(record.getMessage())
            said = (record.getMessage(), repr(record.args), record.exc_text, record.stack_info)
            assert not any(mark in str(each) for mark in MARKS for each in said), said
            assert record.exc_info is None
    return found
