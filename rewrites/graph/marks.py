"""Facts attached to nodes, values and graphs while a model is rewritten; they are never written to a file.

A copy of a node, and a node that replaces it, carries all of its marks (``carry``). A node that computes something else carries
none.
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
        """Return its facts."""


@dataclass(frozen=True)
class Mark(Generic[T]):
    """A kind of fact, by its ``key``."""

    key: Hashable

    def put(self, bearer: Marked, fact: T) -> None:
        """Attach the fact to ``bearer``."""
        bearer.meta[self.key] = fact

    def put_new(self, bearer: Marked, fact: T) -> T:
        """Attach the fact to ``bearer`` if it has none of this kind; return the fact that it then has."""
        kept: T = bearer.meta.setdefault(self.key, fact)
        return kept

    def of(self, bearer: Marked) -> T | None:
        """Return the fact of ``bearer``, or None."""
        fact: T | None = bearer.meta.get(self.key)
        return fact

    def on(self, bearer: Marked) -> bool:
        """Return True if ``bearer`` has such a fact."""
        return self.key in bearer.meta

    def take(self, bearer: Marked) -> T | None:
        """Remove the fact of ``bearer`` and return it, or None."""
        fact: T | None = bearer.meta.pop(self.key, None)
        return fact


def carry(old: Marked, new: Marked) -> None:
    """Copy all facts of ``old`` to ``new``, a copy or replacement of it."""
    new.meta.update(old.meta)


REPORT = Mark[LoopReport]("ortscan.report")  # on a loop or recurrent node: its entry in the report
UNROLLED_FROM = Mark[LoopReport]("ortscan.written out of")  # on a node: the entry of the loop to whose steps it belongs
WAS_REFUSED = Mark[bool]("ortscan.was_refused")  # on a recurrent node: onnxruntime could not run the original node
UNSHIELDED = Mark[bool]("ortscan.unshielded")  # on a recurrent node of the original model: it ran without a guard
GUARDED = Mark[bool]("ortscan.guarded")  # on a recurrent node: it is under an If for sequences without steps or rows
ROWS_WITHOUT_STEPS = Mark[bool]("ortscan.rows_without_steps")
"""On a recurrent node: its rows without steps end in their initial states."""

ROWS_OF_STEPS = Mark[bool]("ortscan.rows_of_steps")  # on a recurrent node: its rows are the steps of a loop that it was in
BLOCKS = Mark[bool]("ortscan.blocks")  # on a Scan: each step works on a block of the original steps
OVER_BLOCKS = "over_blocks"  # the prefix of the name of its body, so that this is known after a reload
ONE_BLOCK = Mark[bool]("ortscan.one_block")  # on a loop: it runs the steps of one block
ROLLED_UP = Mark[bool]("ortscan.rolled_up")  # on a Scan: its steps were unrolled in the original model
ASSUMED_SIZE = Mark[int]("ortscan.assumed_size")
"""On a loop: the assumed size of unknown dimensions, because the loop runs only if they are no larger."""

IS_NARROW = Mark[bool]("ortscan.is_narrow")  # on a loop: it runs only if its states are narrow; an If around it checks that
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


def hand_on(old: ir.Node, new: ir.Node) -> None:
    """Let ``new`` replace ``old`` in the report: it gets the entry of the loop that ``old`` is or replaces."""
    entry = REPORT.of(old)
    if entry is not None:
        REPORT.put(new, entry)


def mark_unrolled(nodes: Iterable[ir.Node], loop: ir.Node) -> None:
    """Mark ``nodes`` as steps of ``loop`` unless they are already steps of a loop inside it."""
    entry = REPORT.of(loop)
    if entry is not None:
        for node in nodes:
            UNROLLED_FROM.put_new(node, entry)
