import pytest

from rewrites.cleanup import unused_scan_inputs
from tests.rewrites.harness import becomes, loop, scan, stays

TWO = {
    "inputs": "float[2] h, float[2] x, float[2] w",
    "attributes": "num_scan_inputs = 2",
    "given": "float[2] s, float[3,2] xs, float[3,2] ws",
    "operands": "s, xs, ws",
}
SAME = TWO | {"operands": "s, xs, xs"}


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_a_scan_input_nobody_reads_goes(opset: int) -> None:
    becomes(
        unused_scan_inputs,
        scan("h1 = Add (h, w) y = Tanh (h)", **TWO),
        """g (float[2] s, float[3,2] xs, float[3,2] ws) => (float[2] z, float[3,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, w) => (h1, y) { h1 = Add (h, w)  y = Tanh (h) }> (s, ws) }""",
        opset=opset,
    )


def test_what_is_scanned_twice_is_scanned_once() -> None:
    expected = """g (float[2] s, float[3,2] xs, float[3,2] ws) => (float[2] z, float[3,2] ys) {
        z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (x) }> (s, xs) }"""
    becomes(unused_scan_inputs, scan("h1 = Add (h, w) y = Tanh (x)", **SAME), expected)
    becomes(unused_scan_inputs, scan("h1 = Add (h, w) y = Tanh (w)", **SAME), expected)


def test_what_is_scanned_both_ways_is_scanned_twice() -> None:
    both = SAME | {"attributes": "num_scan_inputs = 2, scan_input_directions = [0, 1]"}
    stays(unused_scan_inputs, scan("h1 = Add (h, w) y = Tanh (x)", **both))


def test_what_is_scanned_along_two_axes_is_scanned_twice() -> None:
    square = SAME | {"attributes": "num_scan_inputs = 2, scan_input_axes = [0, 1]", "given": "float[2] s, float[2,2] xs"}
    stays(unused_scan_inputs, scan("h1 = Add (h, w) y = Tanh (x)", **square, results="float[2] z, float[2,2] ys"))


def test_attributes_stay_with_their_inputs() -> None:
    three = {
        "inputs": "float[2] h, float[2] x, float[2] w, float[2] v",
        "attributes": "num_scan_inputs = 3, scan_input_axes = [0, 0, 1], scan_input_directions = [0, 0, 1]",
        "given": "float[2] s, float[3,2] xs, float[3,2] ws, float[2,3] vs",
        "operands": "s, xs, ws, vs",
    }
    becomes(
        unused_scan_inputs,
        scan("h1 = Add (h, v) y = Tanh (x)", **three),
        scan(
            "h1 = Add (h, v) y = Tanh (x)",
            **three
            | {
                "inputs": "float[2] h, float[2] x, float[2] v",
                "attributes": "num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1]",
                "operands": "s, xs, vs",
            },
        ),
    )


def test_one_scan_input_stays_the_smallest() -> None:
    sizes = TWO | {"inputs": "float[2] h, float[9] x, float w", "given": "float[2] s, float[3,9] xs, float[3] ws"}
    becomes(
        unused_scan_inputs,
        scan("h1 = Add (h, h) y = Tanh (h)", **sizes),
        """g (float[2] s, float[3,9] xs, float[3] ws) => (float[2] z, float[3,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, w) => (h1, y) { h1 = Add (h, h)  y = Tanh (h) }> (s, ws) }""",
    )
    stays(unused_scan_inputs, scan("h1 = Add (h, h) y = Tanh (h)"))


def test_one_that_tells_the_number_of_steps_stays_in_preference() -> None:
    sizes = TWO | {"inputs": "float[2] h, float[9] x, float w", "given": "float[2] s, float[3,9] xs, float[T] ws"}
    after, _ = becomes(unused_scan_inputs, scan("h1 = Add (h, h) y = Tanh (h)", **sizes), T=3)
    assert list(after.graph.node[0].input) == ["s", "xs"]


def test_a_scan_input_read_in_a_branch_or_returned_stays() -> None:
    branches = "then_branch = p () => (float[2] u) { u = Neg (x) }, else_branch = q () => (float[2] v) { v = Abs (h) }"
    given = TWO["given"] + ", bool t"
    stays(unused_scan_inputs, scan(f"h1 = Add (h, w) y = If (t) <{branches}>", **TWO | {"given": given}))
    returned = TWO | {"outputs": "float[2] h1, float[2] x"}
    stays(unused_scan_inputs, scan("h1 = Add (h, w)", **returned))


def test_an_opset_8_scan_loses_them_too() -> None:
    batched = TWO | {
        "given": "float[B,2] s, float[B,T,2] xs, float[B,T,2] ws",
        "operands": ", s, xs, ws",
        "attributes": "num_scan_inputs = 2, directions = [0, 1]",
        "results": "float[B,2] z, float[B,T,2] ys",
    }
    one = batched | {
        "inputs": "float[2] h, float[2] w",
        "operands": ", s, ws",
        "attributes": "num_scan_inputs = 1, directions = [1]",
    }
    becomes(
        unused_scan_inputs, scan("h1 = Add (h, w) y = Tanh (h)", **batched), scan("h1 = Add (h, w) y = Tanh (h)", **one), opset=8
    )


def test_a_loop_has_none() -> None:
    stays(unused_scan_inputs, loop("h1 = Add (h, h) y = Tanh (h)"))
