"""What a recurrent operator computes, as arrays: recognised by the families, then probed, then written as a native node."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from rewrites.loops import State
from rewrites.ops.rnn.functions import Function

if TYPE_CHECKING:
    from rewrites.recurrences.cells.recipes import Recipe

__all__ = ["ARRAYS", "Cell", "source_of"]

ARRAYS = ("w", "r", "wb", "rb", "peepholes")


def source_of(state: State) -> Hashable:
    """Return the source that ``state`` is, as affine maps name it."""
    return ("input", state.inner.name)


@dataclass(frozen=True)
class Cell:
    """One recurrent cell. Gates are stacked along axis 0 in the operator's own order (RNN: i; GRU: z, r, h; LSTM: i, o, f, c).

    ``sources``: the scanned values that make up the input, with their widths. ``w``: [gates * hidden, input width]; ``r``:
    [gates * hidden, hidden]; ``wb``, ``rb``: [gates * hidden]; ``peepholes``: [3 * hidden] (i, o, f) or None. All float64.
    ``functions``: the activations in the operator's order. ``cell``: the second state of an LSTM. ``recipes``: how arrays of these
    names come about where they are known only when the model runs; the arrays are examples then.
    """

    op_type: str
    hidden: State
    cell: State | None
    sources: tuple[tuple[Hashable, int], ...]
    w: np.ndarray
    r: np.ndarray
    wb: np.ndarray
    rb: np.ndarray
    functions: tuple[Function, ...]
    peepholes: np.ndarray | None = None
    linear_before_reset: bool = False
    input_forget: bool = False
    recipes: "Mapping[str, Recipe]" = field(default_factory=dict)

    @property
    def states(self) -> tuple[State, ...]:
        """The states it is made of, the hidden one first."""
        return (self.hidden,) if self.cell is None else (self.hidden, self.cell)

    @property
    def size(self) -> int:
        """The number of hidden features."""
        return int(self.r.shape[1])

    @property
    def has_bias(self) -> bool:
        """Whether anything is added to the gates' arguments."""
        return bool(self.wb.any() or self.rb.any())

    def with_numbers(self, numbers: Mapping[ir.Value, np.ndarray]) -> "Cell":
        """Return the cell for what tensors known only when the model runs may hold."""
        arrays: dict[str, Any] = {name: recipe.value(numbers) for name, recipe in self.recipes.items()}
        return replace(self, recipes={}, **arrays)

    def without_idle_inputs(self) -> "Cell":
        """Return the cell without the inputs that it multiplies by nothing."""
        ends = np.cumsum([width for _, width in self.sources]).tolist()
        columns = {source: self.w[:, end - source[1] : end] for source, end in zip(self.sources, ends, strict=True)}
        used = tuple(source for source in self.sources if columns[source].any())
        w = np.concatenate([columns[source] for source in used], axis=1) if used else np.zeros((len(self.w), 0))
        return replace(self, sources=used, w=w)

    @property
    def clip(self) -> float | None:
        """The bounds of the gates' arguments; the output activation of an LSTM has none."""
        return self.functions[0].clip
