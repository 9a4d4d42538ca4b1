"""Random C programs in checked mode of the RISC-V machine."""

from pathlib import Path
from typing import Any

import pytest

from overflows_of_programs import Program, compiled, programs, tried
from tacit.errors import SetupError
from test_riscv import SETTINGS

Made = tuple[list[Program], Path]

ALL: dict[str, dict[str, Any]] = {"plain": {"parties": 2, "protocol": "plain"}, **SETTINGS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Draws programs and compiles their ELF file."""
    those = programs(60, 5)
    try:
        return those, compiled(those, tmp_path_factory.mktemp("programs"))
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("setting", ALL)
def test_what_programs_show_of_numbers_of_all_magnitudes_is_right(made: Made, setting: str) -> None:
    """`overflows_of_programs.py` can try more cases."""
    those, file = made
    told, wrong = tried(file, those, 256, 7, ALL[setting])
    assert not wrong, [(those[each.at].body, each) for each in wrong]
    assert min(told["right"], told["refused"]) > 60, told


def test_without_checks_overflows_are_missed(made: Made) -> None:
    """Verifies that the test above detects missing checks."""
    those, file = made
    told, _ = tried(file, those, 64, 7, ALL["plain"], checked=False)
    assert told["missed"] > 5, told
