import pytest

from rewrites.scan_form import scalar_replacement
from tests.rewrites.harness import becomes, loop, scan, stays

PACKED = {
    "inputs": "float[2,4] s, float[2,2] x",
    "outputs": "float[2,4] s1, float[2,2] y",
    "given": "float[2,4] s0, float[3,2,2] xs",
    "operands": "s0, xs",
    "outer": "z, ys",
    "results": "float[2,4] z, float[3,2,2] ys",
}
NEXT = "h1 = Tanh (d)  d1 = Add (h, x)  s1 = Concat <axis = -1> (h1, d1)  y = Mul (h, d)"
READS = {
    "Split": "h, d = Split <axis = 1, num_outputs = 2> (s)",
    "Slice": "zero = Constant <value_ints = [0]> ()  two = Constant <value_ints = [2]> ()  four = Constant <value_ints = [9]> ()"
    "  one = Constant <value_ints = [1]> ()  h = Slice (s, zero, two, one)  d = Slice (s, two, four, one)",
}


def test_a_state_of_two_parts_becomes_two_states() -> None:
    becomes(
        scalar_replacement,
        scan(f"{READS['Split']} {NEXT}", **PACKED),
        """g (float[2,4] s0, float[3,2,2] xs) => (float[2,4] z, float[3,2,2] ys)
        <int64[1] c1_start = {0}, int64[1] two = {2}, int64[1] one = {1}, int64[1] four = {4}> {
            h0 = Slice (s0, c1_start, two, one)  c0 = Slice (s0, two, four, one)
            hn, cn, ys = Scan <num_scan_inputs = 1, body = b (h, d, x) => (h1, d1, y) {
                h1 = Tanh (d)  d1 = Add (h, x)  s1 = Concat <axis = -1> (h1, d1)  y = Mul (h, d) }> (h0, c0, xs)
            z = Concat <axis = 1> (hn, cn) }""",
    )


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", [scan, loop])
def test_the_numbers_stay(read, write) -> None:
    if write is scan:
        becomes(scalar_replacement, scan(f"{READS[read]} {NEXT}", **PACKED), None)
    else:
        becomes(
            scalar_replacement,
            loop(
                f"{READS[read]} x = Gather (xs, i)  {NEXT}",
                inputs="float[2,4] s",
                outputs=PACKED["outputs"],
                given=PACKED["given"],
                operands="s0",
                results="float[2,4] z, float[N,2,2] ys",
            ),
            None,
        )


def test_a_part_may_be_given_out_as_it_was_and_change_places() -> None:
    both = PACKED | {"outputs": "float[2,4] s1, float[2,2] y"}
    becomes(
        scalar_replacement, scan(f"{READS['Split']}  d1 = Add (d, x)  s1 = Concat <axis = 1> (d1, h)  y = Identity (h)", **both)
    )


STACKED = "h2 = Unsqueeze (h1, first)  d2 = Unsqueeze (d1, first)  s1 = Concat <axis = 0> (h2, d2)"


def test_parts_that_are_stacked_are_read_by_gather() -> None:
    becomes(
        scalar_replacement,
        scan(
            f"""zero = Constant <value_int = 0> ()  one = Constant <value_int = -1> ()  first = Constant <value_ints = [0]> ()
            h = Gather (s, zero)  d = Gather (s, one)  h1 = Tanh (d)  d1 = Add (h, x)  {STACKED}  y = Mul (h, d)""",
            **PACKED
            | {
                "inputs": "float[2,2,2] s, float[2,2] x",
                "outputs": "float[2,2,2] s1, float[2,2] y",
                "given": "float[2,2,2] s0, float[3,2,2] xs",
                "results": "float[2,2,2] z, float[3,2,2] ys",
            },
        ),
        None,
    )


def test_what_else_reads_the_state_reads_its_parts_joined() -> None:
    sums = PACKED | {"outputs": "float[2,4] s1, float[1,1] y", "results": "float[2,4] z, float[3,1,1] ys"}
    body = f"{READS['Split']}  h1 = Tanh (d)  d1 = Add (h, x)  s1 = Concat <axis = -1> (h1, d1)  e = Exp (s)  y = ReduceSum (e)"
    becomes(scalar_replacement, scan(body, **sums), None)


@pytest.mark.parametrize(
    "body",
    [
        "h, d = Split <axis = 0, num_outputs = 2> (s)  h1 = Concat <axis = 0> (h, d)  s1 = Concat <axis = 1> (x, x)  y = Identity (x)",
        "one = Constant <value_ints = [1]> ()  five = Constant <value_ints = [5]> ()  r = Slice (s, one, five, one)"
        "  x1, x2 = Split <axis = 1, num_outputs = 2> (x)  s1 = Concat <axis = 1> (r, x1)  y = Identity (x)",
        "s1 = Concat <axis = 1> (x, x)  y = Identity (x)",
        f"{READS['Split']}  h1 = Add (h, x)  s1 = Add (s, s)  y = Identity (h1)",
    ],
    ids=["read along another axis", "a shift", "never read", "not put together"],
)
def test_a_near_miss_stays(body) -> None:
    stays(scalar_replacement, scan(body, **PACKED))


def test_a_row_of_a_batch_is_left_alone() -> None:
    text = """g (float[2,4] s0, float[2,3,4] xs) => (float[2,4] z, float[2,3,4] ys) {
        z, ys = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] x) => (float[4] s1, float[4] y) {
            h, d = Split <axis = 0> (s)  s1 = Concat <axis = 0> (d, h)  y = Add (x, s) }> (, s0, xs) }"""
    stays(scalar_replacement, text, opset=8)
