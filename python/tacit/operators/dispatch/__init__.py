"""How an operator of PyTorch reaches its implementation: the table, operands, and scales."""
