"""The gateway: the Open Inference Protocol v2 at a client of a service.

An application sends plain tensors to the gateway on its own machine, and the gateway shares them
with the parties as ``tacit.client`` does. It is part of the client, and no party."""
