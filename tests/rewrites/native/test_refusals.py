"""What keeps a loop from having a plan, and what does not."""

import pytest

from tests.rewrites.harness import scan
from tests.rewrites.native.harness import refusal, same_numbers

BOTH = "h1 = Add (h, a) y = Identity (h1)"

DIVIDES_IN_BRANCH = """n = Cast <to = 7> (x) m = Cast <to = 7> (h)
    k = If <then_branch = t () => (int64[2] k1) { k1 = OPERATOR (n, m) }, else_branch = e () => (int64[2] k2) { k2 = Identity (n) }> (flag)"""


@pytest.mark.parametrize("divide", ["k = Div (n, two)", "k = Div (n, m)", "k = Mod (n, two)", "k = Mod <fmod = 1> (n, two)"])
def test_a_division_of_integers_has_a_plan(divide: str) -> None:
    inside = f"n = Cast <to = 7> (x) f = Exp (h) g = Cast <to = 7> (f) m = Add (g, two) {divide} a = Cast <to = 1> (k) {BOTH}"
    same_numbers(scan(inside, given="float[2] s, float[3,2] xs", weights="int64 two = {2}"))


def test_a_branch_may_divide_integers_by_a_constant_that_is_not_zero() -> None:
    inside = f"c = ReduceMax <keepdims = 0> (x) o = Greater (c, half) {DIVIDES_IN_BRANCH} a = Cast <to = 1> (k) {BOTH}"
    inside = inside.replace("OPERATOR (n, m)", "Div (n, two)").replace("(flag)", "(o)")
    same_numbers(scan(inside, given="float[2] s, float[3,2] xs", weights="int64 two = {2}, float half = {0.5}"))


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("a = Asinh (x)", "NATIVE-OPERATOR"),
        ("k = Cast <to = 5> (x) a = Cast <to = 1> (k)", "NATIVE-TYPE"),
        ("k = Cast <to = 11> (x) e = Exp (k) a = Cast <to = 1> (e)", "NATIVE-TYPE"),
        ("k = Cast <to = 7> (x) e = ReduceSum (k) a = Cast <to = 1> (e)", "NATIVE-TYPE"),
        ("k = Cast <to = 7> (x) e = Pow (k, two) a = Cast <to = 1> (e)", "NATIVE-TYPE"),
        ("k = Cast <to = 7> (x) e = ReduceLogSumExp (k) a = Cast <to = 1> (e)", "NATIVE-TYPE"),
        ("e = Mod (x, h) a = Identity (e)", "NATIVE-FORM"),
        ("n = Cast <to = 7> (x) m = Cast <to = 7> (h) k = Mod <fmod = 1> (n, m) a = Cast <to = 1> (k)", "NATIVE-FORM"),
        *((f"{DIVIDES_IN_BRANCH.replace('OPERATOR', op)} a = Cast <to = 1> (k)", "NATIVE-FORM") for op in ("Div", "Mod")),
        ('a = Einsum <equation = "i,i,i->i"> (x, h, w)', "NATIVE-FORM"),
        ('a = Einsum <equation = "i,j->i"> (x, h)', "NATIVE-FORM"),
        ('a = Einsum <equation = "...,i->i"> (x, h)', "NATIVE-FORM"),
        ("a = Clip (x, w)", "NATIVE-FORM"),
        ("a = ReduceSum <noop_with_empty_axes = 1> (x)", "NATIVE-FORM"),
        ("a = Reshape (x, q)", "NATIVE-FORM"),
        ("a = ReduceSum (x, q)", "NATIVE-FORM"),
        ("n, a = LayerNormalization (x, w) h1 = Add (h, n)", "NATIVE-FORM"),
    ],
)
def test_an_operator_that_plans_do_not_have_refuses_the_loop(inside: str, code: str) -> None:
    body = inside if "h1 =" in inside else f"{inside} h1 = Add (h, a)"
    given = "float[2] s, float[3,2] xs, float[2] w, float low, int64[1] q, bool flag"
    y = "y = Add (x, a)" if "n, a" not in inside else "y = Add (n, a)"
    assert refusal(scan(f"{body} {y}", given=given, weights="float half = {0.5}, int64 two = {2}"), 20) == code


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (
            {
                "given": "float16[2] s, float16[3,2] xs",
                "inputs": "float16[2] h, float16[2] x",
                "outputs": "float16[2] h1, float16[2] y",
                "results": "float16[2] z, float16[3,2] ys",
            },
            "NATIVE-TYPE",
        ),
        ({"attributes": "num_scan_inputs = 1, scan_input_axes = [1]", "given": "float[2] s, float[2,3] xs"}, "NATIVE-FORM"),
        ({"attributes": "num_scan_inputs = 1, scan_output_axes = [1]", "results": "float[2] z, float[2,3] ys"}, "NATIVE-FORM"),
    ],
)
def test_ports_that_plans_do_not_have_refuse_the_loop(changed: dict[str, str], code: str) -> None:
    results = {} if "results" in changed else {"results": "float[2] z, float[3,2] ys"}
    inside = "h1 = Tanh (h) y = Exp (x)"
    assert refusal(scan(inside, **{**results, **changed})) == code


def test_a_captured_value_of_another_type_or_of_unknown_shape_refuses_the_loop() -> None:
    inside = "a = Add (x, w) h1 = Add (h, a) y = Identity (h1)"
    assert refusal(scan(inside, given="float[2] s, float[3,2] xs, float[N] w")) == "NATIVE-SHAPE"
    cast = "a = Cast <to = 1> (w) h1 = Add (h, a) y = Identity (h1)"
    assert refusal(scan(cast, given="float[2] s, float[3,2] xs, float16[2] w")) == "NATIVE-TYPE"


def test_a_movement_in_no_order_is_few_copies_or_none() -> None:
    def gathered(indices: list[int], size: int) -> str:
        listed = ", ".join(map(str, indices))
        return scan(
            "a = Gather (x, i) h1 = Add (h, a) y = Identity (h1)",
            given=f"float[{len(indices)}] s, float[3,{size}] xs",
            inputs=f"float[{len(indices)}] h, float[{size}] x",
            outputs=f"float[{len(indices)}] h1, float[{len(indices)}] y",
            results=f"float[{len(indices)}] z, float[3,{len(indices)}] ys",
            weights=f"int64[{len(indices)}] i = {{{listed}}}",
        )

    assert [each.op.name for each in same_numbers(gathered([3, 0, 2, 2], 5)).instructions] == ["COPY"] * 4 + ["ADD"]
    assert [each.op.name for each in same_numbers(gathered([8, 7, 6, 5, 4, 3, 2, 1, 0], 9)).instructions] == ["COPY", "ADD"]
    assert refusal(gathered([7 * i * i % 101 for i in range(100)], 101)) == "NATIVE-LIMIT"


def test_a_plan_that_has_no_room_in_its_format_refuses_the_loop() -> None:
    huge = {"given": "float[70000,70000] s, float[3,1] xs", "inputs": "float[70000,70000] h, float[1] x"}
    results = {"outputs": "float[70000,70000] h1, float[1] y", "results": "float[70000,70000] z, float[3,1] ys"}
    assert refusal(scan("h1 = Tanh (h) y = Exp (x)", **huge, **results)) == "NATIVE-LIMIT"
    axes = ",".join(["1"] * 17)
    deep = {"given": f"float[2] s, float[3,{axes}] xs", "inputs": f"float[2] h, float[{axes}] x"}
    results = {"outputs": f"float[2] h1, float[{axes}] y", "results": f"float[2] z, float[3,{axes}] ys"}
    assert refusal(scan("h1 = Tanh (h) y = Exp (x)", **deep, **results)) == "NATIVE-LIMIT"


def test_a_bool_that_a_reduction_gives_is_none_for_a_plan() -> None:
    inside = "p = Greater (h, x) q = ReduceMax <keepdims = 1> (p) y = Cast <to = 1> (q) h1 = Add (h, x)"
    assert refusal(scan(inside, outputs="float[2] h1, float[1] y", results="float[2] z, float[3,1] ys"), 20) == "NATIVE-TYPE"
