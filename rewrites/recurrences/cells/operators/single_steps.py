"""RNN, GRU and LSTM nodes that do one step: what TorchScript makes of a cell, within a loop over the steps.

    LSTM(Unsqueeze(x), W, R, B, , Unsqueeze(h), Unsqueeze(c))    is read as the polynomials it stands for

Conditions: one step, one direction, constant weights, no sequence lengths, ``layout`` 0.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import GATES, read
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.operators.sides import same_lead
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["SINGLE_STEPS"]

_OPERANDS = ("X", "W", "R", "B", "initial_h", "initial_c", "P")

_Apply = Callable[[Polynomial], Polynomial]


def _read(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    view = read(node)
    if isinstance(view, NotApplicable) or view.directions != 1 or view.batch_first or view.input("sequence_lens") is not None:
        return None
    given = {name: reading.meaning(view.input(name)) for name in _OPERANDS}
    if any(meaning is None and view.input(name) is not None for name, meaning in given.items()):
        return None
    x, size = given["X"], view.hidden
    w, r, bias, peepholes = (_array(given[name]) for name in ("W", "R", "B", "P"))
    if not isinstance(x, Features) or w is None or r is None or x.lead != 2 or x.dims[0] != 1 or len(x.shape) != 1:
        return None
    if r.shape != (GATES[view.kind] * size, size) or w.shape != (len(r), x.width):
        return None
    states = [_state(given[name], x, size) for name in ("initial_h", "initial_c")]
    # the output activation of an LSTM is not clipped
    functions = [_applying(function, view.clip if place < 2 else None) for place, function in enumerate(view.functions[0])]
    wb, rb = np.split(np.zeros(2 * len(w)) if bias is None else bias, 2)
    step = _Step(reading, size, (w, r, wb, rb), functions)
    source, h, c = x.whole() or Polynomial(reading.as_source(x)), states[0], states[1]
    if h is None or c is None:
        return None
    if view.kind == "RNN":
        return _outputs(node, x, size, [step.rnn(source, h)])
    if view.kind == "GRU":
        return _outputs(node, x, size, [step.gru(source, h, view.linear_before_reset)])
    return _outputs(
        node, x, size, step.lstm(source, h, c, np.zeros(3 * size) if peepholes is None else peepholes, view.input_forget)
    )


def _array(meaning: Meaning) -> np.ndarray | None:
    """Return a constant of the one direction."""
    return meaning[0].astype(np.float64) if isinstance(meaning, np.ndarray) and len(meaning) == 1 else None


def _state(given: Meaning, x: Features, size: int) -> Polynomial | None:
    """Return an initial state: [1, rows, size], or nothing for zeros."""
    if given is None:
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


def _applying(function: Function, clip: float | None) -> _Apply:
    def apply(argument: Polynomial) -> Polynomial:
        bounded = argument if clip is None else Polynomial.activation("Clip", argument, -clip, clip)
        if function.name == "Affine":
            return bounded.scaled(function.alpha).plus(Polynomial.constant(np.full(argument.width, function.beta)))
        if function.name == "ScaledTanh":
            return Polynomial.activation("Tanh", bounded.scaled(function.beta)).scaled(function.alpha)
        return Polynomial.activation(function.name, bounded, function.alpha, function.beta)

    return apply


class _Step:
    """The equations of the operators' text, on polynomials."""

    def __init__(self, reading: Reading, size: int, weights: tuple[np.ndarray, ...], functions: list[_Apply]) -> None:
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


SINGLE_STEPS: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = dict.fromkeys(GATES, _read)
