"""Recurrent nodes whose sequence may come from a reversal."""

import onnx_ir as ir

__all__ = ["may_be_reversed"]


_REVERSE = frozenset({"Gather", "ReverseSequence", "Slice"})


def may_be_reversed(node: ir.Node) -> bool:
    """Whether the sequence of a recurrent node comes from an operator that may be a reversal."""
    value = node.inputs[0] if node.inputs else None
    while value is not None and (maker := value.producer()) is not None:
        if maker.op_type not in ("Identity", "Transpose"):
            return maker.op_type in _REVERSE and maker.domain == ""
        value = maker.inputs[0]
    return False
