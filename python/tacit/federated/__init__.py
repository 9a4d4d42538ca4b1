"""Federated learning with secret updates.

Clients train on their own data. Servers combine the updates in secret, and reveal one vector a
round."""

from tacit.errors import SubmissionWarning
from tacit.federated.service.client import Client, Receipt, Task
from tacit.federated.service.rejoining import Measured, Trained

__all__ = ["Client", "Measured", "Receipt", "SubmissionWarning", "Task", "Trained"]
