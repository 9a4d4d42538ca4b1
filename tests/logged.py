"""What was logged, for tests: all of it, searched for a value that is secret."""

import pytest

#: A value that no log has by chance, as a program writes it and as fixed point has it.
SECRET = 8421.375
MARKS = ("8421", "421.375", str(int(SECRET * 2**16)), float(SECRET).hex())


def logged(caplog: pytest.LogCaptureFixture) -> dict[tuple[str, str], list[str]]:
    """What tacit logged, by name and level; none of it holds the marked value."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in caplog.records:
        if record.name.split(".")[0] == "tacit":
            found.setdefault((record.name, record.levelname), []).append(record.getMessage())
            said = (record.getMessage(), repr(record.args), record.exc_text, record.stack_info)
            assert not any(mark in str(each) for mark in MARKS for each in said), said
            assert record.exc_info is None
    return found
