import pytest

from rewrites.scan_form import induction_rows
from tests.rewrites.harness import becomes, scan, stays

COUNTING = {
    "inputs": "int64[2] n, float[2] x",
    "outputs": "int64[2] n1, float[2] y",
    "given": "int64[2] n0, float[3,2] xs",
    "operands": "n0, xs",
    "results": "int64[2] z, float[3,2] ys",
    "weights": "int64 one = {1}",
}
READ = "m = Cast <to = 1> (n)  y = Mul (m, x)"


def test_lengths_that_are_counted_down_become_a_scan_input() -> None:
    becomes(
        induction_rows,
        scan(f"n1 = Sub (n, one)  {READ}", **COUNTING),
        """g (int64[2] n0, float[3,2] xs) => (int64[2] z, float[3,2] ys)
        <int64[3] steps = {0, 1, 2}, int64 minus = {-1}, int64[1] first = {0}, int64[2] column = {-1, 1}, int64[1] three = {3}> {
            start = Unsqueeze (n0, first)
            moved = Mul (steps, minus)
            wide = Reshape (moved, column)
            numbers = Add (start, wide)
            gone = Mul (three, minus)
            whole = Squeeze (gone, first)
            z = Add (n0, whole)
            ys = Scan <num_scan_inputs = 2, body = b (x, n) => (y) { m = Cast <to = 1> (n)  y = Mul (m, x) }> (xs, numbers) }""",
    )


@pytest.mark.parametrize("step", ["n1 = Add (n, one)", "n1 = Add (one, n)", "k = Identity (n)  n1 = Sub (k, three)"])
@pytest.mark.parametrize("direction", ["", ", scan_input_directions = [1]"])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_the_numbers_stay(step, direction, kind) -> None:
    given = {key: text.replace("int64", kind) for key, text in COUNTING.items()} | {"attributes": f"num_scan_inputs = 1{direction}"}
    weights = f"{kind} one = {{1}}, {kind}[1] three = {{3}}"
    becomes(induction_rows, scan(f"{step}  {READ}", **given | {"weights": weights}))


@pytest.mark.parametrize(
    "step",
    [
        "n1 = Sub (one, n)",
        "n1 = Add (n, n)",
        "n1 = Mul (n, one)",
        "v = Cast <to = 7> (x)  n1 = Sub (n, v)",
        "n1 = Sub (n, each)",
        "n1 = Sub (n, nothing)",
    ],
)
def test_what_does_not_change_alike_stays(step) -> None:
    weights = "int64 one = {1}, int64[2] each = {1, 2}, int64 nothing = {0}"
    stays(induction_rows, scan(f"{step}  {READ}", **COUNTING | {"weights": weights}))


def test_numbers_that_are_rounded_stay() -> None:
    given = {key: text.replace("int64", "float") for key, text in COUNTING.items()}
    stays(induction_rows, scan(f"n1 = Sub (n, one)  {READ}", **given))
