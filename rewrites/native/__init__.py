"""Loop plans: the body of a Scan as vector operations over known addresses, and the compiler that writes them.

The format is in ``ortscan/docs/LOOP_PLANS.md``; ``plan.py`` has its tables, ``encoding.py`` its words.
"""

from rewrites.native.encoding import decode, encode
from rewrites.native.operations import Op
from rewrites.native.plan import (
    Input,
    InputKind,
    Instruction,
    Operand,
    Output,
    Pack,
    Phase,
    Plan,
    Size,
    State,
    Storage,
    Symbol,
    Value,
    ValueKind,
)

__all__ = [
    "Input",
    "InputKind",
    "Instruction",
    "Op",
    "Operand",
    "Output",
    "Pack",
    "Phase",
    "Plan",
    "Size",
    "State",
    "Storage",
    "Symbol",
    "Value",
    "ValueKind",
    "decode",
    "encode",
]
