"""Every operator that broadcasts, on operands of ranks 0 to 3, of each of which it may be the one that differs between steps."""

import itertools

import pytest

from rewrites.batching.elementwise import broadcasting
from rewrites.batching.table import _table
from tests.rewrites.batching.harness import BOOL, F32, I32, Case, case, check, refusal, same, steps

OPERATORS = sorted(op for (domain, op), entries in _table().items() if domain == "" and entries[0].rule is broadcasting)
TYPES = {"And": BOOL, "Or": BOOL, "Xor": BOOL, "BitShift": "uint32", "Mod": I32, "StringConcat": "str"}
TYPES |= dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), I32)
RANKS = [(), (3,), (2, 3), (4, 2, 3)]
CORNERS = [((1,), (0,)), ((0,), ()), ((1, 3), (2, 1)), ((4, 1, 1), (2, 3)), ((0, 3), (3,)), ((1, 1), (4, 0, 1)), ((1,), (4, 2, 3))]
KINDS = [(steps, same), (same, steps), (steps, steps)]


def _case(op: str, kinds: tuple, shapes: tuple) -> Case:
    dtype = TYPES.get(op, F32)
    args = {name: kind(dtype, *shape, low=1) for name, kind, shape in zip("xw", kinds, shapes, strict=True)}
    if op == "Where":
        return case("y = Where (c, x, w)", **args, c=kinds[1](BOOL, *shapes[0]))
    attributes = '<direction="LEFT">' if op == "BitShift" else ""
    return case(f"y = {op} {attributes} (x, w)", **args)


def test_there_are_operators_to_test() -> None:
    assert {"Add", "Where", "StringConcat", "Max"} <= set(OPERATORS)


@pytest.mark.parametrize("op", OPERATORS)
def test_all_ranks_and_all_choices_of_what_differs(op: str) -> None:
    check([_case(op, kinds, shapes) for kinds in KINDS for shapes in itertools.product(RANKS, repeat=2)], opset=21, empty=False)


@pytest.mark.parametrize("kinds", KINDS, ids=["left", "right", "both"])
def test_axes_of_size_one_and_zero(kinds: tuple) -> None:
    check([_case(op, kinds, shapes) for op in ("Add", "Less", "Max", "Where", "And") for shapes in CORNERS], opset=18)


@pytest.mark.parametrize("op", OPERATORS)
def test_unknown_ranks_are_refused_where_they_matter(op: str) -> None:
    one = _case(op, (steps, same), ((2, 3), (3,)))
    one.unknown_rank = True
    assert refusal(one, opset=21) == "RANK-UNKNOWN"
