"""RNN, GRU and LSTM nodes that do one step: what TorchScript makes of a cell, within a loop over the steps.

    LSTM(Unsqueeze(x), W, R, B, , Unsqueeze(h), Unsqueeze(c))    is read as the polynomials it stands for

Conditions: one step, one direction, constant weights, no sequence lengths, ``layout`` 0.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.recurrences.features import Features
from rewrites.recurrences.interpretation import Interpretation, Meaning
from rewrites.recurrences.operators.sides import same_lead
from rewrites.recurrences.polynomial import Polynomial

__all__ = ["SINGLE_STEPS"]

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_ALPHAS = {"Elu": 1.0, "HardSigmoid": 0.2, "LeakyRelu": 0.01}
_BETAS = {"HardSigmoid": 0.5}
_PLAIN = frozenset({"Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"})

_Apply = Callable[[Polynomial], Polynomial]


def _read(reading: Interpretation, node: ir.Node) -> Sequence[Meaning] | None:
    operands = [reading.meaning(value) for value in node.inputs] + [None] * 8
    x, w, r, bias, lengths, h = operands[:6]
    kind, size = node.op_type, node.attributes.get_int("hidden_size", 0)
    if not isinstance(x, Features) or not isinstance(w, np.ndarray) or not isinstance(r, np.ndarray) or lengths is not None:
        return None
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        return None
    if x.lead != 2 or x.dims[0] != 1 or len(x.shape) != 1 or w.shape[0] != 1 or node.attributes.get_int("layout", 0):
        return None
    functions = _functions(node)
    if functions is None or r.shape != (1, _GATES[kind] * size, size) or w.shape[2] != x.width:
        return None
    before = _state(h, x, size, len(node.inputs) > 5 and node.inputs[5] is not None)
    if before is None:
        return None
    b = np.zeros(2 * len(w[0])) if bias is None else bias[0] if isinstance(bias, np.ndarray) else None
    if b is None or (bias is None and len(node.inputs) > 3 and node.inputs[3] is not None):
        return None
    wb, rb = np.split(b.astype(np.float64), 2)
    step = _Step(reading, size, (w[0].astype(np.float64), r[0].astype(np.float64), wb, rb), functions)
    source = x.whole()
    if source is None:
        source = Polynomial(reading.as_source(x))
    if kind != "LSTM":
        before_reset = node.attributes.get_int("linear_before_reset", 0)
        after = step.rnn(source, before) if kind == "RNN" else step.gru(source, before, before_reset)
        return _outputs(node, x, size, [after])
    cell = _state(operands[6], x, size, len(node.inputs) > 6 and node.inputs[6] is not None)
    peepholes = operands[7]
    if cell is None or (len(node.inputs) > 7 and node.inputs[7] is not None and not isinstance(peepholes, np.ndarray)):
        return None
    p = peepholes[0].astype(np.float64) if isinstance(peepholes, np.ndarray) else np.zeros(3 * size)
    return _outputs(node, x, size, step.lstm(source, before, cell, p, node.attributes.get_int("input_forget", 0)))


def _state(given: Meaning, x: Features, size: int, is_there: bool) -> Polynomial | None:
    """Give an initial state: [1, rows, size], or nothing for zeros."""
    if not is_there:
        return Polynomial.constant(np.zeros(size))
    if isinstance(given, np.ndarray):
        return Polynomial.constant(np.broadcast_to(given.reshape(-1), (size,))) if given.size in (1, size) else None
    if not isinstance(given, Features) or given.shape != (size,) or not same_lead(given, x):
        return None
    return given.whole()


def _outputs(node: ir.Node, x: Features, size: int, states: list[Polynomial]) -> list[Meaning]:
    found: list[Meaning] = [Features((1, *x.dims), (size,), (states[0],))]
    found += [Features(x.dims, (size,), (state,)) for state in states]
    return found[: len(node.outputs)]


def _functions(node: ir.Node) -> list[_Apply] | None:
    """Give the activations; None for names or numbers of them that the operators do not have."""
    attribute = node.attributes.get("activations")
    names = _FUNCTIONS[node.op_type] if attribute is None else list(attribute.as_strings())
    alphas = list(node.attributes["activation_alpha"].as_floats()) if "activation_alpha" in node.attributes else []
    betas = list(node.attributes["activation_beta"].as_floats()) if "activation_beta" in node.attributes else []
    clip = node.attributes.get_float("clip", 0.0)
    if len(names) != len(_FUNCTIONS[node.op_type]):
        return None
    found = list[_Apply]()
    for place, name in enumerate(names):
        if name not in _PLAIN | _ALPHAS.keys():
            return None
        alpha = (alphas.pop(0) if alphas else _ALPHAS[name]) if name in _ALPHAS else 0.0
        beta = (betas.pop(0) if betas else _BETAS[name]) if name in _BETAS else 0.0
        found.append(_applying(name, alpha, beta, 0.0 if place == 2 else clip))
    return found


def _applying(name: str, alpha: float, beta: float, clip: float) -> _Apply:
    def apply(argument: Polynomial) -> Polynomial:
        bounded = Polynomial.activation("Clip", argument, -clip, clip) if clip > 0 else argument
        return Polynomial.activation(name, bounded, alpha, beta)

    return apply


class _Step:
    """The equations of the operators' text, on polynomials."""

    def __init__(self, reading: Interpretation, size: int, weights: tuple[np.ndarray, ...], functions: list[_Apply]) -> None:
        self._reading, self._size, self._functions = reading, size, functions
        self._w, self._r, self._wb, self._rb = ([*np.split(array, len(array) // size)] for array in weights)

    def _of(self, which: int, x: Polynomial) -> Polynomial:
        return self._applied(x, self._w[which], self._wb[which])

    def _back(self, which: int, h: Polynomial) -> Polynomial:
        return self._applied(h, self._r[which], self._rb[which])

    def _applied(self, argument: Polynomial, matrix: np.ndarray, bias: np.ndarray) -> Polynomial:
        source = self._reading.as_source(Features((), (argument.width,), (argument,)))
        return Polynomial(source.times(matrix.T)).plus(Polynomial.constant(bias))

    def rnn(self, x: Polynomial, h: Polynomial) -> Polynomial:
        return self._functions[0](self._of(0, x).plus(self._back(0, h)))

    def gru(self, x: Polynomial, h: Polynomial, linear_before_reset: int) -> Polynomial:
        gate, new = self._functions
        z, r = gate(self._of(0, x).plus(self._back(0, h))), gate(self._of(1, x).plus(self._back(1, h)))
        inner = r.times(self._back(2, h)) if linear_before_reset else self._back(2, r.times(h))
        n = new(self._of(2, x).plus(inner))
        return n.plus(z.times(h.plus(n.scaled(-1.0))))

    def lstm(self, x: Polynomial, h: Polynomial, c: Polynomial, p: np.ndarray, input_forget: int) -> list[Polynomial]:
        gate, new, outer = self._functions
        at_i, at_o, at_f, at_c = (self._of(which, x).plus(self._back(which, h)) for which in range(4))
        p_i, p_o, p_f = np.split(p, 3)
        i = gate(at_i.plus(c.scaled(p_i)))
        f = i.scaled(-1.0).plus(Polynomial.constant(np.ones(self._size))) if input_forget else gate(at_f.plus(c.scaled(p_f)))
        after = f.times(c).plus(i.times(new(at_c)))
        o = gate(at_o.plus(after.scaled(p_o)))
        return [o.times(outer(after)), after]


SINGLE_STEPS: dict[str, Callable[[Interpretation, ir.Node], Sequence[Meaning] | None]] = dict.fromkeys(_GATES, _read)
