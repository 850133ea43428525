"""What came of a patch, in types: JSON has it, and where a loop runs is read from it, never from the sentence for people."""

from dataclasses import dataclass

__all__ = ["Made"]


@dataclass(frozen=True)
class Made:
    """What stands in a loop's place.

    ``native``: its recurrent operator, or empty. ``on_cpu``: whether the target leaves that to onnxruntime's CPU. ``under_if``:
    whether a Scan runs in one branch of an If, for one step or more. ``unrolled``: how many steps were written one after the other.
    ``planned``: how many instructions the plan of it has, where it became a call of a function that holds it. ``is_a``: what the
    loop was found to compute.
    """

    native: str = ""
    on_cpu: bool = False
    under_if: bool = False
    unrolled: int = 0
    planned: int = 0
    is_a: str = ""
