"""A stack that is read at one end is not made."""

import pytest

from rewrites.cleanup import unused_results
from rewrites.fission import loop_fission
from rewrites.loop_form import loop_to_scan, trip_count
from rewrites.repair import own_outputs
from rewrites.scan_form import end_steps
from tests.rewrites.apply import apply, patches, read
from tests.rewrites.fission.harness import data, loops_of, outer_ops
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

RULES = [own_outputs, unused_results, end_steps]


def model(read_it: str, body: str, *, steps: str = "5", attributes: str = "", dims: str = "3", opset: int = 18) -> str:
    return f"""main (float[3] h0, float[{steps}, 3] xs) => (float[3] hn, float[{dims}] r) {{
        hn, ys = Scan <num_scan_inputs: int = 1 {attributes}, body: graph = body (float[3] h, float[3] x) => (float[3] h1, float[3] y) {{
            a = Exp(x)  b = Add(a, h)  h1 = Tanh(b)  {body}
        }}> (h0, xs)
        {read_it}
    }}"""


def ends(text: str, *, rules=RULES, opset: int = 18, fires: bool = True, **sizes: int):
    before = read(text, opset)
    feeds = data(before, **sizes)
    after, report = apply(before, rules, feeds=feeds)
    assert_same_numbers(ort_run(after, feeds), run_model(before, feeds))
    assert ("end-steps" in patches(report)) == fires
    return after


GATHER = "i = Constant <value: tensor = int64 {{{}}}> ()  r = Gather <axis: int = {}> ({}, i)"
SLICE = """s = Constant <value: tensor = int64[1] {{{}}}> ()  e = Constant <value: tensor = int64[1] {{{}}}> ()
    z = Constant <value: tensor = int64[1] {{{}}}> ()  q = Slice ({}, s, e, z)  r = Squeeze (q, z)"""
LAST = {
    "Y[-1]": GATHER.format(-1, 0, "ys"),
    "Y[4]": GATHER.format(4, 0, "ys"),
    "Y[-1:]": SLICE.format(-1, 2**63 - 1, 0, "ys"),
    "Y[4:5]": SLICE.format(4, 5, 0, "ys"),
    "Y.T[:, -1]": "t = Transpose (ys)  " + GATHER.format(-1, 1, "t"),
    "Y.T[:, 4:]": "t = Transpose (ys)  u = Identity (t)  " + SLICE.format(4, 9, 1, "u"),
}
FIRST = {"Y[0]": GATHER.format(0, 0, "ys"), "Y[0:1]": SLICE.format(0, 1, 0, "ys")}
BODIES = {
    "the state": "y = Identity (h1)",
    "work on the state": "y = Sin (h1)",
    "work on the state before": "c = Cos (h)  y = Mul (c, h1)",
    "work on what the state is made from": "y = Sin (b)",
    "work on the input": "y = Exp (x)",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("form", [*LAST, *FIRST])
@pytest.mark.parametrize("way", ["0", "1"])
@pytest.mark.parametrize("backwards", ["0", "1"])
def test_the_step_that_is_read_is_computed_from_the_states(body, form, way, backwards):
    attributes = f", scan_input_directions: ints = [{way}], scan_output_directions: ints = [{backwards}]"
    after = ends(model({**LAST, **FIRST}[form], BODIES[body], attributes=attributes))
    (loop,) = loops_of(after)
    assert len(loop.output) - len(loop.input) < 0


def test_the_final_state_is_read_itself():
    assert outer_ops(ends(model(LAST["Y[-1]"], BODIES["the state"]))) == ["Identity", "Scan"]


@pytest.mark.parametrize("opset", [9, 11, 13, 21])
def test_every_opset_has_a_spelling(opset):
    form = (
        "r = ReduceMax <axes: ints = [0], keepdims: int = 0> (q)"
        if opset < 18
        else "z = Constant <value_ints: ints = [0]> ()  r = Squeeze (q, z)"
    )
    if opset == 9:
        text = "q = Slice <starts: ints = [-1], ends: ints = [2147483647], axes: ints = [0]> (ys)  " + form
    else:
        text = LAST["Y[-1]"]
    ends(model(text, BODIES["work on the state"]), opset=opset)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_number_of_steps_may_be_unknown(steps):
    ends(model(LAST["Y[-1:]"], BODIES["work on the state before"], steps="T"), T=steps)


GATHERED = GATHER.replace("  r =", "  v =")
UNTOUCHED = {
    "another step": GATHER.format(1, 0, "ys"),
    "two steps": """s = Constant <value: tensor = int64[1] {-2}> ()  e = Constant <value: tensor = int64[1] {9}> ()
        z = Constant <value: tensor = int64[1] {0}> ()  q = Slice (ys, s, e, z)  r = ReduceMax <keepdims: int = 0> (q, z)""",
    "both ends": GATHERED.format(0, 0, "ys")
    + """  j = Constant <value: tensor = int64 {-1}> ()  w = Gather (ys, j)
        r = Add (v, w)""",
    "all of it": GATHERED.format(-1, 0, "ys") + "  w = ReduceMax <keepdims: int = 0> (ys)  r = Add (v, w)",
    "another axis": "three = Constant <value_ints: ints = [3]> ()  "
    + GATHERED.format(-1, 1, "ys")
    + "  w = ReduceMax <keepdims: int = 0> (v)  r = Expand (w, three)",
}


@pytest.mark.parametrize("form", UNTOUCHED)
def test_what_reads_more_than_one_end_keeps_the_stack(form):
    ends(model(UNTOUCHED[form], BODIES["work on the state"]), fires=False)


def test_random_numbers_are_not_drawn_again():
    text = model(LAST["Y[-1]"], "n = RandomUniformLike (h1)  m = Sub (n, n)  y = Add (m, h1)")
    ends(text, fires=False)


def test_a_loop_that_only_the_first_step_is_read_of_goes():
    text = model(FIRST["Y[0]"], BODIES["work on the state"]).replace("float[3] hn, float[3] r) {", "float[3] r) {")
    assert not loops_of(ends(text))


def test_a_loop_that_maps_goes_where_one_step_is_read():
    text = (
        """main (float[T, 3] xs) => (float[3] r) {
        ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] x) => (float[3] y) { y = Exp (x) }> (xs)
        """
        + LAST["Y[-1]"]
        + "}"
    )
    assert outer_ops(ends(text))[-1] != "Scan"


def test_other_results_stay():
    text = (
        """main (float[3] h0, float[5, 3] xs) => (float[3] hn, float[3] r, float[5, 3] zs) {
        hn, ys, zs = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] h, float[3] x) => (float[3] h1, float[3] y, float[3] z) {
            b = Add(x, h)  h1 = Tanh(b)  y = Sin (h1)  z = Cos (y)
        }> (h0, xs)
        """
        + LAST["Y[-1]"]
        + "}"
    )
    after = ends(text, rules=[*RULES, loop_fission])
    assert len(loops_of(after)[0].output) == 2


def test_a_loop_that_is_no_scan_keeps_its_stack():
    text = (
        """main (int64 m, float[3] h0) => (float[3] hn, float[3] r) {
        t = Constant <value: tensor = bool {1}> ()
        hn, ys = Loop <body: graph = body (int64 i, bool c, float[3] h) => (bool d, float[3] h1, float[3] y) {
            d = Identity (c)  h1 = Tanh (h)  y = Sin (h1)
        }> (m, t, h0)
        """
        + LAST["Y[-1]"]
        + "}"
    )
    before = read(text)
    _, report = apply(before, [trip_count, loop_to_scan, end_steps])
    assert "end-steps" not in patches(report)
