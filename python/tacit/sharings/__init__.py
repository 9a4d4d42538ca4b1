"""Sharings, and the protocol's operations on them: ``shares``, and products in ``bilinear``."""
