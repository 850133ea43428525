"""Compares a recognised cell with the body it was recognised in, at random points.

The algebra is exact, so a difference is a defect of the recognition; the loop stays then.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind, reads
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.values import const_array, static_dims
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.equations import NumberAlgebra
from rewrites.recurrences.cells.masks import CellMatch

__all__ = ["probe"]

_ROWS = 3
_TOLERANCE = 2e-3
_TOLERANCES = {ir.DataType.FLOAT16: 2e-2}


def probe(match: CellMatch, ctx: Context) -> bool:
    """Return True if the cell and the body agree; also False if the body cannot be run by itself."""
    cell, reading, mask = match.cell, match.reading, match.mask
    states = cell.states
    wanted = [state.next for state in states]
    nodes = nodes_behind(reading.loop.body, wanted, () if mask is None else (mask.value,))
    fed = {value for node in nodes for value in reads(node)} | {state.inner for state in states}
    sources: dict[Hashable, np.ndarray] = {}
    feeds = _random_feeds(match, sources, fed)
    if feeds is None or not all(key in sources for key, _ in cell.sources):
        return False
    draws = {weight: np.random.default_rng(5).standard_normal(static_dims(weight)) for weight in match.weights}
    fixed = {weight: array.astype(weight.dtype.numpy()) for weight, array in draws.items() if weight.dtype is not None}
    cell = cell.with_numbers({weight: array.astype(np.float64) for weight, array in fixed.items()})
    results = _evaluated(nodes, {**feeds, **fixed}, wanted, ctx)
    if results is None:
        return False
    before = [feeds[state.inner].astype(np.float64).reshape(-1, cell.size) for state in states]
    x = np.concatenate([sources[key] for key, _ in cell.sources], axis=1) if cell.sources else np.zeros((len(before[0]), 0))
    tolerance = _TOLERANCES.get(cell.dtype, _TOLERANCE)
    for result, new, old in zip(results, cell.step(NumberAlgebra(), x, *before), before, strict=False):
        expected = new
        if mask is not None:
            runs = (feeds[mask.value] == mask.outcome).reshape(-1, 1)
            if len(runs) not in (1, len(new)):
                return False
            expected = np.where(runs, new, old)
        if result.size != expected.size:
            return False
        if not np.allclose(result.reshape(expected.shape), expected, rtol=tolerance, atol=tolerance):
            return False
    return True


def _random_feeds(match: CellMatch, sources: dict[Hashable, np.ndarray], fed: set[ir.Value]) -> dict[ir.Value, np.ndarray] | None:
    """Return random numbers for each body input in ``fed``; adds the rows of the scanned sources behind it to ``sources``."""
    rng = np.random.default_rng(7)
    reading, mask = match.reading, None if match.mask is None else match.mask.value
    loop, feeds, symbols = reading.loop, dict[ir.Value, np.ndarray](), dict[str, int]()

    def size(dim: int | str | None) -> int:
        return dim if isinstance(dim, int) else _ROWS if dim is None else symbols.setdefault(dim, _ROWS)

    if mask is not None:
        if mask.shape is None:
            return None
        dims = reading.sizes(mask.shape)
        by_row = len(dims) == len(match.lead) + 1 and any(dim != 1 for dim in dims)
        shape = (*map(size, match.lead), 1) if by_row else (1,) * len(dims)
        feeds[mask] = np.asarray(rng.random(shape) < 0.5)
    for state in (state for state in loop.states if state.inner in fed):
        features = reading.features(state.inner)
        if features is None or state.inner.dtype is None:
            return None
        lead = [size(dim) for dim in reading.dims[source_of(state)]]
        feeds[state.inner] = rng.standard_normal([*lead, *features.shape]).astype(state.inner.dtype.numpy())
    for scan in (scan for scan in loop.scan_inputs if scan.inner in fed and scan.inner is not mask):
        features, dtype = reading.features(scan.inner), scan.inner.dtype
        polynomial = None if features is None else features.whole()
        if features is None or polynomial is None or dtype is None or scan.inner.shape is None:
            return None
        lead = [size(dim) for dim in reading.sizes(scan.inner.shape)[: features.lead]]
        rows = np.broadcast_to(polynomial.affine.bias, (int(np.prod(lead, dtype=np.int64)), polynomial.width)).copy()
        for key, matrix in polynomial.affine.terms.items():
            if key not in sources:
                sources[key] = rng.standard_normal((len(rows), len(matrix)))
            if len(sources[key]) != len(rows):
                return None
            rows += sources[key] @ matrix
        feeds[scan.inner] = rows.reshape([*lead, *features.shape]).astype(dtype.numpy())
    return feeds


def _evaluated(
    nodes: list[ir.Node], feeds: Mapping[ir.Value, np.ndarray], results: list[ir.Value], ctx: Context
) -> Sequence[np.ndarray] | None:
    """Return the ``results`` of running ``nodes`` once, or None if they read what is neither fed nor constant."""
    constants, outside, outputs = dict(feeds), list[ir.Node](), {value for node in nodes for value in node.outputs}
    for value in dict.fromkeys(value for node in nodes for value in reads(node)):
        if value not in outputs and not _add_constant(value, constants, outside, 0):
            return None
    if not all(value in outputs or value in feeds for value in results):
        return None
    return evaluate_nodes([ir.serde.serialize_node(node) for node in (*outside, *nodes)], constants, results, ctx)


def _add_constant(value: ir.Value, constants: dict[ir.Value, np.ndarray], nodes: list[ir.Node], depth: int) -> bool:
    """Add a captured constant to ``constants``, or the nodes that compute it to ``nodes``; return False if it is no constant."""
    node, array = value.producer(), const_array(value, limit=1 << 31)
    if value in constants or node in nodes:
        return True
    if array is not None:
        constants[value] = array
        return True
    if node is None or depth > 16 or any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
        return False
    if not all(_add_constant(operand, constants, nodes, depth + 1) for operand in node.inputs if operand is not None):
        return False
    nodes.append(node)
    return True
