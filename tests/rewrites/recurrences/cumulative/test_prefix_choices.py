"""The larger so far by a choice, and the last value that was taken on: such as the argument of the largest, to the last bit."""

from itertools import product

import numpy as np
import pytest

from rewrites.graph.context import Options
from rewrites.recurrences.cumulative import cumulative
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, scan, stays
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

CHOICES = {
    "larger": "g = Greater (x, h)  h1 = Where (g, x, h)  y = Identity (h1)",
    "larger, turned round": "g = Less (h, x)  h1 = Where (g, x, h)  y = Identity (h1)",
    "smaller, before each step": "g = Less (x, h)  h1 = Where (g, x, h)  y = Identity (h)",
}
BACKWARDS = "num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"
CORNERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0)


def sized(step: str, steps: int | str = 40, kind: str = "float", **parts: str) -> str:
    sizes = {"inputs": "float[2] h, float[2] x", "outputs": "float[2] h1, float[2] y", "given": f"float[2] s, float[{steps},2] xs"}
    sizes |= {"results": f"float[2] z, float[{steps},2] ys"} | parts
    return scan(step, **{key: text.replace("float", kind) for key, text in sizes.items()})


@pytest.mark.parametrize("attributes", ["num_scan_inputs = 1", BACKWARDS])
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize("choice", CHOICES)
def test_the_larger_by_a_choice_is_that_of_the_loop(choice: str, kind: str, attributes: str) -> None:
    after, _ = becomes(cumulative, sized(CHOICES[choice], 40, kind, attributes=attributes))
    assert not any(node.op_type == "Scan" for node in after.graph.node)


@pytest.mark.parametrize("step", [*CHOICES.values(), "g = Greater (x, h)  h1 = Where (g, x, h)"])
def test_what_is_no_number_is_never_taken_on_and_zeros_have_the_loops_signs(step: str) -> None:
    last = {"outputs": "float[2] h1", "results": "float[2] z", "outer": "z"}
    text = sized(step, **({} if "y = " in step else last))
    after, report = apply(text, [cumulative])
    assert patches(report) == ["cumulative"]
    draw = np.random.default_rng(0)
    for start, one in product(CORNERS, repeat=2):
        feeds = {"s": np.array([start, 0.0], np.float32), "xs": draw.choice(np.array(CORNERS, np.float32), (40, 2))}
        feeds["xs"][0] = one
        for mine, loops in zip(ort_run(after, feeds), ort_run(model_from_text(text, 18), feeds), strict=True):
            assert np.array_equal(mine, loops, equal_nan=True)
            assert np.array_equal(np.signbit(mine[~np.isnan(mine)]), np.signbit(loops[~np.isnan(loops)]))


@pytest.mark.parametrize(
    "step",
    [
        "g = Greater (x, h)  h1 = Where (g, h, x)  y = Identity (h1)",
        "g = GreaterOrEqual (h, x)  h1 = Where (g, h, x)  y = Identity (h1)",
        "g = Greater (x, h)  d = Neg (x)  h1 = Where (g, d, h)  y = Identity (h1)",
        "d = Abs (h)  g = Greater (x, d)  h1 = Where (g, x, h)  y = Identity (h1)",
    ],
)
def test_other_choices_stay(step: str) -> None:
    stays(cumulative, sized(step))


LATCH = "h1 = Where (c, x, h)  y = Identity (h1)"
FLAGS = {
    "a flag for each": "bool[2] c",
    "a flag a step": "bool c",
    "one flag for a row": "bool[1] c",
}


@pytest.mark.parametrize("ways", [0, 1])
@pytest.mark.parametrize("kind", ["float", "int64", "float16", "uint8"])
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("seen", ["h1", "h"])
def test_the_last_value_that_was_taken_on_is_gathered(flag: str, kind: str, seen: str, ways: int) -> None:
    shape = FLAGS[flag].removeprefix("bool").removesuffix(" c").strip("[]")
    text = scan(
        LATCH.replace("(h1)", f"({seen})"),
        inputs=f"{kind}[2] h, {kind}[2] x, {FLAGS[flag]}",
        outputs=f"{kind}[2] h1, {kind}[2] y",
        attributes=f"num_scan_inputs = 2, scan_input_directions = [{ways}, {ways}], scan_output_directions = [{ways}]",
        given=f"{kind}[2] s, {kind}[40,2] xs, bool[{','.join(filter(None, ('40', shape)))}] cs",
        operands="s, xs, cs",
        results=f"{kind}[2] z, {kind}[40,2] ys",
    )
    after, report = apply(text, [cumulative])
    assert patches(report) == ["cumulative"]
    draw = np.random.default_rng(0)
    feeds = {"s": np.array([7, 8]).astype(kind.replace("float", "float32") if kind == "float" else kind)}
    feeds["xs"] = draw.integers(0, 100, (40, 2)).astype(feeds["s"].dtype)
    if feeds["s"].dtype.kind == "f":
        feeds["xs"][draw.random((40, 2)) < 0.3] = -0.0
    for often in (0.0, 0.2, 1.0):
        feeds["cs"] = draw.random((40, *map(int, filter(None, shape.split(","))))) < often
        for mine, loops in zip(ort_run(after, feeds), ort_run(model_from_text(text, 18), feeds), strict=True):
            assert mine.tobytes() == loops.tobytes()


def test_the_argument_of_the_largest_so_far_leaves_the_loop() -> None:
    text = """g (float[3] m0, int64[3] i0, float[50,3] xs) => (int64[3] last, int64[50,3] is) <int64 t0 = {0}, int64 one = {1}> {
        ml, last, tl, is = Scan <num_scan_inputs = 1, body = b (float[3] m, int64[3] i, int64 t, float[3] x)
            => (float[3] m1, int64[3] i1, int64 t1, int64[3] iy) { g = Greater (x, m) m1 = Where (g, x, m) i1 = Where (g, t, i)
                t1 = Add (t, one) iy = Identity (i1) }> (m0, i0, t0, xs) }"""
    after, _ = becomes(cumulative, text)
    assert not any(node.op_type == "Scan" for node in after.graph.node)


def test_what_the_comparison_says_may_be_a_result_as_well() -> None:
    flags = {"outputs": "float[2] h1, bool[2] y", "results": "float[2] z, bool[T,2] ys"}
    stays(cumulative, sized("y = Greater (x, h)  h1 = Where (y, x, h)", "T", **flags), "CUMULATIVE-STEPS")
    becomes(cumulative, sized("y = Greater (x, h)  h1 = Where (y, x, h)", **flags | {"results": "float[2] z, bool[40,2] ys"}))


def test_a_free_number_of_steps_and_wide_rows_stay() -> None:
    stays(cumulative, sized(CHOICES["larger"], "T"), "CUMULATIVE-STEPS")
    text = scan(
        "h1 = Where (c, x, h)",
        inputs="float[2] h, float[2] x, bool c",
        outputs="float[2] h1",
        attributes="num_scan_inputs = 2",
        given="float[2] s, float[T,2] xs, bool[T] cs",
        operands="s, xs, cs",
        results="float[2] z",
        outer="z",
    )
    stays(cumulative, text, "CUMULATIVE-STEPS")
    wide = {"inputs": "float[9000] h, float[9000] x", "outputs": "float[9000] h1, float[9000] y"}
    wide |= {"given": "float[9000] s, float[400,9000] xs", "results": "float[9000] z, float[400,9000] ys"}
    _, report = apply(scan(CHOICES["larger"], **wide), [cumulative], options=Options())
    assert [reason.code for one in report.loops for reason in one.reasons] == ["CUMULATIVE-COST"]


def test_where_onnxruntime_makes_another_zero_of_what_is_kept_the_loop_stays() -> None:
    text = scan(
        "h1 = Where (c, h, x)  y = Identity (h1)",
        inputs="float[2] h, float[2] x, bool c",
        attributes="num_scan_inputs = 2",
        given="float[2] s, float[40,2] xs, bool[40] cs",
        operands="s, xs, cs",
        results="float[2] z, float[40,2] ys",
    )
    stays(cumulative, text)
    becomes(cumulative, text.replace("float", "int64"))
