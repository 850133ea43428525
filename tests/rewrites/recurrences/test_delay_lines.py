"""States that hold the last rows of an input are read from the input."""

import pytest

from rewrites.base.abilities import Abilities
from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.native import native_loop
from rewrites.recurrences import delay_lines
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, scan, stays

SHIFT = "d = Slice (s, first, end, zero) n = Concat <axis = 0> (d, x)"
READ = "y = ReduceSum <keepdims = 0> (n, zero)"


def line(inside: str = f"{SHIFT} {READ}", steps: int | str = 9, size: str = "4,2", rows: str = "1,2", **parts: str) -> str:
    """Return a Scan whose state of ``size`` takes on ``rows`` in each step."""
    return scan(
        inside,
        **{
            "inputs": f"float[{size}] s, float[{rows}] x",
            "outputs": f"float[{size}] n, float[2] y",
            "given": f"float[{size}] s0, float[{steps},{rows}] xs",
            "operands": "s0, xs",
            "results": f"float[{size}] z, float[{steps},2] ys",
            "weights": "int64[1] first = {1}, int64[1] two = {2}, int64[1] zero = {0}, int64[1] last = {-1}, int64[1] end = {9223372036854775807},"
            " int64[3] index = {1, 2, 3}, int64[2] parts = {1, 3}, float half = {0.5}",
        }
        | parts,
    )


NEWEST_FIRST = "d = Slice (s, zero, last, zero) n = Concat <axis = 0> (x, d)"
ALONG_1 = {"size": "2,4", "rows": "2,1"}
OVER_1 = "y = ReduceSum <keepdims = 0> (n, first)"
LINES = {
    "the newest last": line(),
    "of free length": line(steps="T"),
    "the newest first": line(f"{NEWEST_FIRST} {READ}"),
    "the newest first, of free length": line(f"{NEWEST_FIRST} {READ}", steps="T"),
    "two rows a step": line(f"{SHIFT.replace('first', 'two')} {READ}", rows="2,2"),
    "all rows but one": line(
        f"{SHIFT.replace('first', 'three')} {READ}",
        rows="3,2",
        weights="int64[1] three = {3}, int64[1] zero = {0}, int64[1] end = {99}",
    ),
    "by Gather": line(f"d = Gather (s, index) n = Concat <axis = 0> (d, x) {READ}"),
    "by Split": line(f"o, d = Split (s, parts) n = Concat <axis = 0> (d, x) {READ}"),
    "along the last axis": line(f"d = Slice (s, first, end, first) n = Concat <axis = -1> (d, x) {OVER_1}", **ALONG_1),
    "along the last axis, the newest first": line(
        f"d = Slice (s, zero, last, first) n = Concat <axis = 1> (x, d) {OVER_1}", **ALONG_1
    ),
    "before the step": line(f"{SHIFT} y = ReduceSum <keepdims = 0> (s, zero)"),
    "before and after": line(f"{SHIFT} m = Add (n, s) y = ReduceSum <keepdims = 0> (m, zero)"),
    "backwards": line(attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"),
    "backwards and written forwards": line(attributes="num_scan_inputs = 1, scan_input_directions = [1]"),
    "the newest first, backwards": line(
        f"{NEWEST_FIRST} m = Add (n, s) y = ReduceSum <keepdims = 0> (m, zero)",
        attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]",
    ),
    "of computed rows": line(f"t = Tanh (x) {SHIFT.replace('(d, x)', '(d, t)')} {READ}"),
    "without a result of each step": line(f"{SHIFT}", outputs="float[4,2] n", results="float[4,2] z", outer="z"),
}


@pytest.mark.parametrize("way", LINES)
def test_the_states_are_those_of_the_loop(way: str) -> None:
    after, _ = becomes(delay_lines, LINES[way], T=7)
    assert all("s0" not in node.input for node in after.graph.node if node.op_type == "Scan")


def test_no_loop_is_left_if_the_body_has_no_other_state() -> None:
    after, report = apply(line(), [delay_lines, loop_fission])
    assert patches(report) == ["delay-lines", "loop-fission"]
    assert all(node.op_type != "Scan" for node in after.graph.node)


@pytest.mark.parametrize(
    "inside",
    [
        f"t = Mul (x, half) u = Slice (s, zero, first, zero) r = Add (t, u) {SHIFT.replace('(d, x)', '(d, r)')} {READ}",
        f"{SHIFT.replace('(d, x)', '(x, d)')} {READ}",
        f"d = Slice (s, zero, last, zero) n = Concat <axis = 0> (d, x) {READ}",
        f"{SHIFT.replace('(s, first', '(e, first')} {READ}".replace("d =", "e = Mul (s, half) d =", 1),
        f"d = Gather (s, order) n = Concat <axis = 0> (d, x) {READ}",
    ],
    ids=["rows of the state", "the oldest first", "the newest dropped", "decaying", "other order"],
)
def test_other_states_stay(inside: str) -> None:
    stays(delay_lines, line(inside).replace("int64[3] index", "int64[3] order = {2, 1, 3}, int64[3] index"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            line(
                size="4,9000", rows="1,9000", results="float[4,9000] z, float[9,9000] ys", outputs="float[4,9000] n, float[9000] y"
            ),
            "CUMULATIVE-COST",
        ),
        (
            line(
                size="4,1000",
                rows="1,1000",
                steps=100000,
                results="float[4,1000] z, float[100000,1000] ys",
                outputs="float[4,1000] n, float[1000] y",
            ),
            "MEMORY-BUDGET",
        ),
    ],
)
def test_large_states_stay(text: str, code: str) -> None:
    stays(delay_lines, text, code)


def test_states_of_unknown_sizes_stay() -> None:
    stays(delay_lines, line(size="4,N", rows="1,N", results="float[4,N] z, float[9,N] ys", outputs="float[4,N] n, float[N] y"))


def test_strings_stay() -> None:
    stays(delay_lines, line(f"{SHIFT} r = Slice (n, zero, first, zero) y = Squeeze (r, zero)").replace("float[", "string["))


def test_a_loop_with_a_plan_stays() -> None:
    _, report = apply(line(), [delay_lines, native_loop])
    assert patches(report) == ["native-loop"]


def test_a_target_without_if_reads_the_input_too() -> None:
    target = Options(target=Abilities("no branches", frozenset({"Scan"})))
    _, report = apply(line(), [delay_lines], options=target)
    assert patches(report) == ["delay-lines"]
