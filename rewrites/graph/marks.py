"""Facts that nodes, values and graphs carry while a model is rewritten; they never leave it.

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
        """What it carries."""


@dataclass(frozen=True)
class Mark(Generic[T]):
    """A fact by its ``key``."""

    key: Hashable

    def put(self, bearer: Marked, fact: T) -> None:
        """Let ``bearer`` carry the fact."""
        bearer.meta[self.key] = fact

    def put_new(self, bearer: Marked, fact: T) -> T:
        """Let ``bearer`` carry the fact where it carries none of this kind; return what it carries then."""
        kept: T = bearer.meta.setdefault(self.key, fact)
        return kept

    def of(self, bearer: Marked) -> T | None:
        """Return what ``bearer`` carries, or None."""
        fact: T | None = bearer.meta.get(self.key)
        return fact

    def on(self, bearer: Marked) -> bool:
        """Return True if ``bearer`` carries such a fact."""
        return self.key in bearer.meta

    def take(self, bearer: Marked) -> T | None:
        """Return what ``bearer`` carries, or None, and let it carry it no more."""
        fact: T | None = bearer.meta.pop(self.key, None)
        return fact


def carry(old: Marked, new: Marked) -> None:
    """Let ``new``, which is a copy of ``old`` or stands for it, carry what it carries."""
    new.meta.update(old.meta)


REPORT = Mark[LoopReport]("ortscan.report")  # on a loop or recurrent node: the entry of the report that is about it
UNROLLED_FROM = Mark[LoopReport]("ortscan.written out of")  # on a node: the entry of the loop whose steps it is one of
WAS_REFUSED = Mark[bool]("ortscan.was_refused")  # on a recurrent node: onnxruntime would not have run what it was made from
UNSHIELDED = Mark[bool]("ortscan.unshielded")  # on a recurrent node of the model's own: it ran without a guard before
GUARDED = Mark[bool]("ortscan.guarded")  # on a recurrent node: it is under an If for sequences without steps or rows
ROWS_WITHOUT_STEPS = Mark[bool]("ortscan.rows_without_steps")
"""On a recurrent node: its rows without steps end in their initial states."""

ROWS_OF_STEPS = Mark[bool]("ortscan.rows_of_steps")  # on a recurrent node: its rows are the steps of a loop that it was in
BLOCKS = Mark[bool]("ortscan.blocks")  # on a Scan: each step works on a block of the original steps
OVER_BLOCKS = "over_blocks"  # what the name of the body of such a Scan begins with, where who reads the model anew is to know that
ONE_BLOCK = Mark[bool]("ortscan.one_block")  # on a loop: it runs over the steps of one block, and others before and after it
ROLLED_UP = Mark[bool]("ortscan.rolled_up")  # on a Scan: its steps were written out in the model
ASSUMED_SIZE = Mark[int]("ortscan.assumed_size")
"""On a loop: what each size that is not known counts as, since the loop runs where they are no larger."""

IS_NARROW = Mark[bool]("ortscan.is_narrow")  # on a loop: it runs only if its states are narrow, which an If around it checks
STACK_BYTES = Mark[int]("ortscan.stacks")  # on a loop: how many bytes of stacks exist while it runs
STACK_AXIS = Mark[int]("ortscan.stack_axis")  # on a node: it stacks the steps of an unrolled loop along this axis
EMPTY_SIZES = Mark[list[Any]]("ortscan.sizes_without_steps")
"""On a Loop: the sizes of each of its stacked results where it makes no step."""

BOUND_NAMES = Mark[dict[Any, Any]]("ortscan.names_as_bounds")
"""On a value: its names in the bodies that hold it as a bound of a Slice."""

PARTING_IDENTITY = Mark[Any]("ortscan.parting_identity")
"""On a node: the Identity that parts the two operands of an outer product, while it is away."""

QUANTIZES_OUTPUT = Mark[Any]("ortscan.quantizes_an_output")
"""On a node: the graph whose output it quantizes in the model as it came."""

QUANTIZES_WEIGHTS = Mark[bool]("ortscan.quantizes_weights")
"""On the main graph: onnxruntime quantizes weights of the model as it came."""

CONDITION_OF_STEPS = Mark[bool]("ortscan.has_steps")  # on a branch: it runs for one step or more


def hand_on(old: ir.Node, new: ir.Node) -> None:
    """Let ``new`` stand for the loop that ``old`` is or stands for."""
    entry = REPORT.of(old)
    if entry is not None:
        REPORT.put(new, entry)


def mark_unrolled(nodes: Iterable[ir.Node], loop: ir.Node) -> None:
    """Note that ``nodes`` are the steps of ``loop``, where they are not already those of a loop inside it."""
    entry = REPORT.of(loop)
    if entry is not None:
        for node in nodes:
            UNROLLED_FROM.put_new(node, entry)
