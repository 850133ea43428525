"""What readers of operators are given: integers as they have been followed so far."""

from typing import Protocol

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import Affine

__all__ = ["Followed"]


class Followed(Protocol):
    """The expressions of values in a ``body``, or outside loops where there is none, over ``steps``."""

    @property
    def opset(self) -> int:
        """The version of the standard operator set."""

    @property
    def body(self) -> ir.Graph | None:
        """The body that is looked at."""

    @property
    def steps(self) -> Affine | None:
        """How many steps there are, where that is known."""

    def of(self, value: ir.Value | None) -> Affine | None:
        """Return the expression of ``value``, or None."""

    def operand(self, node: ir.Node, index: int) -> Affine | None:
        """Return the expression of input ``index``."""

    def scalar(self, value: ir.Value | None) -> Affine | None:
        """Return the expression of the one element of ``value``, without axes, or None."""

    def truth(self, value: ir.Value | None) -> bool | None:
        """Whether every element of a boolean is true, or false, in every step; None where neither is known."""

    def dim(self, value: ir.Value, axis: int) -> Affine | None:
        """Return one dimension of a value of known rank; None where it may change from step to step."""
