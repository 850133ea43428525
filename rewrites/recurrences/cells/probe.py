"""Compares a recognised cell with the body it was recognised in, at random points.

The algebra is exact, so a difference is a defect of ours; then nothing is fused.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind, reads
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, static_dims
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import Mask

__all__ = ["probe", "step"]

_ROWS = 3
_TOLERANCE = 2e-3
_TOLERANCES = {ir.DataType.FLOAT16: 2e-2}

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


def step(cell: Cell, x: np.ndarray, h: np.ndarray, c: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the next states of ``cell`` for rows of inputs and states, as the operators' text has it."""

    def apply(which: int, argument: np.ndarray) -> np.ndarray:
        function = cell.functions[which]
        if function.clip is not None:
            argument = np.clip(argument, -function.clip, function.clip)
        return _FUNCTIONS[function.name](argument, function)

    size = cell.size
    wx = np.split(x @ cell.w.T + cell.wb, len(cell.wb) // size, axis=-1)
    rh = np.split(h @ cell.r.T + cell.rb, len(cell.rb) // size, axis=-1)
    if cell.op_type == "RNN":
        return apply(0, wx[0] + rh[0]), None
    if cell.op_type == "GRU":
        z, r = apply(0, wx[0] + rh[0]), apply(0, wx[1] + rh[1])
        if cell.linear_before_reset:
            n = apply(1, wx[2] + r * rh[2])
        else:
            n = apply(1, wx[2] + (r * h) @ cell.r[2 * size :].T + cell.rb[2 * size :])
        return (1 - z) * n + z * h, None
    assert c is not None
    p = np.zeros(3 * size) if cell.peepholes is None else cell.peepholes
    i = apply(0, wx[0] + rh[0] + p[:size] * c)
    f = 1 - i if cell.input_forget else apply(0, wx[2] + rh[2] + p[2 * size :] * c)
    after = f * c + i * apply(1, wx[3] + rh[3])
    return apply(0, wx[1] + rh[1] + p[size : 2 * size] * after) * apply(2, after), after


def probe(
    cell: Cell, reading: Interpretation, ctx: Context, mask: Mask | None = None, weights: Sequence[ir.Value] = ()
) -> bool | None:
    """Whether ``cell`` and the body agree; None where the body cannot be run by itself.

    ``mask``: on which condition rows take the step, the others keeping their states. ``weights``: captured tensors that are known
    only when the model runs.
    """
    states = cell.states
    wanted = [state.next for state in states]
    nodes = nodes_behind(reading.loop.body, wanted, () if mask is None else (mask.value,))
    fed = {value for node in nodes for value in reads(node)} | {state.inner for state in states}
    sources: dict[Hashable, np.ndarray] = {}
    feeds = _random_feeds(reading, sources, fed, cell, None if mask is None else mask.value)
    if feeds is None or not all(key in sources for key, _ in cell.sources):
        return None
    numbers = {weight: _random_weight(weight) for weight in weights}
    cell = cell.with_numbers(numbers)
    model = _model_of(nodes, {**feeds, **{weight: array.astype(_kind(weight)) for weight, array in numbers.items()}}, wanted, ctx)
    results = None if model is None else ctx.evaluate(model)
    if results is None:
        return None
    h, *rest = (feeds[state.inner].astype(np.float64).reshape(-1, cell.size) for state in states)
    x = np.concatenate([sources[key] for key, _ in cell.sources], axis=1) if cell.sources else np.zeros((len(h), 0))
    found = step(cell, x, h, rest[0] if rest else None)
    assert cell.hidden.inner.dtype is not None
    tolerance = _TOLERANCES.get(cell.hidden.inner.dtype, _TOLERANCE)
    for result, new, old in zip(results, found, (h, *rest), strict=False):
        expected = new if mask is None or new is None else _masked(feeds[mask.value] == mask.outcome, new, old)
        if expected is None or result.size != expected.size:
            return None
        if not np.allclose(result.reshape(expected.shape), expected, rtol=tolerance, atol=tolerance):
            return False
    return True


def _random_weight(weight: ir.Value) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(static_dims(weight)).astype(_kind(weight)).astype(np.float64)


def _kind(value: ir.Value) -> np.dtype:
    assert value.dtype is not None
    return value.dtype.numpy()


def _masked(mask: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray | None:
    """Return ``new`` in the rows that ``mask`` has, else ``old``; None where it does not have one number for each row."""
    return np.where(mask.reshape(-1, 1), new, old) if mask.size in (1, len(new)) else None


def _random_feeds(
    reading: Interpretation, sources: dict[Hashable, np.ndarray], fed: set[ir.Value], cell: Cell, mask: ir.Value | None
) -> dict[ir.Value, np.ndarray] | None:
    """Return something for each body input in ``fed``; ``sources`` takes the rows of the scanned sources behind it."""
    rng = np.random.default_rng(7)
    loop, feeds, symbols = reading.loop, dict[ir.Value, np.ndarray](), dict[str, int]()

    def size(dim: int | str | None) -> int:
        return dim if isinstance(dim, int) else _ROWS if dim is None else symbols.setdefault(dim, _ROWS)

    if mask is not None:
        if mask.shape is None:
            return None
        own, each = reading.dims[source_of(cell.hidden)], reading.sizes(mask.shape)
        by_row = len(each) == len(own) + 1 and any(dim != 1 for dim in each)
        shape = (*map(size, own), 1) if by_row else (1,) * len(each)
        feeds[mask] = np.asarray(rng.random(shape) < 0.5)
    for state in (state for state in loop.states if state.inner in fed):
        features = reading.features(state.inner)
        if features is None or state.inner.dtype is None:
            return None
        lead = [size(dim) for dim in reading.dims[source_of(state)]]
        feeds[state.inner] = rng.standard_normal([*lead, *features.shape]).astype(state.inner.dtype.numpy())
    for scan in (scan for scan in loop.scan_inputs if scan.inner in fed and scan.inner is not mask):
        features, kind = reading.features(scan.inner), scan.inner.dtype
        polynomial = None if features is None else features.whole()
        if features is None or polynomial is None or kind is None or scan.inner.shape is None:
            return None
        lead = [size(dim) for dim in reading.sizes(scan.inner.shape)[: features.lead]]
        rows = np.broadcast_to(polynomial.affine.bias, (int(np.prod(lead, dtype=np.int64)), polynomial.width)).copy()
        for key, matrix in polynomial.affine.terms.items():
            if key not in sources:
                sources[key] = rng.standard_normal((len(rows), len(matrix)))
            if len(sources[key]) != len(rows):
                return None
            rows += sources[key] @ matrix
        feeds[scan.inner] = rows.reshape([*lead, *features.shape]).astype(kind.numpy())
    return feeds


def _model_of(
    nodes: list[ir.Node], feeds: Mapping[ir.Value, np.ndarray], results: list[ir.Value], ctx: Context
) -> onnx.ModelProto | None:
    """Make a model without inputs that runs ``nodes`` once."""
    graph = onnx.GraphProto(name="probe")
    for value, array in feeds.items():
        graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    made = {value for node in nodes for value in node.outputs}
    for value in dict.fromkeys(value for node in nodes for value in reads(node)):
        if value not in feeds and value not in made and not _outside(value, graph, 0):
            return None
    graph.node.extend(ir.serde.serialize_node(node) for node in nodes)
    if not all(value in made or value in feeds for value in results):
        return None
    graph.output.extend(onnx.ValueInfoProto(name=value.name) for value in results)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in ctx.model.opset_imports.items()]
    return onnx.helper.make_model(graph, ir_version=max(4, ctx.model.ir_version), opset_imports=imports)


def _outside(value: ir.Value, graph: onnx.GraphProto, depth: int) -> bool:
    """Bring a captured constant into ``graph``, with the nodes that compute it."""
    made = {tensor.name for tensor in graph.initializer} | {name for node in graph.node for name in node.output}
    if value.name in made:
        return True
    array = const_array(value, limit=1 << 31)
    if array is not None:
        graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        return True
    node = value.producer()
    if node is None or depth > 16 or any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
        return False
    if not all(_outside(operand, graph, depth + 1) for operand in node.inputs if operand is not None):
        return False
    graph.node.append(ir.serde.serialize_node(node))
    return True
