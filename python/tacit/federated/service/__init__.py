"""Servers and clients of a federation as processes: connections, files, and restarts."""
