"""Marks: facts attached to nodes, values and graphs while a model is rewritten.

Marks are never written to a file. A new node has no marks. If a new node replaces or copies an old node, ``carry`` copies the marks
of the old node to the new node.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import onnx_ir as ir

from rewrites.base.report import LoopReport

__all__ = [
    "ASSUMED_SIZE",
    "BLOCKS",
    "BOUND_NAMES",
    "CONDITION_OF_STEPS",
    "EMPTY_SIZES",
    "GUARDED",
    "IS_NARROW",
    "ONE_BLOCK",
    "OVER_BLOCKS",
    "OVER_ROWS",
    "PARTING_IDENTITY",
    "QUANTIZES_OUTPUT",
    "QUANTIZES_WEIGHTS",
    "REPORT",
    "ROLLED_UP",
    "ROWS_OF_STEPS",
    "ROWS_WITHOUT_STEPS",
    "STACK_AXIS",
    "STACK_BYTES",
    "UNROLLED_FROM",
    "UNSHIELDED",
    "WAS_REFUSED",
    "Mark",
    "Marked",
    "carry",
    "hand_on",
    "mark_unrolled",
]


T = TypeVar("T")


class Marked(Protocol):
    """A node, value or graph."""

    @property
    def meta(self) -> Any:
        """Return a dictionary that maps the keys of marks to the recorded facts."""


@dataclass(frozen=True)
class Mark(Generic[T]):
    """A kind of fact that can be recorded on nodes, values or graphs. ``key`` identifies the kind."""

    key: Hashable

    def put(self, bearer: Marked, fact: T) -> None:
        """Attach ``fact`` to ``bearer``."""
        bearer.meta[self.key] = fact

    def put_new(self, bearer: Marked, fact: T) -> T:
        """Attach ``fact`` unless ``bearer`` already has a fact of this kind.

        Return the fact that ``bearer`` had before, or ``fact`` if it had none.
        """
        kept: T = bearer.meta.setdefault(self.key, fact)
        return kept

    def of(self, bearer: Marked) -> T | None:
        """Return the fact of this kind attached to ``bearer``, or None if it has none."""
        fact: T | None = bearer.meta.get(self.key)
        return fact

    def on(self, bearer: Marked) -> bool:
        """Return True if ``bearer`` has a fact of this kind."""
        return self.key in bearer.meta

    def take(self, bearer: Marked) -> T | None:
        """Remove the fact of this kind from ``bearer`` and return it, or None if it has none."""
        fact: T | None = bearer.meta.pop(self.key, None)
        return fact


def carry(old: Marked, new: Marked) -> None:
    """Copy all facts of ``old`` to ``new``, the copy or replacement of ``old``."""
    new.meta.update(old.meta)


REPORT = Mark[LoopReport]("ortscan.report")  # on a loop or recurrent node: its entry in the report
UNROLLED_FROM = Mark[LoopReport]("ortscan.written out of")  # on a node of an unrolled step: the report entry of the loop
WAS_REFUSED = Mark[bool]("ortscan.was_refused")  # on a recurrent node: onnxruntime could not run the original node
UNSHIELDED = Mark[bool]("ortscan.unshielded")  # on a recurrent node of the original model: it ran without a guard
GUARDED = Mark[bool]("ortscan.guarded")  # on a recurrent node: it is under an If for sequences without steps or rows
ROWS_WITHOUT_STEPS = Mark[bool]("ortscan.rows_without_steps")
"""On a recurrent node: a row whose sequence length is 0 returns its initial state."""

ROWS_OF_STEPS = Mark[bool]("ortscan.rows_of_steps")  # on a recurrent node: it may run without rows, unlike the original node
BLOCKS = Mark[bool]("ortscan.blocks")  # on a Scan: each step works on a block of the original steps
OVER_BLOCKS = "over_blocks"  # the name prefix of the body of a Scan over blocks, which marks it in a reloaded model
OVER_ROWS = Mark[bool]("ortscan.over_rows")  # on a Scan: it runs the rows of an opset-8 Scan, not its steps
ONE_BLOCK = Mark[bool]("ortscan.one_block")  # on a loop: it runs the steps of one block
ROLLED_UP = Mark[bool]("ortscan.rolled_up")  # on a Scan: its steps were unrolled in the original model
ASSUMED_SIZE = Mark[int]("ortscan.assumed_size")
"""On a loop: the assumed size of unknown dimensions. The loop runs only if they are at most this large."""

IS_NARROW = Mark[bool]("ortscan.is_narrow")  # on a loop: an If around it checks that its states are narrow
STACK_BYTES = Mark[int]("ortscan.stacks")  # on a loop: the bytes of stacks that exist while it runs
STACK_AXIS = Mark[int]("ortscan.stack_axis")  # on a node: it stacks the steps of an unrolled loop along this axis
EMPTY_SIZES = Mark[list[Any]]("ortscan.sizes_without_steps")
"""On a Loop: the sizes of each of its stacked results if it runs no step."""

BOUND_NAMES = Mark[dict[Any, Any]]("ortscan.names_as_bounds")
"""On a value: its names in the bodies in which it is a bound of a Slice."""

PARTING_IDENTITY = Mark[Any]("ortscan.parting_identity")
"""On a node: the removed Identity of an outer product (see ``cleanup/parted_products.py``)."""

QUANTIZES_OUTPUT = Mark[Any]("ortscan.quantizes_an_output")
"""On a node: the graph whose output it quantizes in the original model."""

QUANTIZES_WEIGHTS = Mark[bool]("ortscan.quantizes_weights")
"""On the main graph: onnxruntime quantizes weights of the original model."""

CONDITION_OF_STEPS = Mark[bool]("ortscan.has_steps")  # on a branch: it runs for one step or more


def hand_on(old: ir.Node, *new: ir.Node) -> None:
    """Attach the report entry of ``old`` to the nodes ``new`` that have none.

    Call this function if ``new`` replace ``old``, so that the entry of a loop in the original model follows the loop.
    """
    entry = REPORT.of(old)
    if entry is not None:
        for node in new:
            REPORT.put_new(node, entry)


def mark_unrolled(nodes: Iterable[ir.Node], loop: ir.Node) -> None:
    """Mark ``nodes`` as nodes of the unrolled steps of ``loop``.

    A node that is already marked as a node of an unrolled inner loop keeps its mark.
    """
    entry = REPORT.of(loop)
    if entry is not None:
        for node in nodes:
            UNROLLED_FROM.put_new(node, entry)
