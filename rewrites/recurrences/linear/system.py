"""A loop that is a linear system with constant matrices.

The next state is ``s' = s A + u B + a`` and the output is ``y = s C + u D + d``, for the state s and the input u.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.dims import same
from rewrites.loops import ScanOutput, State
from rewrites.recurrences.results import is_used
from rewrites.scans.block_responses import Matrices

__all__ = ["System"]


@dataclass(frozen=True)
class System:
    """A loop as a linear system with n elements of states, m elements of inputs and k elements of outputs.

    Args:
        matrices: The matrices of the next states and of the outputs.
        largest: A matrix [n + m, ...] with one column for each number that the body computes, including intermediate results. The
            column holds the coefficients of the states and inputs in this number, as the largest magnitude over all steps.
        state_sizes: The number of elements of each state.
        input_sizes: The number of elements of each input.
        output_sizes: The number of elements of each output.
        is_elementwise: True if the same system applies to each element of the states. All sizes are then 1.
    """

    states: tuple[State, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ScanOutput, ...]
    matrices: Matrices
    largest: np.ndarray
    state_sizes: tuple[int, ...]
    input_sizes: tuple[int, ...]
    output_sizes: tuple[int, ...]
    is_elementwise: bool

    @property
    def kept(self) -> list[State]:
        """The states whose values after the last step are read."""
        return [state for state in self.states if is_used(state.final)]

    @property
    def has_one_shape(self) -> bool:
        """Return True if all states, inputs and outputs are known to have the same shape."""
        values = [value for state in self.states for value in (state.inner, state.initial, state.next)]
        values += [*self.inputs, *(output.inner for output in self.outputs)]
        return all(same(value.shape, self.states[0].inner.shape) for value in values)
