"""Federated learning whose updates nobody sees: clients train on data of their own, servers combine
what they send in secret, and reveal one vector a round."""

from tacit.errors import SubmissionWarning
from tacit.federated.service.client import Client, Receipt, Task

__all__ = ["Client", "Receipt", "SubmissionWarning", "Task"]
