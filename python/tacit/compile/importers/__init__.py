"""Readers of models, one format each."""
