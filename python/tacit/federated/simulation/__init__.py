"""Federations on one machine: data, clients, attacks, and reports of what they came to."""
