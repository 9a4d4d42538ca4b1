"""Measurements of the protocols between processes. A benchmark never verifies; the tests do that."""

from tacit.bench.cases import CASES
from tacit.bench.run import measure
from tacit.bench.settings import SETTINGS, Setting

__all__ = ["CASES", "SETTINGS", "Setting", "measure"]
