"""Flower's rounds through a federation: strategies, samples and evaluation are Flower's, and no
update is in its messages.

    strategy = SecureAggregation(FedAdam(), "federation.toml")        # in the ServerApp
    app = ClientApp(mods=[secure_mod])                                # in the ClientApp

Flower's server sends the model and says who trains. What a client learned goes by ``secure_mod`` to
the three servers of the federation, and a receipt to Flower's server. That one is the federation's
``coordinator``: a client of the servers which hands in nothing, and reads what the updates were
combined to. The strategy inside gets one reply, as if one client had learned it all.

Who learns what:

- *Flower's server* (SuperLink and ServerApp): who takes part and when, the combined update of each
  round, and the metrics that are named.
- *The three servers*: who hands in, what a round's steps reveal, and the combined update; the
  latter not with ``result_to = "clients"``. Never the model.
- *A client*: the models that Flower's server sends it.

Flower's server is semi-honest: nobody holds it to sending the same model to all. And the app that
it delivers is what clients run; they look at it, or take only apps that somebody signed whom they
trust."""

from tacit.errors import setup_error

try:
    import flwr.app  # noqa: F401 (whether it is there)
except ImportError:
    raise setup_error("Flower needs flwr: pip install 'tacit-mpc[federated]'") from None

from tacit.federated.flower.mod import secure_mod
from tacit.federated.flower.strategy import SecureAggregation

__all__ = ["SecureAggregation", "secure_mod"]
