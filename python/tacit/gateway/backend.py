"""What the gateway needs of a service's client, and ``tacit.client`` as that."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.client import Client, Model

#: A tensor in the clear, at the client.
Array = NDArray[Any]


class Backend(Protocol):
    """A client of one session of a service. Several threads may call it at a time."""

    def models(self) -> Mapping[str, Model]:
        """Returns the models of the service, by name.

        Raises:
            TacitError: no party answers, or they do not agree.
        """
        ...

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Array],
        *,
        version: str | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> tuple[Array, ...]:
        """Returns the outputs, in the model's order, of one request or of several at once, which
        stand one after another in the first dimension. Times are as those of ``Client.infer``.

        Raises:
            TacitError: the service refused, or the parties could not be asked. ``is_unused`` of
                ``tacit.errors`` says whether nothing was used.
        """
        ...


class ServiceBackend:
    """``tacit.client.Client`` as a backend.

    Args:
        client: of one session of a service.
        patience: seconds for the parties to describe their models.
    """

    def __init__(self, client: Client, patience: float = 5.0) -> None:
        self._client = client
        self._patience = patience

    def models(self) -> Mapping[str, Model]:
        """As ``Backend.models``."""
        return self._client.models(self._patience)

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Array],
        *,
        version: str | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> tuple[Array, ...]:
        """As ``Backend.infer``."""
        found = self._client.infer(
            model, inputs, version=version, timeout=timeout, patience=patience
        )
        return found if isinstance(found, tuple) else (np.asarray(found),)
