"""Measurements of the protocols between processes.

A benchmark never verifies results; the tests do that."""
