"""ReduceLogSum takes integers up to version 18 only, of which it made integers, cut off.

ReduceLogSum (x of int32)  ->  refused
"""

from rewrites.migration.element_types import check_types
from rewrites.migration.step import Step
from rewrites.migration.versions import schema_of

__all__ = ["refuse_types_left_out"]


def refuse_types_left_out(step: Step) -> None:
    """Refuse a node whose element types the opset of the step no longer has."""
    schema = schema_of(step.node.op_type, step.builder.opset)
    assert schema is not None
    check_types(step.node, schema)
