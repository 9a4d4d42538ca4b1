"""A round of federated learning: its settings, its steps, and what travels between them."""
