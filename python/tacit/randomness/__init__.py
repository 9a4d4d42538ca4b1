"""Random numbers that no party knows: bits, distributions, and secret shuffles."""
