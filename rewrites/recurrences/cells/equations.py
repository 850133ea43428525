"""The equations of one step of an RNN, GRU or LSTM, over numbers or over polynomials.

    RNN     h' = f(x, h)
    GRU     n + z * (h - n)    with    n = g(x @ W + b + r * (h @ R + c))    or    g(x @ W + b + (r * h) @ R + c)
    LSTM    c' = f * c + i * g,    h' = o * t(c')

Gates are stacked along axis 0 in the operator's own order (RNN: i; GRU: z, r, h; LSTM: i, o, f, c).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rewrites.ops.rnn.functions import Function

__all__ = ["Algebra", "Equations", "NumberAlgebra"]


class Algebra(Protocol):
    """The operations on values that the equations use in addition to ``+``, ``-`` and ``*``."""

    def linear(self, x: Any, matrix: np.ndarray, bias: np.ndarray) -> Any:
        """Return ``x @ matrix.T + bias``."""

    def apply(self, function: Function, x: Any) -> Any:
        """Apply ``function`` to ``x``. Clip ``x`` first if the function has a clip."""


@dataclass(frozen=True, kw_only=True)
class Equations:
    """The weights and attributes of a recurrent operator. All arrays are float64.

    Args:
        op_type: RNN, GRU or LSTM.
        w: The input weights, [gates * hidden, input width].
        r: The recurrent weights, [gates * hidden, hidden].
        wb: The input bias, [gates * hidden].
        rb: The recurrent bias, [gates * hidden].
        functions: The activations in the operator's order.
        peepholes: The peephole weights of i, o and f, [3 * hidden], or None.
        linear_before_reset, input_forget: The attributes of the operator with these names.
    """

    op_type: str
    w: np.ndarray
    r: np.ndarray
    wb: np.ndarray
    rb: np.ndarray
    functions: tuple[Function, ...]
    peepholes: np.ndarray | None = None
    linear_before_reset: bool = False
    input_forget: bool = False

    @property
    def size(self) -> int:
        """The number of hidden features."""
        return int(self.r.shape[1])

    @property
    def clip(self) -> float | None:
        """The bound on the arguments of all activations except an LSTM's output activation, or None."""
        return self.functions[0].clip

    @property
    def has_bias(self) -> bool:
        """True if the biases are not all 0."""
        return bool(self.wb.any() or self.rb.any())

    def step(self, algebra: Algebra, x: Any, h: Any, c: Any = None) -> list[Any]:
        """Return the next states, the hidden state first. ``algebra`` does the computations.

        ``x`` is the input, ``h`` is the old hidden state, and ``c`` is the old cell state of an LSTM.
        """
        wx, rh = self._products(algebra, x, self.w, self.wb), self._products(algebra, h, self.r, self.rb)

        def gate(index: int, which: int = 0) -> Any:
            return algebra.apply(self.functions[which], wx(index) + rh(index))

        if self.op_type == "RNN":
            return [gate(0)]
        if self.op_type == "GRU":
            z, r = gate(0), gate(1)
            reset = r * rh(2) if self.linear_before_reset else self._products(algebra, r * h, self.r, self.rb)(2)
            n = algebra.apply(self.functions[1], wx(2) + reset)
            return [n + z * (h - n)]
        p = np.zeros(3 * self.size) if self.peepholes is None else self.peepholes
        p_i, p_o, p_f = np.split(p, 3)
        i = algebra.apply(self.functions[0], wx(0) + rh(0) + c * p_i)
        f = 1 - i if self.input_forget else algebra.apply(self.functions[0], wx(2) + rh(2) + c * p_f)
        after = f * c + i * gate(3, 1)
        o = algebra.apply(self.functions[0], wx(1) + rh(1) + after * p_o)
        return [o * algebra.apply(self.functions[2], after), after]

    def _products(self, algebra: Algebra, x: Any, matrix: np.ndarray, bias: np.ndarray) -> Callable[[int], Any]:
        def product(gate: int) -> Any:
            rows = slice(gate * self.size, (gate + 1) * self.size)
            return algebra.linear(x, matrix[rows], bias[rows])

        return product


_FUNCTIONS: Mapping[str, Callable[[np.ndarray, Function], np.ndarray]] = {
    "Affine": lambda x, f: f.alpha * x + f.beta,
    "Elu": lambda x, f: np.where(x < 0, f.alpha * np.expm1(np.minimum(x, 0)), x),
    "HardSigmoid": lambda x, f: np.clip(f.alpha * x + f.beta, 0, 1),
    "LeakyRelu": lambda x, f: np.where(x < 0, f.alpha * x, x),
    "Relu": lambda x, _: np.maximum(x, 0),
    "ScaledTanh": lambda x, f: f.alpha * np.tanh(f.beta * x),
    "Sigmoid": lambda x, _: 0.5 * np.tanh(0.5 * x) + 0.5,
    "Softplus": lambda x, _: np.logaddexp(0, x),
    "Softsign": lambda x, _: x / (1 + np.abs(x)),
    "Tanh": lambda x, _: np.tanh(x),
    "ThresholdedRelu": lambda x, f: np.where(x > f.alpha, x, 0),
}


class NumberAlgebra:
    """Evaluates the equations on numpy arrays of rows."""

    def linear(self, x: np.ndarray, matrix: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Return ``x @ matrix.T + bias``."""
        return np.asarray(x @ matrix.T + bias)

    def apply(self, function: Function, x: np.ndarray) -> np.ndarray:
        """Return ``function`` of ``x``."""
        if function.clip is not None:
            x = np.clip(x, -function.clip, function.clip)
        return _FUNCTIONS[function.name](x, function)
