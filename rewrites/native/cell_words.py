"""A recurrent node as the words that the operator Cell1 is given in its attribute ``plan``; LOOP_PLANS.md describes them."""

import base64
import math
import struct
from collections.abc import Sequence

from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import RecurrentNode

__all__ = ["INPUTS", "MOST_HIDDEN", "OUTPUTS", "cell_words", "has_kernel"]

INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
OUTPUTS = ("Y", "Y_h", "Y_c")
MOST_HIDDEN = 65536
_MAGIC = 0x314C4543
_KINDS = ("RNN", "GRU", "LSTM")
_USES = ("Tanh", "Sigmoid", "Relu", "HardSigmoid", "LeakyRelu", "Elu", "Softsign")
_DIRECTIONS = {(False,): 0, (True,): 1, (False, True): 2}
_MOST_FUNCTIONS = 3


def has_kernel(function: Function) -> bool:
    """Whether the library computes an activation."""
    return function.name in _USES


def cell_words(view: RecurrentNode, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """Return the words, as the attribute holds them; ``inputs`` and ``outputs`` are those that the call has."""
    flags = view.linear_before_reset | view.input_forget << 1
    head = (_MAGIC, _KINDS.index(view.kind), view.hidden, _DIRECTIONS[view.reverse], flags)
    ports = [sum(1 << names.index(name) for name in given) for names, given in ((INPUTS, inputs), (OUTPUTS, outputs))]
    words = struct.pack("<7if", *head, *ports, math.inf if view.clip is None else view.clip)
    for way in range(2):
        functions = view.functions[way] if way < len(view.functions) else ()
        for each in (*functions, *[Function("Tanh")] * (_MOST_FUNCTIONS - len(functions))):
            words += struct.pack("<i2f", _USES.index(each.name), each.alpha, each.beta)
    return base64.b64encode(words).decode("ascii")
