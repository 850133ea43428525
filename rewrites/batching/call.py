"""What a batching rule is given: the operator as it stands in the body, and its operands outside; and what it gives."""

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
    """One operand: ``inner`` is the value of one step (its type and shape are per step), ``value`` stands for all steps.

    Where ``batched``, ``value`` has the steps as an extra axis 0; else it is loop-invariant and has the shape of ``inner``.
    """

    value: ir.Value
    batched: bool
    inner: ir.Value

    @property
    def rank(self) -> int | None:
        """The rank in one step, without the extra axis, as far as the body or what was made outside tells it."""
        rank = rank_of(self.inner)
        if rank is not None:
            return rank
        outside = rank_of(self.value)
        return None if outside is None else outside - self.batched


@dataclass(frozen=True)
class Result:
    """One result: ``value`` has the steps as an extra axis 0 where ``batched``, else it is loop-invariant."""

    value: ir.Value
    batched: bool = True


class Refused(Exception):
    """Carries a reason out of a batching rule; ``batch`` turns it into its answer, so it never leaves this package."""

    def __init__(self, reason: NotApplicable) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Call:
    """One operator to batch.

    ``node``: the operator in the body: attributes, per-step types and shapes. At least one operand is batched.
    ``operands``: one for each input of the node, None where an optional input is absent.
    ``build``: where new nodes go; ``build.opset`` is the opset of what is written (the same as what is read).
    ``steps``: the length of the extra axis as a one-element int64 tensor.
    ``may_be_empty``: whether there may be no steps at all (a Loop may make none; a Scan without steps fails anyway). Then only
    forms are taken that ORT also runs on empty tensors.
    ``captured``: gives the operand for a value that graphs nested in ``node`` capture; by default it is loop-invariant.
    """

    node: ir.Node
    operands: tuple[Operand | None, ...]
    build: Builder
    steps: ir.Value
    may_be_empty: bool = False
    captured: Callable[[ir.Value], Operand] | None = None

    @property
    def opset(self) -> int:
        """The version of the standard operator set."""
        return self.build.opset

    def given(self, index: int) -> Operand | None:
        """Return operand ``index``, or None where it is absent."""
        return self.operands[index] if index < len(self.operands) else None

    def operand(self, index: int) -> Operand:
        """Return operand ``index``, which the operator requires."""
        operand = self.given(index)
        if operand is None:
            raise self.refuse("MALFORMED", f"input {index} is missing")
        return operand

    def batched(self, index: int) -> bool:
        """Return True if operand ``index`` is there and differs between steps."""
        operand = self.given(index)
        return operand is not None and operand.batched

    def value(self, index: int) -> ir.Value | None:
        """Return the value of operand ``index`` for all steps, or None where it is absent."""
        operand = self.given(index)
        return None if operand is None else operand.value

    @property
    def values(self) -> list[ir.Value | None]:
        """The values of all operands for all steps."""
        return [None if operand is None else operand.value for operand in self.operands]

    def rank(self, index: int) -> int:
        """Return the rank of operand ``index`` in one step; refuses where it is not known."""
        operand = self.operand(index)
        if operand.rank is None:
            raise self.refuse("RANK-UNKNOWN", f"the rank of {operand.inner.name!r} is not known")
        return operand.rank

    def same_each_step(self, *indices: int, code: str = "BATCHED-STRUCTURE") -> None:
        """Refuse if one of these operands, which decide the structure of the result, differs between steps."""
        for index in indices:
            if self.batched(index):
                raise self.refuse(code, f"input {index}, {self.operand(index).inner.name!r}, differs between steps")

    def same_weights(self, *indices: int) -> None:
        """Refuse if one of these operands, which one operator can only have one of, differs between steps."""
        self.same_each_step(*indices, code="BATCHED-WEIGHTS")

    def needs_steps(self, why: str) -> None:
        """Refuse where there may be no steps."""
        if self.may_be_empty:
            raise self.refuse("EMPTY-STEPS", f"there may be no steps: {why}")

    def like(self, values: Sequence[ir.Value | None], **changed: Any) -> list[Result]:
        """Emit the operator itself on other inputs, with some attributes changed, and return all its outputs as batched."""
        return [Result(value) for value in self.build.like(self.node, values, **changed)]

    def refuse(self, code: str, detail: str) -> Refused:
        """Make the exception that refuses, to be raised."""
        name = f" {self.node.name!r}" if self.node.name else ""
        return Refused(NotApplicable(code, f"{self.node.op_type}{name}: {detail}"))
