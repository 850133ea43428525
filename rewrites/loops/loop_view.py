"""The view of a Loop, for all versions of the operator (1, 11, 13, 16, 19, 21, 23, 24, 25).

Sources: the specifications of Loop-1 to Loop-25. The checks agree with the shape inference in onnx/defs/controlflow.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.marks import EMPTY_SIZES
from rewrites.graph.type_names import type_name
from rewrites.graph.values import const_array, const_scalar, rank_of, through_identity
from rewrites.loops.parts import ScanInput, ScanOutput, State, body_of, check_body_values, check_element_types, malformed

__all__ = ["LoopView"]


@dataclass(frozen=True)
class LoopView:
    """The parts of a Loop node.

    ``limit``: the maximal trip count M, or None (no limit). ``condition``: the initial condition, or None (true).
    ``iteration`` and ``condition_in``: the step number and the condition in the body. ``condition_out``: the next condition.
    """

    node: ir.Node
    body: ir.Graph
    states: tuple[State, ...]
    scan_outputs: tuple[ScanOutput, ...]
    limit: ir.Value | None
    condition: ir.Value | None
    iteration: ir.Value
    condition_in: ir.Value
    condition_out: ir.Value

    kind = "Loop"
    batched = False
    sequence_lens = None
    scan_inputs: tuple[ScanInput, ...] = ()

    @property
    def never_stops_early(self) -> bool:
        """Return True if the condition is always true, so that only the trip count limits the loop."""
        if self.condition is not None and const_scalar(self.condition) is not True:
            return False
        after = through_identity(self.condition_out)
        return after is self.condition_in or const_scalar(after) is True

    @property
    def steps(self) -> int | str | None:
        """Return the trip count if it is constant and the condition never stops the loop early, else None."""
        limit = const_scalar(self.limit)
        return max(0, int(limit)) if limit is not None and self.never_stops_early else None

    @property
    def always_runs(self) -> bool:
        """Return True if the body is known to run at least once."""
        limit = const_scalar(self.limit) if self.limit is not None else 1
        starts = self.condition is None or const_scalar(self.condition) is True
        return limit is not None and limit >= 1 and starts

    def inputs_in_step(self, step: int) -> dict[ir.Value, np.ndarray]:
        """Return the arrays of two body inputs in ``step``: the step number, and the condition (True)."""
        return {
            value: np.full((1,) if rank_of(value) == 1 else (), number, dtype)
            for value, number, dtype in ((self.iteration, step, np.int64), (self.condition_in, True, np.bool_))
        }

    @property
    def body_inputs(self) -> list[ir.Value]:
        """Return the body inputs whose values change between steps. For a Loop, these are all body inputs."""
        return list(self.body.inputs)

    @classmethod
    def of(cls, node: ir.Node, opset: int) -> "LoopView":
        """Return the view of a Loop node.

        If the node is invalid, raise MalformedLoop, which names the node and the field.
        """
        del opset
        body = body_of(node)
        if len(node.inputs) < 2:
            raise malformed(node, "inputs", f"are {len(node.inputs)}, but M and cond (or empty names) are required")
        operands = node.inputs[2:]
        count = len(operands)
        if any(value is None for value in operands):
            raise malformed(node, "inputs", "loop-carried values cannot be omitted")
        if len(body.inputs) != count + 2:
            raise malformed(
                node, "body", f"has {len(body.inputs)} inputs, but {count + 2} (iteration, condition, states) are needed"
            )
        if len(body.outputs) != len(node.outputs) + 1 or len(node.outputs) < count:
            raise malformed(
                node, "body", f"has {len(body.outputs)} outputs, but the node's {len(node.outputs)} and a condition are needed"
            )
        check_body_values(node, body)
        values = [value for value in operands if value is not None]
        for name, value, dtype in (
            ("M", node.inputs[0], ir.DataType.INT64),
            ("cond", node.inputs[1], ir.DataType.BOOL),
            ("body's iteration number", body.inputs[0], ir.DataType.INT64),
            ("body's condition input", body.inputs[1], ir.DataType.BOOL),
            ("body's condition", body.outputs[0], ir.DataType.BOOL),
        ):
            if value is not None and value.dtype is not None and value.dtype != dtype:
                raise malformed(node, name, f"has type {type_name(value.dtype)}, but must be {type_name(dtype)}")
            array = const_array(value)
            if array is not None and array.size != 1:
                raise malformed(node, name, f"has {array.size} elements, but must have one")
        states = tuple(State(values[i], body.inputs[i + 2], body.outputs[i + 1], node.outputs[i]) for i in range(count))
        for state in states:
            check_element_types(node, state.initial, state.inner)
            check_element_types(node, state.inner, state.next)
        outputs = list(zip(body.outputs[count + 1 :], node.outputs[count:], strict=True))
        empty = EMPTY_SIZES.of(node) or [None] * len(outputs)
        return cls(
            node,
            body,
            states,
            tuple(ScanOutput(inner, outer, empty_sizes=sizes) for (inner, outer), sizes in zip(outputs, empty, strict=True)),
            node.inputs[0],
            node.inputs[1],
            body.inputs[0],
            body.inputs[1],
            body.outputs[0],
        )
