"""Scans that cannot run whatever they are fed, by what is declared around them: onnxruntime refuses to load them.

Only what is certain counts: shapes of inputs and initializers. Other declarations may be out of date, which onnxruntime forgives.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base.plain_text import quoted
from rewrites.loops.checks import malformed
from rewrites.loops.scan_view import ScanView

__all__ = ["refuse_contradictions"]


def refuse_contradictions(node: ir.Node, opset: int) -> None:
    """Raise MalformedLoop where scanned inputs have unlike lengths or rows, or the body declares another element than it gets."""
    loop = ScanView.of(node, opset)
    lead = 1 if loop.batched else 0
    states = [(state.initial, state.inner, [0][:lead]) for state in loop.states]
    scanned = [(scan.outer, scan.inner, sorted({0, scan.axis}) if lead else [scan.axis]) for scan in loop.scan_inputs]
    for outer, inner, dropped in (*states, *scanned):
        shape = _certain(outer)
        if shape is not None and len(shape) <= max(dropped, default=-1):
            raise malformed(node, "inputs", f"include {quoted(outer.name)} of rank {len(shape)}, which has no axis {max(dropped)}")
        if shape is not None and inner.shape is not None:
            element = [dim for axis, dim in enumerate(shape) if axis not in dropped]
            if not _agree(element, inner.shape.dims):
                declared = f"{_words(inner.shape.dims)} for {quoted(inner.name)}"
                raise malformed(node, "body", f"declares {declared}, but {quoted(outer.name)} gives {_words(element)}")
    _refuse_unlike(node, [(scan.outer, scan.axis) for scan in loop.scan_inputs], "steps")
    if lead:
        _refuse_unlike(node, [(outer, 0) for outer, _, _ in (*states, *scanned)], "rows")


def _refuse_unlike(node: ir.Node, axes: Sequence[tuple[ir.Value, int]], what: str) -> None:
    first: tuple[ir.Value, int] | None = None
    for value, axis in axes:
        shape = _certain(value)
        dim = None if shape is None else shape[axis]
        if not isinstance(dim, int) or dim < 0:
            continue
        if first is None:
            first = value, dim
        elif first[1] != dim:
            known = f"{first[1]} in {quoted(first[0].name)}, but {dim} in {quoted(value.name)}"
            raise malformed(node, "inputs", f"differ in their {what}: {known}")


def _certain(value: ir.Value) -> Sequence[int | ir.SymbolicDimProtocol] | None:
    """Return the shape of a value where it is what the value has, or the run fails."""
    if value.is_initializer() and not value.is_graph_input() and value.const_value is not None:
        return value.const_value.shape.dims
    return value.shape.dims if value.is_graph_input() and value.shape is not None else None


def _agree(one: Sequence[object], other: Sequence[object]) -> bool:
    if len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return not any(isinstance(a, int) and isinstance(b, int) and a != b and min(a, b) >= 0 for a, b in pairs)


def _words(dims: Sequence[object]) -> str:
    return f"[{', '.join(str(dim) if isinstance(dim, int) else getattr(dim, 'value', None) or '?' for dim in dims)}]"
