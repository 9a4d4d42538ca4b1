"""Flower's rounds through a federation: strategies, sampling and evaluation are Flower's, and its
messages contain no update.

    strategy = SecureAggregation(FedAdam(), "federation.toml")        # in the ServerApp
    app = ClientApp(mods=[secure_mod])                                # in the ClientApp

Flower's server sends the model and says who trains. ``secure_mod`` sends what a client learned to
the three servers of the federation, and a receipt to Flower's server. Flower's server is the
federation's ``coordinator``: a client of the servers that submits nothing, and reads the combined
update. The inner strategy gets one reply, as if one client had learned everything.

Who learns what:

- *Flower's server* (SuperLink and ServerApp): who takes part and when, the combined update of each
  round, and the named metrics.
- *The three servers*: who submits, what a round's steps reveal, and the combined update, except
  with ``result_to = "clients"``. They never learn the model.
- *A client*: the models that Flower's server sends to it.

Flower's server is semi-honest: no check ensures that it sends the same model to all clients.
Clients also run the app that it delivers. They must read it, or accept only apps that are signed by
someone they trust."""

from tacit.errors import setup_error

try:
    import flwr.app  # noqa: F401 (whether it is there)
except ImportError:
    raise setup_error("Flower needs flwr: pip install 'tacit-mpc[federated]'") from None

from tacit.federated.flower.mod import secure_mod
from tacit.federated.flower.strategy import SecureAggregation

__all__ = ["SecureAggregation", "secure_mod"]
