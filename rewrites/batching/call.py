"""The input of a batching rule (a node of the body with its operands) and its output (the results)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.builder import Builder
from rewrites.graph.values import rank_of

__all__ = ["Call", "Operand", "Refused", "Result"]


@dataclass(frozen=True)
class Operand:
    """One operand of a node in the body.

    Attributes:
        value: The value that replaces ``inner`` for all steps.
        batched: True if ``value`` has the steps as an extra axis 0. Otherwise, it is loop-invariant and has the shape of ``inner``.
        inner: The value in the body, with the type and the shape that it has in one step.
    """

    value: ir.Value
    batched: bool
    inner: ir.Value

    @property
    def rank(self) -> int | None:
        """Return the rank that the operand has in one step, or None if it is unknown."""
        rank = rank_of(self.inner)
        if rank is not None:
            return rank
        outside = rank_of(self.value)
        return None if outside is None else outside - self.batched


@dataclass(frozen=True)
class Result:
    """One result of a call.

    Attributes:
        value: The value that replaces the output of the node for all steps.
        batched: True if ``value`` has the steps as an extra axis 0. Otherwise, it is loop-invariant.
    """

    value: ir.Value
    batched: bool = True


class Refused(Exception):
    """Raised by a batching rule that does not support a call. ``batch`` catches it and returns ``reason``."""

    def __init__(self, reason: NotApplicable) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Call:
    """One operator to batch, with its operands.

    Args:
        node: The node in the body, with attributes, per-step types and shapes. At least one operand is batched.
        operands: One for each input of the node. None if an optional input is absent.
        build: Collects the new nodes. ``build.opset`` is the opset of the old and the new nodes.
        steps: The number of steps, as a one-element int64 tensor.
        may_be_empty: True if the number of steps may be 0. In this case, rules must only emit nodes that onnxruntime runs on empty
            tensors. False for a Scan, because a Scan with 0 steps fails anyway.
        captured: Returns the operand for a value that a graph nested in ``node`` captures. By default, such a value is
            loop-invariant.
    """

    node: ir.Node
    operands: tuple[Operand | None, ...]
    build: Builder
    steps: ir.Value
    may_be_empty: bool = False
    captured: Callable[[ir.Value], Operand] | None = None

    @property
    def opset(self) -> int:
        """Return the version of the standard operator set."""
        return self.build.opset

    def optional_operand(self, index: int) -> Operand | None:
        """Return operand ``index``, or None if it is absent."""
        return self.operands[index] if index < len(self.operands) else None

    def operand(self, index: int) -> Operand:
        """Return operand ``index``. Raise Refused if it is absent."""
        operand = self.optional_operand(index)
        if operand is None:
            raise self.refuse("MALFORMED", f"input {index} is missing")
        return operand

    def batched(self, index: int) -> bool:
        """Return True if operand ``index`` is present and batched."""
        operand = self.optional_operand(index)
        return operand is not None and operand.batched

    def value(self, index: int) -> ir.Value | None:
        """Return the value of operand ``index`` for all steps, or None if it is absent."""
        operand = self.optional_operand(index)
        return None if operand is None else operand.value

    @property
    def values(self) -> list[ir.Value | None]:
        """Return the values of all operands for all steps."""
        return [None if operand is None else operand.value for operand in self.operands]

    def rank(self, index: int) -> int:
        """Return the per-step rank of operand ``index``. Raise Refused if it is unknown."""
        operand = self.operand(index)
        if operand.rank is None:
            raise self.refuse("RANK-UNKNOWN", f"the rank of {operand.inner.name!r} is not known")
        return operand.rank

    def require_invariant(self, *indices: int, code: str = "BATCHED-STRUCTURE") -> None:
        """Raise Refused if one of the operands ``indices`` is batched.

        These operands determine the structure of the result, so they must be the same in every step. ``code``: the code of the
        reason.
        """
        for index in indices:
            if self.batched(index):
                raise self.refuse(code, f"input {index}, {self.operand(index).inner.name!r}, differs between steps")

    def require_shared(self, *indices: int) -> None:
        """Raise Refused if one of the operands ``indices`` is batched.

        The operator has only one operand of this kind for the whole batch, such as weights. So all steps must share it.
        """
        self.require_invariant(*indices, code="BATCHED-WEIGHTS")

    def require_steps(self, why: str) -> None:
        """Raise Refused if the number of steps may be 0.

        ``why``: the text that follows "there may be no steps:" in the message.
        """
        if self.may_be_empty:
            raise self.refuse("EMPTY-STEPS", f"there may be no steps: {why}")

    def emit(self, values: Sequence[ir.Value | None], **changed: Any) -> list[Result]:
        """Emit the operator of the node with other inputs, and return its outputs as batched results.

        Args:
            values: The inputs.
            **changed: The attributes that differ from the attributes of the node.
        """
        return [Result(value) for value in self.build.like(self.node, values, **changed)]

    def refuse(self, code: str, detail: str) -> Refused:
        """Return the exception that refuses this call. The caller raises it.

        Args:
            code: The code of the reason.
            detail: The reason in words.
        """
        name = f" {self.node.name!r}" if self.node.name else ""
        return Refused(NotApplicable(code, f"{self.node.op_type}{name}: {detail}"))
