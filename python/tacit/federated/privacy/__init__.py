"""Differential privacy: the account of what was spent, and the noise that servers draw.

Clients clip their updates in ``rounds.clipping``. Servers check the norms in ``validation``.
"""
