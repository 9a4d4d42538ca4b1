"""A service: models that parties keep shared in memory, for clients who are no party."""
