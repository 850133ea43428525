"""Converts all nodes of the standard domain to another opset, in place.

    opset 9:  y = Squeeze <axes = [0]> (x)   ->   opset 28:  y = Squeeze (x, [0])

Nodes are converted in the main graph, in all nested graphs and in the model-local functions. They keep their names, and their
outputs keep names, types and shapes. Most nodes only change their version. The package ``conversions`` has a function for each
version that changed an operator. These functions are applied one after the other. New constants become initializers of the main
graph, or Constant nodes of a function.

These nodes stay unchanged: nodes of other domains (but not the graphs nested in them), calls of functions, and operators unknown to
onnx. An opset-8 Scan also stays, and ``scan_8`` replaces it later.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.base.errors import MigrationError
from rewrites.graph.builder import ConstantPool
from rewrites.graph.names import Names
from rewrites.graph.walk import all_nodes
from rewrites.migration.node_conversion import NodeConversion
from rewrites.migration.step import NotKnownHere, Unconvertible
from rewrites.migration.versions import NEWEST, since

__all__ = ["Conversion", "convert_operators", "is_scan_8_to_lift", "needs_inlining"]


@dataclass(frozen=True)
class Conversion:
    """The conversion of ``count`` nodes of type ``op_type`` from one version of the operator to another.

    ``before``, ``after``: the versions. ``written``: the types of the new nodes that replace each old node, in order; empty if the
    node stays and only its version changes.
    """

    op_type: str
    before: int
    after: int
    written: tuple[str, ...]
    count: int


_ConversionKey = tuple[str, int, int, tuple[str, ...]]
_SCAN_CHANGED = 9
_LOWEST = 7


def convert_operators(model: ir.Model, target: int, names: Names) -> list[Conversion]:
    """Convert ``model`` to opset ``target`` in place, and return the changes.

    Call it only after shape inference: the values of ``model`` must have their types and shapes.

    Raises:
        MigrationError: A node cannot be converted. The model is then partly converted, so work on a copy.
    """
    if not 1 <= target <= NEWEST:
        raise MigrationError(f"opset {target} is not supported; choose one from 1 to {NEWEST}.")
    for function in model.functions.values():
        _check_compatible(model, function)
    counts: Counter[_ConversionKey] = Counter()
    constants = ConstantPool(model.graph, names)
    if (source := model.opset_imports.get("")) is not None:
        _convert(model.graph, source, target, names, constants, model, counts)
        model.opset_imports[""] = target
    for function in model.functions.values():
        if (source := function.opset_imports.get("")) is not None:
            _convert(function, source, target, names, _FunctionConstants(function, names), model, counts)
            function.opset_imports[""] = target
    return [Conversion(*kind, count) for kind, count in sorted(counts.items())]


def needs_inlining(model: ir.Model, function: ir.Function, target: int) -> bool:
    """Return True if ``function`` must be inlined before all its nodes can be converted.

    This is the case if the conversion of a node depends on a type, a rank, or the value of an attribute parameter, because only a
    call of the function determines these. If ``function`` cannot be converted for another reason, return False:
    ``convert_operators`` will raise the error.
    """
    try:
        _count_conversions(model, function, target)
    except MigrationError as error:
        return isinstance(error.__cause__, NotKnownHere)
    return False


def is_scan_8_to_lift(node: ir.Node, source: int, target: int) -> bool:
    """Return True if ``node`` is an opset-8 Scan that ``scan_8`` must replace.

    ``convert_operators`` skips such a Scan. Return False if ``target`` is below opset 9, which has the same Scan.
    """
    return node.op_type == "Scan" and node.domain == "" and source < _SCAN_CHANGED <= target


def _check_compatible(model: ir.Model, function: ir.Function) -> None:
    """Raise MigrationError if a node of ``function`` means something else in the opset of the model.

    A function declares its own opset, but onnxruntime runs its nodes with the meaning of the model's opset. ONNX allows the two
    opsets to differ only if the nodes mean the same in both.
    """
    ours, theirs = model.opset_imports.get(""), function.opset_imports.get("")
    if ours is None or theirs is None or ours == theirs:
        return
    name = f"{function.domain}::{function.name}"
    try:
        tried = _count_conversions(model, function, ours)
    except MigrationError as error:
        raise MigrationError(
            f"The function '{name}' has opset {theirs}, which does not fit the model's opset {ours}: {error}"
        ) from error
    changed = next((op_type for op_type, _, _, written in tried if written), None)
    if changed is not None:
        detail = f"its {changed} means something else in the model's opset {ours}"
        raise MigrationError(f"The function '{name}' has opset {theirs}, and {detail}.")


def _count_conversions(model: ir.Model, function: ir.Function, target: int) -> Counter[_ConversionKey]:
    """Convert a copy of ``function``, and count the changed nodes by operator, versions and new nodes.

    The nodes of ``function`` itself are sorted topologically, but not converted.
    """
    counts: Counter[_ConversionKey] = Counter()
    source = function.opset_imports.get("")
    if source is None or source == target:
        return counts
    function.sort()
    copy = function.clone()
    names = Names(ir.Model(ir.Graph([], [], nodes=[]), ir_version=model.ir_version, functions=[copy]))
    _convert(copy, source, target, names, _FunctionConstants(copy, names), model, counts)
    return counts


def _convert(
    graph: ir.Graph | ir.Function,
    source: int,
    target: int,
    names: Names,
    constants: ConstantPool,
    model: ir.Model,
    counts: Counter[_ConversionKey],
) -> None:
    if source == target:
        return
    if target < min(source, _LOWEST):
        detail = f"before opset {_LOWEST}, operators do not broadcast like numpy"
        raise MigrationError(f"Nothing is lowered to opset {target}: {detail}.")
    conversion = NodeConversion(source, target, names, constants, model.ir_version)
    for node in list(all_nodes(graph)):
        if node.domain != "" or node.op_identifier() in model.functions or is_scan_8_to_lift(node, source, target):
            continue
        op_type, name = node.op_type, node.name or (node.outputs[0].name if node.outputs else "")
        try:
            written = conversion.convert(node)
        except Unconvertible as reason:
            verb = "lifted" if target > source else "lowered"
            raise MigrationError(f"{op_type} '{name}' cannot be {verb} from opset {source} to {target}: {reason}.") from reason
        before, after = since(op_type, source), since(op_type, target)
        if written or before != after:
            counts[op_type, before, after, written] += 1
    constants.drop_unused()


class _FunctionConstants(ConstantPool):
    """Provides constants as Constant nodes at the start of ``function``. Equal constants share a node."""

    def __init__(self, function: ir.Function, names: Names) -> None:
        super().__init__(function.graph, names)
        self._function = function
        self._fresh = names
        self._nodes: dict[tuple[str, tuple[int, ...], bytes], ir.Node] = {}

    def value(self, array: np.ndarray, hint: str = "const") -> ir.Value:
        """Return the result of a Constant node that holds ``array``."""
        key = (str(array.dtype), array.shape, array.tobytes())
        node = self._nodes.get(key)
        if node is None:
            node = ir.node("Constant", [], attributes={"value": ir.tensor(array)}, name=self._fresh.fresh("node_Constant"))
            result = node.outputs[0]
            result.name = self._fresh.fresh(hint)
            result.type, result.shape = ir.TensorType(ir.tensor(array).dtype), ir.Shape(array.shape)
            self._function.insert_before(self._function[0], node)
            self._nodes[key] = node
        return node.outputs[0]

    def drop_unused(self) -> None:
        """Remove the unused constants."""
        for key, node in list(self._nodes.items()):
            if not node.outputs[0].uses():
                self._function.remove(node)
                del self._nodes[key]
