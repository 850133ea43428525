"""Translates RNN, GRU and LSTM nodes in the body of a loop to the equations of their steps.

    Y, h1, c1 = LSTM (x, W, R, B, , h0, c0)   # x [1, B, I]    ->    g = x[0] @ W' + h0 @ R' + b;  c1 = f(g, c0);  h1 = o(g, c1)

Conditions: the number of steps and the lengths of the rows are known, and the node computes in float32. The results equal those of
onnxruntime: after the end of a row, its state stays and its results are 0. A row of length 0 ends with the state 0.

Source of the equations: operators RNN, GRU and LSTM of ONNX, versions 7, 14 and 22.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rewrites.base.not_applicable import NotApplicable
from rewrites.native.body import Body
from rewrites.native.operations import FLOAT, Op
from rewrites.native.operator_views import Translator, TranslatorCall, permute_axes, row_view, stack_rows
from rewrites.native.translators.products import product
from rewrites.native.views import View
from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import GATES, RecurrentNode, defaulted_to_zero, read

__all__ = ["RECURRENCE"]

_LENGTHS = 4


def _recurrent(call: TranslatorCall) -> Sequence[View]:
    node, body = read(call.node), call.body
    if isinstance(node, NotApplicable):
        raise call.refuse("NATIVE-FORM", node.detail)
    x = call.view(0)
    if x.dtype != FLOAT or node.batch_first or defaulted_to_zero(node):
        raise call.refuse("NATIVE-FORM", "it is not of float32, has the layout 1, or an activation without a parameter")
    if len(x.shape) != 3 or 0 in x.shape or body.free.is_free(x.shape[0]):
        raise call.refuse("NATIVE-SHAPE", "its number of steps is 0 or known only at run time")
    lengths = _lengths(call, x.shape[0], x.shape[1])
    directions = [_Direction(call, node, which).run(x, lengths) for which in range(node.directions)]
    sequence = stack_rows(body, [stack_rows(body, results, 0) for results, _ in directions], 1)
    finals = [stack_rows(body, states, 0) for states in zip(*(finals for _, finals in directions), strict=True)]
    return [sequence, *finals]


def _lengths(call: TranslatorCall, steps: int, rows: int) -> np.ndarray | None:
    """Return the lengths of the rows, or None if each row has ``steps`` steps."""
    if not call.has(_LENGTHS):
        return None
    lengths = call.known(_LENGTHS)
    if lengths is None:
        raise call.refuse("NATIVE-FORM", "its lengths are known only at run time")
    if lengths.shape != (rows,) or lengths.min() < 0 or lengths.max() > steps:
        raise call.refuse("NATIVE-FORM", f"its lengths are not {rows} numbers from 0 to {steps}")
    return None if (lengths == steps).all() else lengths


@dataclass(frozen=True)
class _Direction:
    """One direction of a recurrent node. Gates are numbered in the order of the operator."""

    call: TranslatorCall
    node: RecurrentNode
    which: int

    def run(self, x: View, lengths: np.ndarray | None) -> tuple[list[View], list[View]]:
        """Translate all steps. Return the result of each step, in sequence order, and the final states.

        ``x``: the sequence [steps, rows, features]. ``lengths``: the length of each row, or None if all rows have all steps.
        """
        steps = x.shape[0]
        projected = product(self.call, x, permute_axes(self._input(1), [1, 0]))
        states = [self._initial(index) for index in ((5, 6) if self.node.kind == "LSTM" else (5,))]
        results: dict[int, View] = {}
        zero = self.call.body.number(0.0)
        for time in range(steps)[:: -1 if self.node.reverse[self.which] else 1]:
            after = _EQUATIONS[self.node.kind](self, row_view(projected, 0, time), states)
            results[time], runs = after[0], None if lengths is None else lengths > time
            if runs is not None:
                results[time] = self._select(runs, after[0], zero)
                after = [self._select(runs, new, old) for new, old in zip(after, states, strict=True)]
            states = after
        if lengths is not None and not lengths.all():
            states = [self._select(lengths > 0, state, zero) for state in states]
        return [results[time] for time in range(steps)], states

    def _select(self, rows: np.ndarray, then: View, otherwise: View) -> View:
        return self.call.body.elementwise(Op.SELECT, self.call.body.constant(rows.reshape(-1, 1)), then, otherwise)

    def _input(self, index: int) -> View:
        return row_view(self.call.view(index), 0, self.which)

    def _initial(self, index: int) -> View:
        zeros = np.zeros((1, self.node.hidden), np.float32)
        return self._input(index) if self.call.has(index) else self.call.body.constant(zeros)

    def apply(self, op: Op, *operands: View) -> View:
        """Return the result of an elementwise operation."""
        return self.call.body.elementwise(op, *operands)

    def gates(self, values: View, first: int, count: int = 1) -> View:
        """Return the part of ``values`` for ``count`` gates. The last axis of ``values`` has all gates."""
        size = self.node.hidden
        start, strides = first * size * values.strides[-1], values.strides
        return View(values.buffer, (*values.shape[:-1], count * size), strides, values.offset + start)

    def products(self, state: View, first: int, count: int) -> View:
        """Return the products of ``state`` and the recurrent weights of ``count`` gates."""
        return product(self.call, state, self.gates(permute_axes(self._input(2), [1, 0]), first, count))

    def biased(self, values: View, first: int, count: int, halves: Sequence[int] = (0, 1)) -> View:
        """Return ``values`` plus the biases of ``count`` gates.

        ``halves``: 0 for the biases of the input, 1 for those of the state.
        """
        if not self.call.has(3):
            return values
        parts = [self.gates(self._input(3), half * GATES[self.node.kind] + first, count) for half in halves]
        return self.apply(Op.ADD, values, self.apply(Op.ADD, *parts) if len(parts) > 1 else parts[0])

    def activate(self, index: int, argument: View) -> View:
        """Return the activation number ``index`` of ``argument``. If the node has a clip, clip first."""
        bound, body = self.node.clip, self.call.body
        if bound is not None:
            argument = self.apply(Op.MIN, self.apply(Op.MAX, argument, body.number(-bound)), body.number(bound))
        return _activation(body, self.node.functions[self.which][index], argument)

    def peephole(self, index: int, argument: View, cell: View) -> View:
        """Return ``argument`` plus ``cell`` times the peephole weights number ``index``, if any."""
        weights = self.gates(self._input(7), index) if self.call.has(7) else None
        return argument if weights is None else self.apply(Op.ADD, argument, self.apply(Op.MUL, weights, cell))


def _rnn(cell: _Direction, x: View, states: Sequence[View]) -> list[View]:
    return [cell.activate(0, cell.biased(cell.apply(Op.ADD, x, cell.products(states[0], 0, 1)), 0, 1))]


def _gru(cell: _Direction, x: View, states: Sequence[View]) -> list[View]:
    h, early = states[0], cell.node.linear_before_reset
    x = cell.call.body.copied(x) if x.offset else x  # an offset of a row and a gate may depend on two free sizes
    recurrent = cell.products(h, 0, 3 if early else 2)
    both = cell.biased(cell.apply(Op.ADD, cell.gates(x, 0, 2), cell.gates(recurrent, 0, 2)), 0, 2)
    z, r = cell.activate(0, cell.gates(both, 0)), cell.activate(0, cell.gates(both, 1))
    if early:
        reset = cell.apply(Op.MUL, r, cell.biased(cell.gates(recurrent, 2), 2, 1, (1,)))
    else:
        reset = cell.products(cell.apply(Op.MUL, r, h), 2, 1)
    new = cell.activate(1, cell.apply(Op.ADD, cell.biased(cell.gates(x, 2), 2, 1, (0,) if early else (0, 1)), reset))
    return [cell.apply(Op.ADD, new, cell.apply(Op.MUL, z, cell.apply(Op.SUB, h, new)))]


def _lstm(cell: _Direction, x: View, states: Sequence[View]) -> list[View]:
    (h, c), body = states, cell.call.body
    gates = cell.biased(cell.apply(Op.ADD, x, cell.products(h, 0, 4)), 0, 4)
    i = cell.activate(0, cell.peephole(0, cell.gates(gates, 0), c))
    if cell.node.input_forget:
        forget = cell.apply(Op.SUB, body.number(1.0), i)
    else:
        forget = cell.activate(0, cell.peephole(2, cell.gates(gates, 2), c))
    candidate = cell.activate(1, cell.gates(gates, 3))
    after = cell.apply(Op.ADD, cell.apply(Op.MUL, forget, c), cell.apply(Op.MUL, i, candidate))
    o = cell.activate(0, cell.peephole(1, cell.gates(gates, 1), after))
    return [cell.apply(Op.MUL, o, _activation(body, cell.node.functions[cell.which][2], after)), after]


_EQUATIONS: Mapping[str, Callable[[_Direction, View, Sequence[View]], list[View]]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}

_WITH_PARAMETERS = {"Elu": Op.ELU, "HardSigmoid": Op.HARD_SIGMOID, "LeakyRelu": Op.LEAKY_RELU}
_PLAIN = {"Relu": Op.RELU, "Sigmoid": Op.SIGMOID, "Softplus": Op.SOFTPLUS, "Softsign": Op.SOFTSIGN, "Tanh": Op.TANH}


def _activation(body: Body, function: Function, x: View) -> View:
    """Add the steps of an activation of a recurrent operator, and return its result."""
    if function.name in _PLAIN:
        return body.elementwise(_PLAIN[function.name], x)
    if function.name in _WITH_PARAMETERS:
        return body.elementwise(_WITH_PARAMETERS[function.name], x, immediates=(function.alpha, function.beta))
    alpha, beta = body.number(function.alpha), body.number(function.beta)
    if function.name == "Affine":
        return body.elementwise(Op.ADD, body.elementwise(Op.MUL, x, alpha), beta)
    if function.name == "ScaledTanh":
        return body.elementwise(Op.MUL, body.elementwise(Op.TANH, body.elementwise(Op.MUL, x, beta)), alpha)
    below = body.elementwise(Op.LESS, x, alpha, truth=True)
    return body.elementwise(Op.SELECT, below, body.number(0.0), x)


RECURRENCE: dict[str, Translator] = dict.fromkeys(GATES, _recurrent)
