"""Checkpoints: files in which a session keeps secret tensors for a later session."""
