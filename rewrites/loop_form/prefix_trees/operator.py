"""Emits the operator of a prefix tree, and tests whether the operator is associative.

The test computes ``(x * y) * z`` and ``x * (y * z)`` for random rows, in float64. Only an associative operator has prefixes that
do not depend on the tree. Two smooth functions that agree at random rows agree everywhere. Functions with a threshold do not: a sum
of at most 100 is a sum at small rows. So an operator with a constant must be smooth.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.values import const_array, static_dims
from rewrites.loop_form.prefix_trees.terms import Application, Filler, Invariant, Leaf
from rewrites.loop_form.prefix_trees.trees import PrefixTree

__all__ = ["emit_operator", "has_threshold", "is_associative"]

_SMOOTH_NAMES = (
    "Add Concat Cos Div Einsum Erf Exp Expand Gemm Identity Log MatMul Mul Neg Pow Reciprocal Reshape Sigmoid Sin Slice "
    "Softplus Sqrt Squeeze Sub Sum Tanh Transpose Unsqueeze"
)
_SMOOTH = frozenset(_SMOOTH_NAMES.split())
"""Operators without a threshold. Div has one for integers."""

_SAMPLES = 1 << 12
_TOLERANCE = 1e-9
_LEAST_FINITE = 0.5
_Rows = Mapping[int, ir.Value]
"""One row of each part, by the source of the part."""

_Draw = Callable[[np.random.Generator, Sequence[int]], np.ndarray]
_FLOATS: Sequence[_Draw] = (
    lambda draw, dims: draw.uniform(-2, 2, dims),
    lambda draw, dims: draw.integers(-2, 3, dims).astype(np.float64),
    lambda draw, dims: draw.uniform(0.05, 1.5, dims),
    lambda draw, dims: draw.choice([-1.0, 1.0], dims) * 10.0 ** draw.uniform(-2, 7, dims),
)
"""The last draw finds operators that saturate, such as a sum between -100 and 100."""


def emit_operator(
    tree: PrefixTree,
    sources: Iterable[int],
    b: Builder,
    earlier: _Rows,
    later: _Rows,
    invariant: Callable[[ir.Value | None, Sequence[int]], ir.Value | None] = lambda value, _: value,
) -> dict[int, ir.Value]:
    """Emit the operator, and return one row of its result for each of the parts ``sources``.

    Args:
        tree: The tree.
        sources: The sources of the parts.
        b: Collects the nodes.
        earlier: The operand that combines earlier steps.
        later: The operand that combines later steps.
        invariant: Returns the value that replaces an operand from outside the tree. Its second argument has the axes along which
            the rows of the tree lie, counted from the right.
    """
    results = {}
    for source in sources:
        template, rows = tree.proof.templates[source], dict[int, ir.Value | None]()
        for number in tree.terms(source):
            term = tree.proof.terms.terms[number]
            if isinstance(term, Leaf):
                rows[number] = (later if term.position > template.first else earlier)[term.source]
            elif isinstance(term, Application):
                emission = tree.reader.emissions[term.key]
                operands = [
                    invariant(other.value, emission.from_right) if isinstance(other, Invariant) else rows[operand]
                    for operand in term.operands
                    for other in [tree.proof.terms.terms[operand]]
                ]
                (rows[number],) = b.like(emission.node, operands)
        result = rows[template.term]
        assert result is not None
        results[source] = result
    return results


def has_threshold(tree: PrefixTree) -> bool:
    """Return True if the operator is not smooth and reads a constant, such as the bound of a Clip."""
    terms = [tree.proof.terms.terms[number] for source in tree.parts for number in tree.terms(source)]
    nodes = [tree.reader.emissions[term.key].node for term in terms if isinstance(term, Application)]
    if all(node.op_type in _SMOOTH and (node.op_type != "Div" or _is_float(node.outputs[0])) for node in nodes):
        return False
    arrays = [const_array(term.value) for term in terms if isinstance(term, Invariant)]
    arrays += [np.array(term.number) for term in terms if isinstance(term, Filler)]
    numbers = [float(number) for node in nodes for number in _float_attributes(node)]
    return any(_is_threshold(array) for array in (*arrays, np.array(numbers)) if array is not None)


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()


def _float_attributes(node: ir.Node) -> list[float]:
    return [attribute.as_float() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.FLOAT]


def _is_threshold(array: np.ndarray) -> bool:
    """Return True if ``array`` has a number other than 0 and the infinities.

    The test at random rows finds a threshold at 0.
    """
    return array.dtype.kind in "fiu" and bool((np.isfinite(array) & (array != 0)).any())


def is_associative(tree: PrefixTree, ctx: Context) -> bool:
    """Return True if the operator of ``tree`` is associative at all sampled rows."""
    shares = [_share_of_equal_rows(tree, ctx, seed) for seed in range(len(_FLOATS))]
    return all(share is not None for share in shares) and max(share or 0 for share in shares) >= _LEAST_FINITE


def _share_of_equal_rows(tree: PrefixTree, ctx: Context, seed: int) -> float | None:
    """Return the share of finite elements if both orders agree, else None."""
    draw, b, constants = np.random.default_rng(seed), ctx.builder(), dict[ir.Value, np.ndarray]()

    def sample(like: ir.Value, dims: Sequence[int]) -> ir.Value:
        array = _random(draw, like, dims, seed)
        value = ir.Value(name=ctx.names.fresh("sample"), type=ir.TensorType(ir.DataType.from_numpy(array.dtype)))
        value.shape = ir.Shape(array.shape)
        constants[value] = array
        return value

    known: dict[ir.Value, ir.Value] = {}

    def invariant(value: ir.Value | None, _: Sequence[int]) -> ir.Value | None:
        if value is not None and value not in known:
            array, known[value] = const_array(value), sample(value, static_dims(value) or ())
            if array is not None:
                constants[known[value]] = array.astype(constants[known[value]].dtype)
        return None if value is None else known[value]

    def combine(earlier: _Rows, later: _Rows) -> dict[int, ir.Value]:
        return emit_operator(tree, tree.parts, b, earlier, later, invariant)

    def rows() -> dict[int, ir.Value]:
        dims = {source: tree.row_dims(source) for source in tree.parts}
        count = max(1, _SAMPLES // max(1, *(math.prod(row) for row in dims.values())))
        return {source: sample(tree.reader.sources[source], [count, *row]) for source, row in dims.items()}

    x, y, z = rows(), rows(), rows()
    left, right = combine(combine(x, y), z), combine(x, combine(y, z))
    wanted = [*left.values(), *right.values()]
    results = evaluate_nodes([ir.serde.serialize_node(node) for node in b.nodes], constants, wanted, ctx)
    b.discard()
    return None if results is None else _share_of_equal(results[: len(left)], results[len(left) :])


def _random(draw: np.random.Generator, like: ir.Value, dims: Sequence[int], seed: int) -> np.ndarray:
    """Return random elements of the type of ``like``, but float64 for all floats."""
    dtype = like.dtype
    if dtype is None or dtype.is_floating_point():
        return _FLOATS[seed](draw, dims)
    if dtype == ir.DataType.BOOL:
        return draw.integers(0, 2, dims).astype(bool)
    most = 8 if seed < len(_FLOATS) - 1 else 10**6
    return draw.integers(-most if dtype.is_signed() else 0, most + 1, dims).astype(dtype.numpy())


def _share_of_equal(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> float | None:
    """Return the smallest share of finite elements if all arrays are equal up to rounding, else None."""
    share = 1.0
    for a, b in zip(left, right, strict=True):
        if a.dtype.kind != "f":
            if (a != b).any():
                return None
            continue
        finite = np.isfinite(a)
        with np.errstate(all="ignore"):
            is_close = np.abs(a - b) <= _TOLERANCE * (1 + np.abs(a).max(initial=0, where=finite))
        if (finite != np.isfinite(b)).any() or not (is_close | ~finite).all():
            return None
        share = min(share, float(finite.mean()))
    return share
