"""Runs the part of a loop that depends on constants alone, before the model runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.values import const_array, rank_of
from rewrites.loops import LoopView, ScanInput, State

__all__ = ["LoopPart", "PartRun"]


@dataclass(frozen=True)
class PartRun:
    """The results of a part of a loop.

    Args:
        steps: The number of steps.
        finals: The values of the states after the last step.
        stacks: The values in all steps, along axis 0, of the body values that were asked for.
    """

    steps: int
    finals: Sequence[np.ndarray]
    stacks: Sequence[np.ndarray]


@dataclass(frozen=True)
class LoopPart:
    """A part of a loop's body that depends on constants alone.

    Its states start as constants, and its nodes read only these states and constants.

    Args:
        nodes: The nodes of the part, in the order of the body.
        states: The states that the nodes compute.
        scan_inputs: Scanned constants.
        counted: The Loop whose step number and condition the nodes may read, and whose condition stops the run.
    """

    nodes: Sequence[ir.Node]
    states: Sequence[State]
    scan_inputs: Sequence[ScanInput] = ()
    counted: LoopView | None = None

    def run(self, limit: int, stacked: Sequence[ir.Value], ctx: Context) -> PartRun | None:
        """Run at most ``limit`` steps, and return the results.

        Return None if onnxruntime cannot run them. ``stacked``: the body values whose stacks are returned.
        """
        constants = self._constants(stacked)
        names = {value.name for value in (*self._inside(), *constants, *stacked)}

        def fresh(hint: str) -> str:
            while hint in names:
                hint += "_"
            names.add(hint)
            return hint

        make = onnx.helper.make_node
        if self.counted is None:
            step, condition, result = fresh("step"), fresh("condition"), ""
        else:
            step, condition, result = (
                value.name or "" for value in (self.counted.iteration, self.counted.condition_in, self.counted.condition_out)
            )
        most, last, start, number, shape = map(fresh, ("most", "last", "start", "number", "shape"))
        added = {most: np.array(limit), last: np.array(limit - 1), start: np.array(True), shape: np.zeros(0, np.int64)}
        before = list[onnx.NodeProto]()
        for scan in self.scan_inputs:
            index = fresh("index")
            before.append(make("Sub", [last, step], [index]) if scan.reverse else make("Identity", [step], [index]))
            before.append(make("Gather", [scan.outer.name or "", index], [scan.inner.name or ""], axis=scan.axis))
        counted = self.counted
        inputs = [_declaration(step, 7, None if counted is None else counted.iteration)]
        inputs.append(_declaration(condition, 9, None if counted is None else counted.condition_in))
        initial = list[str]()
        for state in self.states:
            array = const_array(state.initial)
            assert array is not None
            initial.append(fresh("initial"))
            added[initial[-1]] = array
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append(onnx.helper.make_tensor_value_info(state.inner.name or "", kind, None))
        sources = [result or condition, *(state.next.name or "" for state in self.states), *(value.name or "" for value in stacked)]
        results = [fresh("result") for _ in sources]
        after = [make("Identity", [source], [name]) for source, name in zip(sources, results, strict=True)]
        after.append(make("Reshape", [step, shape], [number]))
        outputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in (*results, number)]
        nodes = [*before, *map(ir.serde.serialize_node, self.nodes), *after]
        body = onnx.helper.make_graph(nodes, "steps", inputs, outputs)
        wanted = [fresh("final") for _ in results]
        run = make("Loop", [most, start, *initial], wanted, body=body)
        constants |= {ir.Value(name=name): array for name, array in added.items()}
        arrays = evaluate_nodes([run], constants, [ir.Value(name=name) for name in wanted], ctx)
        if arrays is None:
            return None
        return PartRun(len(arrays[-1]), arrays[: len(self.states)], arrays[len(self.states) : -1])

    def _inside(self) -> set[ir.Value]:
        inside = {value for node in self.nodes for value in node.outputs} | {state.inner for state in self.states}
        inside |= {scan.inner for scan in self.scan_inputs}
        return inside if self.counted is None else inside | {self.counted.iteration, self.counted.condition_in}

    def _constants(self, stacked: Sequence[ir.Value]) -> dict[ir.Value, np.ndarray]:
        """Return the constants that the part reads from outside, with their arrays."""
        read = [value for node in self.nodes for value in reads(node)] + [state.next for state in self.states]
        read += [] if self.counted is None else [self.counted.condition_out]
        inside = self._inside()
        outer = [value for value in (*read, *stacked) if value not in inside] + [scan.outer for scan in self.scan_inputs]
        return {value: array for value in dict.fromkeys(outer) if (array := const_array(value)) is not None}


def _declaration(name: str, element_type: int, like: ir.Value | None) -> onnx.ValueInfoProto:
    """Return the declaration of a value of one element: a vector if ``like`` is a vector, else a scalar."""
    return onnx.helper.make_tensor_value_info(name, element_type, [1] if like is not None and rank_of(like) == 1 else [])
