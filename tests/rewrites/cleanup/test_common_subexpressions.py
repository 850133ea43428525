import pytest

from rewrites.cleanup import common_subexpressions
from tests.rewrites.harness import becomes, loop, scan, stays


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_equal_work_is_done_once(opset: int) -> None:
    becomes(
        common_subexpressions,
        scan("a = Tanh (x) b = Tanh (x) c = Neg (a) d = Neg (b) h1 = Add (h, c) e = Mul (d, c) y = Exp (e)"),
        scan("a = Tanh (x) c = Neg (a) h1 = Add (h, c) e = Mul (c, c) y = Exp (e)"),
        opset=opset,
    )


DIFFERENT = {
    "operator": "a = Tanh (x) b = Exp (x)",
    "input": "a = Tanh (x) b = Tanh (h)",
    "order": "a = Sub (x, h) b = Sub (h, x)",
    "attribute": "a = Softmax <axis = 0> (x) b = Softmax (x)",
    "number": "a = Elu <alpha = 1.0> (x) b = Elu <alpha = 2.0> (x)",
    "sign of zero": "a = Elu <alpha = 0.0> (x) b = Elu <alpha = -0.0> (x)",
    "type": "k = Constant <value = int32 {0}> () m = Constant <value = int64 {0}> () a = Gather (x2, k) b = Gather (x2, m)",
    "random": "a = RandomUniformLike (x) b = RandomUniformLike (x)",
    "left out": "a = Clip (x, , one) b = Clip (x, one)",
    "results": "a = Dropout (x) b, mask = Dropout (x)",
    "body": "a = If (t) <then_branch = p () => (float[2] u) { u = Neg (x) }, else_branch = q () => (float[2] v) { v = Abs (h) }> "
    "b = If (t) <then_branch = p () => (float[2] u) { u = Neg (x) }, else_branch = q () => (float[2] v) { v = Abs (h) }>",
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_different_work_stays(case: str) -> None:
    text = scan(
        f"{DIFFERENT[case]} h1 = Add (h, a) y = Mul (b, a)",
        given="float[2] s, float[3,2] xs, bool t",
        weights="float one = {1}, float[2,2] x2 = {1, 2, 3, 4}",
    )
    stays(common_subexpressions, text)


def test_a_twin_that_is_a_body_output_stays() -> None:
    stays(common_subexpressions, scan("h1 = Add (h, x) y = Add (h, x)"))


def test_a_twin_of_a_body_output_goes() -> None:
    becomes(common_subexpressions, scan("h1 = Add (h, x) a = Add (h, x) y = Neg (a)"), scan("h1 = Add (h, x) y = Neg (h1)"))


def test_constants_of_equal_bits_are_twins_and_others_are_not() -> None:
    two = "k = Constant <value = float[2] {{1, 2}}> () m = Constant <value = float[2] {{1, {}}}> () h1 = Add (h, k) y = Add (x, m)"
    becomes(
        common_subexpressions, scan(two.format(2)), scan("k = Constant <value = float[2] {1, 2}> () h1 = Add (h, k) y = Add (x, k)")
    )
    stays(common_subexpressions, scan(two.format(3)))


def test_a_branch_reads_the_twin_that_is_left() -> None:
    branches = "then_branch = p () => (float[2] u) {{ u = Neg ({0}) }}, else_branch = q () => (float[2] v) {{ v = Abs (h) }}"
    given = "float[2] s, float[3,2] xs, bool t"
    becomes(
        common_subexpressions,
        scan(f"a = Tanh (x) b = Tanh (x) h1 = Add (h, a) y = If (t) <{branches.format('b')}>", given=given),
        scan(f"a = Tanh (x) h1 = Add (h, a) y = If (t) <{branches.format('a')}>", given=given),
    )


def test_in_a_loop_too() -> None:
    becomes(
        common_subexpressions,
        loop("a = Tanh (h) b = Tanh (h) h1 = Add (h, a) y = Neg (b)"),
        loop("a = Tanh (h) h1 = Add (h, a) y = Neg (a)"),
    )
