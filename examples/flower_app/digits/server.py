"""The Flower server app."""

import torch
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits.task import network
from tacit.federated.flower import SecureAggregation  # tacit

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Runs some rounds of FedAvg among all nodes."""
    strategy = FedAvg(fraction_evaluate=0.0)
    strategy = SecureAggregation(strategy, context.run_config["federation"])  # tacit
    result = strategy.start(grid, ArrayRecord(network().state_dict()), context.run_config["rounds"])
    if context.run_config["out"]:
        torch.save(result.arrays.to_torch_state_dict(), context.run_config["out"])
