"""Check the Ifs that guard nodes against empty inputs, before a model runs on empty inputs.

    c = Size (x) > 0     If (c) then LSTM (x, ...) else ...

An LSTM would crash this process if x is empty. So at first, only c is computed. If c is true although x is empty, the model is not
run. Ifs in the main graph and in branches of other Ifs are checked.
"""

from collections.abc import Mapping, Set
from contextlib import ExitStack
from typing import Any

import numpy as np
import onnx

from ortscan.modelio.source import ModelSource, changed_source
from ortscan.running.graph_index import GraphIndex
from ortscan.running.guarded_nodes import guarded_nodes
from ortscan.running.runner import Runner, on_one_thread
from rewrites.ops.traits import operators

__all__ = ["LETS_IN", "Guards"]

LETS_IN = "an If passes a sequence without steps or rows to a recurrent node, which crashes onnxruntime"

_MOST_NODES = 200
_Path = tuple[tuple[str, bool], ...]
_CPU = ("CPUExecutionProvider",)


class Guards:
    """The Ifs that guard nodes in a model against empty inputs.

    A small model computes only the conditions of these Ifs. Its session is created when it is first needed.

    Args:
        source: the model with the Ifs.
        stack: removes temporary files at the end of the comparison.

    Attributes:
        watched: the names of the outputs of each guarded node. Empty if the conditions cannot be computed separately.
    """

    def __init__(self, source: ModelSource, stack: ExitStack):
        self._source, self._stack = source, stack
        self._paths: list[_Path] = []
        self._nodes: list[onnx.NodeProto] = []
        self._runner: Runner | None = None
        self.watched: set[tuple[str, ...]] = set()
        if guarded := guarded_nodes(source.proto):
            self._walk(source.proto.graph, (), guarded)
        self._model = self._conditions() if self._paths else None
        if self._model is None:
            self.watched.clear()

    def _walk(self, graph: onnx.GraphProto, path: _Path, guarded: Set[tuple[str, ...]]) -> None:
        """Collect the nodes of ``graph`` and of the branches in it. For each guarded node, record its path.

        A path lists the branches around the node, from the outside: (condition of the If, True for the then-branch).
        """
        for node in graph.node:
            self._nodes.append(node)
            if tuple(node.output) in guarded:
                self.watched.add(tuple(node.output))
                self._paths.append(path)
            for attribute in node.attribute if node.op_type == "If" else ():
                self._walk(attribute.g, (*path, (node.input[0], attribute.name == "then_branch")), guarded)

    def obstacle(self, feed: Mapping[str, Any]) -> str | None:
        """Return the reason why the model must not run on the inputs ``feed``, or None if it may run."""
        if self._model is None:
            return None
        names = [value.name for value in self._model.graph.output]
        if self._runner is None:
            self._runner = Runner(changed_source(self._source, self._model, self._stack), names, _CPU, on_one_thread)
        if self._runner.error is not None:
            return self._runner.error
        outcome = self._runner.run({value.name: feed[value.name] for value in self._model.graph.input if value.name in feed})
        if outcome.values is None:
            return outcome.error
        branches = dict(zip(names, (bool(value.reshape(-1)[0]) for value in outcome.values), strict=True))
        reached = any(all(branches[condition] is branch for condition, branch in path) for path in self._paths)
        return LETS_IN if reached and any(0 in np.shape(value) for value in feed.values()) else None

    def _conditions(self) -> onnx.ModelProto | None:
        proto = self._source.proto
        index = GraphIndex(proto.graph, self._nodes)
        conditions = sorted({condition for path in self._paths for condition, _ in path})
        needed = index.backward(conditions, set(), _MOST_NODES)
        if isinstance(needed, str):
            return None
        nodes = [index.nodes[position] for position in sorted(needed.nodes)]
        if any(node.domain or node.op_type not in operators("survives-empty") or node.op_type in ("If", "Loop") for node in nodes):
            return None
        model = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
        model.graph.name = "guards"
        model.graph.node.extend(nodes)
        read = {name for node in nodes for name in node.input} | set(conditions)
        model.graph.initializer.extend(tensor for name, tensor in index.initializers.items() if name in read)
        model.graph.input.extend(value for value in proto.graph.input if value.name in needed.leaves)
        model.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, None) for name in conditions)
        return model
