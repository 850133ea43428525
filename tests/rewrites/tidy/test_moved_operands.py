"""Products that read a Transpose by way of a Cast, across calls of functions and branches of an If."""

import onnx_ir as ir
import pytest

from ortscan.running.crash_risks import may_crash_loading
from rewrites.tidy.moved_operands import functions_with_cast_transposes, has_cast_transpose
from tests.support.quirks import model

TURN = "t = Transpose <perm = [1, 0, 2]> (x)"
F = ', "f": 1'
DOMAIN = '<domain: "f", opset_import: ["": 18]>'
IF = """y = If (c) <then_branch = a () => (float16[?,?,?] u) { u = MatMul (t, w) },
    else_branch = b () => (float16[?,?,?] v) { v = MatMul (t, w) }>"""
SCAN = """y = Scan <num_scan_inputs = 1, body = b (float16[1,2] r) => (float16[1,1] p) { p = MatMul (r, w) }> (t)"""


def read(inside: str, function: str = "", kind: str = "float16") -> ir.Model:
    weights = "<float16[2,1] w = {1, 2}>" if kind == "float16" else "<float[2,1] w = {1, 2}>"
    text = f"g ({kind}[1,3,2] x, bool c) => (y) {weights} {{ {inside} }}"
    return ir.from_proto(model(text + (f" {DOMAIN} {function}" if function else ""), 18, F))


@pytest.mark.parametrize(
    ("inside", "function"),
    [
        ("t = f.turn (x) y = MatMul (t, w)", f"turn (x) => (t) {{ {TURN} }}"),
        (f"{TURN} y = f.product (t, w)", "product (t, w) => (y) { y = MatMul (t, w) }"),
        ("y = f.both (x, w)", f"both (x, w) => (y) {{ {TURN} y = MatMul (t, w) }}"),
        ("s, t = f.turn (x) y = MatMul (t, w)", f"turn (x) => (s, t) {{ s = Neg (x) {TURN} }}"),
        ("t = f.turn <p = [1, 0, 2]> (x) y = MatMul (t, w)", "turn <p> (x) => (t) { t = Transpose <perm: ints = @p> (x) }"),
        (f"t = f.turn (x) {SCAN}", f"turn (x) => (t) {{ {TURN} }}"),
    ],
)
def test_functions_that_hold_a_part_of_the_path_are_named(inside: str, function: str) -> None:
    proto = read(inside, function)
    assert len(functions_with_cast_transposes(proto)) == 1
    assert has_cast_transpose(proto) == ("Scan" not in inside)


def test_a_function_that_only_casts_is_named() -> None:
    proto = read(f"{TURN} d = f.cast (t) y = MatMul (d, w)", "cast (x) => (y) { y = Cast <to = 1> (x) }", "float")
    assert len(functions_with_cast_transposes(proto)) == 1


@pytest.mark.parametrize(
    ("inside", "function"),
    [
        ("t = f.other (x) y = MatMul (t, w)", "other (x) => (t) { t = Neg (x) }"),
        ("s, t = f.turn (x) y = MatMul (s, w)", f"turn (x) => (s, t) {{ s = Neg (x) {TURN} }}"),
    ],
)
def test_other_functions_stay(inside: str, function: str) -> None:
    assert not functions_with_cast_transposes(read(inside, function))


def test_products_of_floats_without_a_cast_are_no_risk() -> None:
    plain = read("t = f.turn (x) y = MatMul (t, w)", f"turn (x) => (t) {{ {TURN} }}", "float")
    assert not has_cast_transpose(plain)
    assert not functions_with_cast_transposes(plain)


@pytest.mark.parametrize(
    "inside",
    [
        f"{TURN} {IF}",
        """t = If (c) <then_branch = a () => (float16[?,?,?] u) { u = Transpose <perm = [1, 0, 2]> (x) },
            else_branch = b () => (float16[?,?,?] v) { v = Identity (x) }> y = MatMul (t, w)""",
        f"{TURN} y = com.microsoft.FusedMatMul (t, w)",
    ],
)
def test_branches_and_fused_products_are_a_risk_when_loading(inside: str) -> None:
    assert may_crash_loading(ir.to_proto(read(inside)))
