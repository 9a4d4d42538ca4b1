"""Measurements of parties that share a card, beside the same parties without it.

``make bench-gpu`` runs them. All parties are threads of one process, so links cost nothing."""
