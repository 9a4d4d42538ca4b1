"""Recurrent layers.

PyTorch itself composes RNN, GRU and all recurrent cells of other operators. It fuses the LSTM layer
for processors. That layer is composed here of steps that take as few rounds as possible.

PyTorch adds a step's secret input in place to a product with the state. If weights are public, that
product is plain at first. A hook gives such a layer a secret initial state.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import linear
from torch.nn.modules import module as hooks
from torch.nn.utils.rnn import PackedSequence

from tacit.operators.dispatch.operands import at_session_scale, is_secret
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: PyTorch's number for LSTM among its fused layers.
LSTM = 2

#: Number of tensors that a fused layer takes: input, two weights, two biases, state and memory.
OPERANDS = 7


def lstm_layer(
    x: Any, weights: Sequence[Any], state: Any, memory: Any, reverse: bool
) -> tuple[Any, Any, Any]:
    """Computes one direction of an LSTM layer: all outputs, and the last state and memory.

    x is (steps, batch, features). ``weights`` are those of inputs and of states, each followed by
    its bias if there are biases. A step takes the rounds of a product, a sigmoid, a product, a tanh
    and a product.
    """
    of_input, of_state, *biases = weights
    given = linear(x, of_input)
    for bias in biases:
        given = given + bias
    outputs = []
    for gates in reversed(given.unbind(0)) if reverse else given.unbind(0):
        gates = gates + linear(state, of_state)
        entering, kept, candidate, leaving = gates.chunk(4, -1)
        # tanh x = 2·sigmoid(2x) − 1, so that one function serves all gates.
        smooth = torch.sigmoid(torch.cat([entering, kept, leaving, 2 * candidate], -1))
        entering, kept, leaving, candidate = smooth.chunk(4, -1)
        both = torch.stack([kept, entering]) * torch.stack(
            [memory + torch.zeros_like(kept), 2 * candidate - 1]
        )
        memory = both[0] + both[1]
        state = leaving * torch.tanh(memory)
        outputs.append(state)
    return torch.stack(outputs[::-1] if reverse else outputs), state, memory


@implements(aten.mkldnn_rnn_layer.default, scale=of_session)
def fused_layer(*arguments: Any) -> tuple[Any, ...]:
    """Computes a layer of ``nn.LSTM``. Nothing is kept for the gradient."""
    operands, (reverse, batch_sizes, mode, _, _, has_biases, *_) = (
        arguments[:OPERANDS],
        arguments[OPERANDS:],
    )
    check_fused(mode, batch_sizes)
    found = fused(operands, reverse, has_biases)
    return *map(at_session_scale, found), torch.empty(0, dtype=torch.uint8)


def fused(operands: Sequence[Any], reverse: bool, has_biases: bool) -> tuple[Any, Any, Any]:
    """Computes a fused layer from its operands, by ``lstm_layer``.

    State and memory are (batch, features). In inference mode they have one more dimension in front,
    of size one, for the layer.
    """
    x, *weights, state, memory = operands
    shape = state.shape
    found, *last = lstm_layer(
        x,
        weights if has_biases else weights[:2],
        state.flatten(0, -2),
        memory.flatten(0, -2),
        reverse,
    )
    return found, *(each.reshape(shape) for each in last)


def check_fused(mode: int, batch_sizes: Sequence[int]) -> None:
    """Refuses, by name, a fused layer that is not composed here."""
    if mode != LSTM or len(batch_sizes):
        unsupported(
            "a fused layer of packed sequences", "pad them, and mask the steps beyond their ends"
        )


def _begin(module: torch.nn.Module, args: Any) -> Any:
    """Gives a layer with public weights a secret initial state, if the input is secret."""
    if not isinstance(module, torch.nn.RNNBase | torch.nn.RNNCellBase) or not args:
        return None
    x, given = args[0], args[1] if len(args) > 1 else None
    data = x.data if isinstance(x, PackedSequence) else x
    if not isinstance(data, SecretTensor) or is_secret(*module.parameters()):
        return None
    is_lstm = isinstance(module, torch.nn.LSTM | torch.nn.LSTMCell)
    state, memory = given if is_lstm and given is not None else (given, None)
    size = getattr(module, "proj_size", 0) or module.hidden_size
    state = _secret_state(module, x, size, state)
    return x, (state, _secret_state(module, x, module.hidden_size, memory)) if is_lstm else state


def _secret_state(module: Any, x: Any, size: int, given: Any) -> torch.Tensor:
    """Returns the given state, or zeros, as a secret tensor. No interaction."""
    if isinstance(given, SecretTensor):
        return given
    if isinstance(module, torch.nn.RNNCellBase):
        shape = [*x.shape[:-1], size]
    else:
        if isinstance(x, PackedSequence):
            x, batch = x.data, [int(x.batch_sizes[0])]
        else:
            batch = [x.shape[0 if module.batch_first else 1]] if x.dim() == 3 else []
        shape = [module.num_layers * (1 + module.bidirectional), *batch, size]
    # A new secret tensor holds zeros until something is written into it.
    state: torch.Tensor = x.new_empty(shape)
    return state if given is None else state.copy_(given)


hooks.register_module_forward_pre_hook(_begin)
