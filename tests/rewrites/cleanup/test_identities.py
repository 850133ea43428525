import pytest

from rewrites.cleanup import dead_code, identities, pass_through_states
from tests.rewrites.harness import becomes, loop, scan, stays

PLAIN = """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) {
    z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (h) }> (s, xs) }"""


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_copies_between_nodes_go(opset: int) -> None:
    becomes(identities, scan("a = Identity (x) a2 = Identity (a) h1 = Add (h, a2) y = Tanh (h)"), PLAIN, opset=opset)


def test_a_copy_of_a_result_returned_in_its_place_goes() -> None:
    becomes(identities, scan("a = Add (h, x) h1 = Identity (a) b = Tanh (h) b2 = Identity (b) y = Identity (b2)"), PLAIN)


def test_a_cast_to_the_type_a_value_has_goes() -> None:
    becomes(identities, scan("a = Cast <to = 1> (x) h1 = Add (h, a) y = Tanh (h)"), PLAIN)


def test_a_cast_to_another_type_stays() -> None:
    stays(identities, scan("a = Cast <to = 11> (x) a1 = Cast <to = 1> (a) h1 = Add (h, a1) y = Tanh (h)"))


def test_a_copy_that_gives_an_output_a_node_of_its_own_stays() -> None:
    stays(identities, scan("h1 = Identity (h) y = Identity (x)"))
    stays(identities, scan("h1 = Add (h, x) y = Identity (h1)"))
    stays(identities, scan("h1 = Add (h, x) y = Identity (s)"))


def test_what_reads_a_copy_that_stays_reads_its_source() -> None:
    becomes(identities, scan("y = Identity (x) h1 = Add (h, y)"), scan("y = Identity (x) h1 = Add (h, x)"))


def test_of_two_copies_returned_one_takes_the_place_of_their_source() -> None:
    becomes(
        identities,
        scan("a = Add (h, x) h1 = Identity (a) y = Identity (a)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Identity (h1) }> (s, xs) }""",
    )


def test_a_branch_reads_the_source_of_a_copy() -> None:
    branches = "then_branch = p () => (float[2] u) { u = Neg (a) }, else_branch = q () => (float[2] v) { v = Abs (a) }"
    becomes(
        identities,
        scan(f"a = Identity (x) h1 = Add (h, x) y = If (t) <{branches}>", given="float[2] s, float[3,2] xs, bool t"),
        scan(f"h1 = Add (h, x) y = If (t) <{branches}>", given="float[2] s, float[3,2] xs, bool t").replace("(a)", "(x)"),
    )


def test_copies_in_a_loop_go_but_that_of_the_step_number() -> None:
    becomes(
        identities,
        loop(
            "g = Identity (h) h1 = Add (g, g) n = Identity (i)",
            outputs="float[2] h1, int64 n",
            outer="z, n0",
            results="float[2] z, int64[N] n0",
        ),
        """g (float[2] s, float[3,2] xs) => (float[2] z, int64[N] n0) <int64 m = {3}> {
            z, n0 = Loop <body = b (i, c, h) => (c1, h1, n) { c1 = Identity (c)  h1 = Add (h, h)  n = Identity (i) }> (m, , s) }""",
    )


ZEROS = "float nil = {0}, float[1] nil1 = {0}, float[1,1] nil11 = {0}, float[2] nil2 = {0, 0}, int64[1] a = {0}, int64[1] b = {1}, int64[1] last = {-1}"
WITH_ZEROS = {"given": "float[2] s, float[3,2] xs", "weights": ZEROS}


@pytest.mark.parametrize("copy", ["c = Add (x, nil)", "c = Add (nil1, x)", "c = Sub (x, nil)"])
def test_sums_with_nothing_go(copy: str) -> None:
    becomes(identities, scan(f"{copy} h1 = Add (h, c) y = Tanh (h)", **WITH_ZEROS), PLAIN)


@pytest.mark.parametrize(
    "copy",
    [
        "u = Unsqueeze (x, a) c = Squeeze (u, a)",
        "u = Unsqueeze (x, last) c = Squeeze (u, b)",
        "u = Unsqueeze (x, a) v = Add (u, nil) c = Squeeze (v, a)",
        "w = Unsqueeze (x, a) u = Squeeze (w, a) v = Unsqueeze (u, b) c = Squeeze (v, last)",
    ],
)
def test_axes_that_come_and_go_are_no_work(copy: str) -> None:
    becomes([identities, dead_code], scan(f"{copy} h1 = Add (h, c) y = Tanh (h)", **WITH_ZEROS), PLAIN)


@pytest.mark.parametrize(
    "other",
    [
        "d = Add (x, nil11) c = Squeeze (d, a)",
        "c = Sub (nil, x)",
        "c = Mul (x, nil)",
        "c = Add (x, nil2)",
        "u = Unsqueeze (x, b) d = Squeeze (u) c = Add (d, s)",
    ],
)
def test_what_changes_numbers_or_shapes_stays(other: str) -> None:
    stays(identities, scan(f"{other} h1 = Add (h, c) y = Tanh (h)", **WITH_ZEROS))


def test_a_bool_that_was_a_number_in_between_is_read_itself() -> None:
    kept = "h1 = Where (p, h, x) y = Tanh (h)"
    text = scan(f"p = Less (h, x) n = Cast <to = 7> (p) q = Cast <to = 9> (n) {kept.replace('(p,', '(q,')}")
    becomes([identities, dead_code], text, scan(f"p = Less (h, x) {kept}"))
    stays(identities, scan(f"n = Cast <to = 7> (x) p = Cast <to = 9> (n) {kept}"))


def test_a_state_that_is_copied_by_arithmetic_is_handed_on() -> None:
    text = scan("u = Unsqueeze (h, a) v = Add (u, nil) h1 = Squeeze (v, a) y = Add (h, x)", **WITH_ZEROS)
    after = """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) {
        ys = Scan <num_scan_inputs = 1, body = b (x) => (y) { y = Add (s, x) }> (xs) z = Identity (s) }"""
    becomes([identities, dead_code, pass_through_states], text, after)
