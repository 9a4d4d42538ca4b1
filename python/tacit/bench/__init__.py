"""Measurements of the protocols between processes. A benchmark never verifies;
the tests do that."""
