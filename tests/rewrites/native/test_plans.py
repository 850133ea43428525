"""Bodies of loops in, plans out: what is a view, what is joined, where states and results are kept."""

from textwrap import dedent

import pytest

from rewrites.native.plan import Plan
from tests.rewrites.harness import scan
from tests.rewrites.native.harness import listing, same_numbers


def becomes(text: str, expected: str) -> Plan:
    plan = same_numbers(text)
    assert listing(plan) == dedent(expected).strip()
    return plan


def test_a_state_is_updated_in_place() -> None:
    becomes(scan("h1 = Add (h, x) y = Exp (x)"), "h0: in place at 0\nh'0 = ADD h0 x1 over 2\ny0 = EXP x1 over 2")


def test_a_new_state_that_is_stacked_is_the_row_of_the_output() -> None:
    becomes(scan("h1 = Add (h, x) y = Identity (h1)"), "h0: rows of y0\ny0 = ADD h0 x1 over 2")


def test_a_state_that_is_read_after_it_is_written_is_written_later() -> None:
    becomes(
        scan("a = Add (h, x) h1 = Tanh (a) y = Mul (h, h1)"),
        """
        h0: two rows at 0
        t16 = ADD h0 x1 over 2
        h'0 = TANH t16 over 2
        y0 = MUL h0 h'0 over 2
        """,
    )
    becomes(scan("h1 = Tanh (x) y = Exp (h)"), "h0: in place at 0\ny0 = EXP h0 over 2\nh'0 = TANH x1 over 2")


def test_a_state_whose_other_elements_are_read_has_two_rows() -> None:
    becomes(
        scan("a, b = Split <axis = 0, num_outputs = 2> (h) c = Concat <axis = 0> (b, a) h1 = Identity (c) y = Exp (x)"),
        """
        h0: two rows at 0
        h'0[0 0 0 0] = COPY h0[1; 0 0 0 0] over 1
        h'0[1; 0 0 0 0] = COPY h0[0 0 0 0] over 1
        y0 = EXP x1 over 2
        """,
    )


TWO = {
    "inputs": "float[2] h, float[2] g, float[2] x",
    "outputs": "float[2] h1, float[2] g1, float[2] y",
    "given": "float[2] s, float[2] r, float[3,2] xs",
    "operands": "s, r, xs",
    "outer": "z, v, ys",
    "results": "float[2] z, float[2] v, float[3,2] ys",
}


def test_states_that_change_places_have_two_rows_where_they_must() -> None:
    plan = becomes(
        scan("h1 = Identity (g) g1 = Identity (h) y = Add (h, x)", **TWO),
        """
        h0: in place at 0
        h1: two rows at 16
        y0 = ADD h0 x2 over 2
        h'1 = COPY h0 over 2
        h'0 = COPY h1 over 2
        """,
    )
    assert [size.coefficient for size in plan.regions] == [32]


def test_a_state_that_stays_is_not_written() -> None:
    becomes(scan("h1 = Identity (h) y = Add (h, x)"), "h0: in place at 0\ny0 = ADD h0 x1 over 2")


def test_one_result_in_two_places_is_copied_once() -> None:
    becomes(
        scan("h1 = Add (h, x) g1 = Identity (h1) y = Neg (g)", **TWO),
        """
        h0: in place at 0
        h1: in place at 16
        h'0 = ADD h0 x2 over 2
        y0 = NEG h1 over 2
        h'1 = COPY h'0 over 2
        """,
    )


@pytest.mark.parametrize(
    ("sum_of", "op"),
    [
        ("a = Mul (h, w) h1 = Add (a, x)", "MUL_ADD h0 w2 x1"),
        ("a = Mul (h, w) h1 = Add (x, a)", "MUL_ADD h0 w2 x1"),
        ("a = Mul (h, w) h1 = Sub (a, x)", "MUL_SUB h0 w2 x1"),
        ("a = Mul (h, w) h1 = Sub (x, a)", "SUB_MUL h0 w2 x1"),
        ("a = Mul (h, w) b = Mul (x, x) h1 = Add (a, b)", "MUL_ADD_MUL h0 w2 x1 x1"),
        ("a = Mul (h, w) b = Mul (x, x) h1 = Sub (a, b)", "MUL_SUB_MUL h0 w2 x1 x1"),
    ],
)
def test_products_and_sums_are_one_step(sum_of: str, op: str) -> None:
    text = scan(sum_of + " y = Identity (h1)", given="float[2] s, float[3,2] xs, float[2] w")
    becomes(text, f"h0: rows of y0\ny0 = {op} over 2")


LOG_OF_POWERS = "m = Max (h, x) p = Sub (h, m) q = Sub (x, m) e = Exp (p) f = Exp (q) t = Add (e, f) l = Log (t) h1 = Add (m, l)"


@pytest.mark.parametrize(
    "body", [LOG_OF_POWERS, LOG_OF_POWERS.replace("(h, x)", "(x, h)").replace("(e, f)", "(f, e)").replace("(m, l)", "(l, m)")]
)
def test_the_logarithm_of_two_powers_is_one_step(body: str) -> None:
    plan = same_numbers(scan(f"{body} y = Identity (h1)"))
    assert [each.op.name for each in plan.instructions] == ["LOG_ADD_EXP"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("q = Sub (x, m)", "q = Sub (x, h)"), ("(h, m)", "(x, m)"), ("Max", "Min"), ("(m, l)", "(h, l)"), ("(e, f)", "(e, e)")],
)
def test_what_is_no_logarithm_of_two_powers_stays(old: str, new: str) -> None:
    plan = same_numbers(scan(LOG_OF_POWERS.replace(old, new) + " y = Identity (h1)"))
    assert "LOG_ADD_EXP" not in [each.op.name for each in plan.instructions]


def test_a_power_that_is_a_result_too_is_computed_by_itself() -> None:
    plan = same_numbers(scan(LOG_OF_POWERS + " y = Identity (e)"))
    assert "LOG_ADD_EXP" not in [each.op.name for each in plan.instructions]


def test_a_sum_of_products_is_one_step_where_they_lie_side_by_side() -> None:
    def summed(order: str) -> str:
        return scan(
            f"t = Transpose <perm = {order}> (x) p = Mul (h, t) y = ReduceSum <keepdims = 0> (p, k) h1 = Add (h, x)",
            inputs="float[4,4] h, float[4,4] x",
            outputs="float[4,4] h1, float[4] y",
            given="float[4,4] s, float[3,4,4] xs",
            results="float[4,4] z, float[3,4] ys",
            weights="int64[1] k = {1}",
        )

    assert [each.op.name for each in same_numbers(summed("[0, 1]")).instructions] == ["DOT", "ADD"]
    assert [each.op.name for each in same_numbers(summed("[1, 0]")).instructions] == ["COPY", "MUL", "SUM", "ADD"]


def test_a_product_that_is_read_elsewhere_stays() -> None:
    plan = same_numbers(scan("a = Mul (h, x) h1 = Add (a, x) y = Tanh (a)"))
    assert [each.op.name for each in plan.instructions] == ["MUL", "ADD", "TANH"]


def test_a_captured_matrix_is_packed_however_it_lies_and_takes_the_bias() -> None:
    text = scan(
        "u = Unsqueeze (h, k) a = Gemm <transB = 1> (u, w, b) c = Squeeze (a, k) d = Add (c, x) h1 = Tanh (d) y = Identity (h1)",
        given="float[20] s, float[3,20] xs, float[20,20] w, float[20] b",
        inputs="float[20] h, float[20] x",
        outputs="float[20] h1, float[20] y",
        results="float[20] z, float[3,20] ys",
        weights="int64[1] k = {0}",
    )
    plan = becomes(
        text,
        """
        h0: rows of y0
        t0 = GEMM [1 20 20] h0 p0[0 0 0 0] w3 over 1
        t0 = ADD t0 x1 over 20
        y0 = TANH t0 over 20
        """,
    )
    (pack,) = plan.packs
    assert (pack.stride_k.coefficient, pack.stride_n.coefficient) == (1, 20)


def test_what_only_moves_elements_takes_no_step() -> None:
    becomes(
        scan(
            "t = Transpose <perm = [1, 0]> (h) r = Reshape (t, k) a, b = Split <axis = 0, num_outputs = 2> (r) f = Flatten <axis = 0> (a)"
            " e = Expand (f, l) i = Identity (e) h1 = Add (h, i) y = Add (x, b)",
            given="float[2,1] s, float[3,1] xs",
            inputs="float[2,1] h, float[1] x",
            outputs="float[2,1] h1, float[1] y",
            results="float[2,1] z, float[3,1] ys",
            weights="int64[1] k = {2}, int64[2] l = {2, 1}",
        ),
        """
        h0: two rows at 0
        h'0 = ADD h0 h0[0 0 0 0] over 2
        y0[0 0 0 0] = ADD x1[0 0 0 0] h0[1; 0 0 0 0] over 1
        """,
    )


def test_the_parts_of_a_concat_are_computed_in_place() -> None:
    becomes(
        scan(
            "a = Tanh (x) b = Sigmoid (x) y = Concat <axis = 0> (a, b) h1 = Add (h, x)",
            outputs="float[2] h1, float[4] y",
            results="float[2] z, float[3,4] ys",
        ),
        """
        h0: in place at 0
        y0 = TANH x1 over 2
        y0[2; 0 0 0 1] = SIGMOID x1 over 2
        h'0 = ADD h0 x1 over 2
        """,
    )


def test_memory_is_used_again() -> None:
    plan = same_numbers(scan("a = Exp (x) b = Tanh (a) c = Neg (b) d = Add (c, b) h1 = Mul (d, h) y = Sub (d, c)"))
    assert [size.coefficient for size in plan.regions] == [48]


def test_equal_constants_are_one_and_small_captured_ones_are_in_the_plan() -> None:
    plan = same_numbers(
        scan("a = Add (h, k) b = Mul (x, k) h1 = Sub (a, b) y = Add (x, l)", weights="float k = {2}, float l = {2}")
    )
    assert len(plan.constants) == 4
    assert len(plan.inputs) == 2


def test_bools_are_numbers_inside() -> None:
    becomes(
        scan("p = Greater (h, x) q = Not (p) f = Cast <to = 1> (q) h1 = Where (p, h, x) y = Identity (f)"),
        """
        h0: in place at 0
        t16 = GREATER h0 x1 over 2
        y0 = NOT t16 over 2
        h'0 = WHERE t16 h0 x1 over 2
        """,
    )


def test_directions_are_those_of_the_loop() -> None:
    text = scan(
        "h1 = Add (h, x) y = Identity (h1)",
        attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]",
    )
    plan = same_numbers(text)
    assert [each.backwards for each in plan.inputs] == [False, True]
    assert [each.backwards for each in plan.outputs] == [True]
