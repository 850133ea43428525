"""Finds the values of a Scan's body whose shape may change from step to step. No stack can hold them.

The inputs of the body have the same shape in all steps. The result of an operator has one shape in all steps under two conditions:
each operand has one shape, and the operands that determine the shape of the result (the bounds of a Slice, the limit of a Range)
are equal in every step. If a condition does not hold, the declared sizes of the result are ignored, because exporters declare the
sizes of the step that they traced. The shapes of values computed from the result are inferred again without these sizes. The shapes
in the model do not change.
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic, reads
from rewrites.graph.context import Context
from rewrites.graph.dims import is_one_size, meet
from rewrites.graph.node_inference import infer_afresh, put_shapes, shapes_kept
from rewrites.graph.values import rank_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanView, is_loop, view
from rewrites.ops.versions import DYNAMIC, ints_operand

__all__ = ["unsteady_values"]

_DECIDING: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow"), (0,)),
    **dict.fromkeys(("AffineGrid", "CenterCropPad", "Expand", "OneHot", "Reshape", "Split", "Squeeze", "Tile", "TopK"), (1,)),
    **dict.fromkeys(("Unsqueeze", "Upsample"), (1,)),
    **{"Col2Im": (1, 2), "DFT": (1, 2), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1), "Pad": (1, 3), "Range": (0, 1, 2)},
    **{"Resize": (1, 2, 3), "STFT": (1, 2, 3), "Slice": (1, 2, 3, 4)},
}
"""For each operator, the indices of the operands whose elements determine the shape of the result."""
_EVERYTHING_DECIDES = frozenset(
    [
        *("Compress", "ConcatFromSequence", "ImageDecoder", "NonMaxSuppression", "NonZero", "Optional", "OptionalGetElement"),
        *("SequenceAt", "SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceMap", "SplitToSequence"),
        *("StringNormalizer", "StringSplit", "Unique"),
    ]
)

_Shapes = dict[ir.Value, ir.Shape | None]


def unsteady_values(loop: ScanView, ctx: Context) -> frozenset[ir.Value]:
    """Return the values of the body of ``loop`` whose shape may change from step to step."""
    returned = [*(state.next for state in loop.states), *(output.inner for output in loop.scan_outputs)]
    steps = _ShapeChanges(ctx, {part for value in returned for part in (value, through_identity(value)) if part is not None})
    steps.changing_values.update(loop.body.inputs)
    steps.analyse(loop.body)
    return frozenset(steps.unsteady)


class _ShapeChanges:
    """Finds the values of a body whose elements or shapes may differ between steps.

    Attributes:
        changing_values: The values that may differ between steps.
        unsteady: The values whose shape may differ between steps. Each is mapped to a shape that has only the sizes known to be
            equal
            in all steps.
        steady: The values that have one shape in all steps, because the Scan would fail otherwise.
    """

    def __init__(self, ctx: Context, steady: set[ir.Value]) -> None:
        self.ctx, self.steady = ctx, steady
        self.changing_values: set[ir.Value] = set()
        self.unsteady: _Shapes = {}

    def analyse(self, graph: ir.Graph) -> None:
        for node in graph:
            results = self._results(node)
            self.unsteady |= {
                value: shape for value, shape in results.items() if value not in self.steady and not _has_one_shape(shape)
            }
            asks = node.op_type in ("Shape", "Size") and node.domain == ""
            if self._is_unsteady(node.inputs) if asks else self._is_changing(reads(node)) or not is_deterministic(node):
                self.changing_values.update(node.outputs)

    def _is_changing(self, values: Iterable[ir.Value | None]) -> bool:
        return any(value in self.changing_values or value in self.unsteady for value in values)

    def _is_unsteady(self, values: Iterable[ir.Value | None]) -> bool:
        return any(value in self.unsteady for value in values)

    def _results(self, node: ir.Node) -> _Shapes:
        """Return the results of ``node`` whose shape may differ between steps.

        Each result is mapped to a shape that has only the sizes known to be equal in all steps.
        """
        if node.op_type == "If" and node.domain == "":
            return self._if_results(node)
        loop = view(node, self.ctx.opset) if is_loop(node) else None
        if isinstance(loop, ScanView) and not loop.batched:
            return self._scan_results(loop)
        if node.domain != "" or node_graphs(node):
            changing = self._is_changing(reads(node))
            return {value: _unknown_sizes(value) for value in node.outputs if changing and not _has_one_shape(value.shape)}
        deciding = _DECIDING.get(node.op_type, (1,) if node.op_type.startswith("Reduce") else ())
        decided = node.inputs if node.op_type in _EVERYTHING_DECIDES else [node.inputs[i] for i in deciding if i < len(node.inputs)]
        if self._is_changing(decided):
            return {value: self._slice_shape(node) if node.op_type == "Slice" else _unknown_sizes(value) for value in node.outputs}
        return self._infer_from_unsteady(node) if self._is_unsteady(node.inputs) else {}

    def _slice_shape(self, node: ir.Node) -> ir.Shape | None:
        """Return the shape of the result of a Slice whose bounds may differ between steps.

        Only the axes that the Slice does not cut have known sizes.
        """
        source = node.inputs[0]
        shape = None if source is None else self.unsteady.get(source, source.shape)
        axes = ints_operand(node, 3)
        if not shape or axes is None or axes is DYNAMIC:
            return _unknown_sizes(node.outputs[0])
        cut = {axis % len(shape) for axis in axes}
        return ir.Shape([None if axis in cut else dim for axis, dim in enumerate(shape.dims)])

    def _infer_from_unsteady(self, node: ir.Node) -> _Shapes:
        doubted = [value for value in node.inputs if value in self.unsteady]
        with shapes_kept(doubted):
            put_shapes({value: self.unsteady[value] for value in doubted})
            return infer_afresh(node, self.ctx.infer)

    def _if_results(self, node: ir.Node) -> _Shapes:
        branches = node_graphs(node)
        for branch in branches:
            self.analyse(branch)
        shapes: _Shapes = {}
        for value, *results in zip(node.outputs, *(branch.outputs for branch in branches), strict=True):
            shape = meet([self.unsteady.get(result, result.shape) for result in results])
            if self._is_changing(node.inputs) or self._is_unsteady(results):
                shapes[value] = shape
        return shapes

    def _scan_results(self, loop: ScanView) -> _Shapes:
        self.changing_values.update(loop.body.inputs)
        for state in loop.states:
            if state.initial in self.unsteady:
                self.unsteady[state.inner] = self.unsteady[state.initial]
        for scan in loop.scan_inputs:
            if scan.outer in self.unsteady:
                self.unsteady[scan.inner] = _unknown_sizes(scan.inner)
        self.analyse(loop.body)
        shapes = {state.final: self.unsteady[state.initial] for state in loop.states if state.initial in self.unsteady}
        other_steps = self._is_unsteady(scan.outer for scan in loop.scan_inputs)
        shapes |= {
            output.outer: None if output.outer is None else _unknown_sizes(output.outer)
            for output in loop.scan_outputs
            if other_steps or output.inner in self.unsteady
        }
        return {value: shape for value, shape in shapes.items() if value is not None}


def _unknown_sizes(value: ir.Value) -> ir.Shape | None:
    rank = rank_of(value)
    return None if rank is None else ir.Shape([None] * rank)


def _has_one_shape(shape: ir.Shape | None) -> bool:
    """Return True if all sizes in ``shape`` are numbers, or names that mean the same size in all steps."""
    return shape is not None and all(map(is_one_size, shape.dims))
