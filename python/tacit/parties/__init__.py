"""Parties of a session on one machine: how ``launch`` starts, watches and ends them."""
