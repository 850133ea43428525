"""States that accumulate become CumSums with the same bits. They stay in the loop if CumSum would differ or be slower."""

import numpy as np
import pytest

from rewrites.fission import loop_fission, state_fission
from rewrites.graph.context import Options
from rewrites.loop_form import loop_to_scan
from rewrites.native import native_loop
from rewrites.recurrences.cumulative import cumulative
from tests.rewrites.apply import apply, patches, reasons
from tests.rewrites.harness import becomes, loop, scan
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

ADDED = "h1 = Add (h, x)  y = Identity (h1)"
BEFORE = "h1 = Add (h, x)  y = Identity (h)"
ZEROS = {"given": "float[3,2] xs", "weights": "float[2] s = {0, 0}"}
LAST = {"outputs": "float[2] h1", "results": "float[2] z", "outer": "z"}
BOTH = [cumulative, loop_fission]


def test_a_running_sum_starts_with_the_initial_value() -> None:
    becomes(
        cumulative,
        scan(ADDED),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys)
        <int64 axis = {0}, int64[1] first = {0}, int64[1] last = {-1}, int64[1] end = {9223372036854775807}> {
            rows = ScatterND <reduction = "add"> (xs, first, s)
            ys = CumSum (rows, axis)
            ends = Slice (ys, last, end, first)
            z = Squeeze (ends, first) }""",
    )


def test_before_opset_16_the_first_row_is_added_and_scattered() -> None:
    becomes(
        cumulative,
        scan(ADDED),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys)
        <int64 axis = {0}, int64[1] first = {0}, int64[1] one = {1}, int64[1,1] at = {0}, int64[1] last = {-1},
        int64[1] end = {9223372036854775807}> {
            row = Slice (xs, first, one, first)
            begun = Add (s, row)
            rows = ScatterND (xs, at, begun)
            ys = CumSum (rows, axis)
            ends = Slice (ys, last, end, first)
            z = Squeeze (ends, first) }""",
        opset=15,
    )


def test_with_unknown_steps_the_initial_value_is_inserted_as_row_0() -> None:
    stacks = {"given": "float[2] s, float[T,2] xs", "results": "float[2] z, float[T,2] ys"}
    becomes(
        cumulative,
        scan(ADDED, **stacks),
        """g (float[2] s, float[T,2] xs) => (float[2] z, float[T,2] ys)
        <int64 axis = {0}, int64[1] first = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] end = {9223372036854775807}> {
            row = Unsqueeze (s, first)
            rows = Concat <axis = 0> (row, xs)
            sums = CumSum (rows, axis)
            ys = Slice (sums, one, end, first)
            ends = Slice (sums, last, end, first)
            z = Squeeze (ends, first) }""",
    )


def test_sums_from_zeros_need_no_row_of_zeros_but_are_never_minus_zero() -> None:
    becomes(
        cumulative,
        scan(ADDED, **ZEROS | {"results": "float[3,2] ys"}),
        """g (float[3,2] xs) => (float[3,2] ys) <float[2] s = {0, 0}, int64 axis = {0}, int64[1] first = {0}> {
            rows = ScatterND <reduction = "add"> (xs, first, s)  ys = CumSum (rows, axis) }""",
        feeds={"xs": np.array([[-0.0, 1], [-0.0, 2], [3, -3]], np.float32)},
    )


def test_the_state_before_each_step_is_an_exclusive_sum() -> None:
    becomes(
        cumulative,
        scan(BEFORE, **ZEROS | {"results": "float[3,2] ys"}),
        """g (float[3,2] xs) => (float[3,2] ys) <int64 axis = {0}, float zero = {0}> {
            sums = CumSum <exclusive = 1> (xs, axis)  ys = Add (sums, zero) }""",
    )


def test_a_sum_of_integers_backwards_is_one_node() -> None:
    text = scan(
        ADDED,
        inputs="int64[2] h, int64[2] x",
        outputs="int64[2] h1, int64[2] y",
        given="int64[3,2] xs",
        results="int64[3,2] ys",
        weights="int64[2] s = {0, 0}",
        attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]",
    )
    becomes(cumulative, text, "g (int64[3,2] xs) => (int64[3,2] ys) <int64 axis = {0}> { ys = CumSum <reverse = 1> (xs, axis) }")


@pytest.mark.parametrize("initial", ["given", "zeros"])
@pytest.mark.parametrize("steps", ["3", "T"])
@pytest.mark.parametrize("ways", [(0, 0), (1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize("step", [ADDED, BEFORE, "h1 = Sub (h, x)  y = Identity (h1)", "h1 = Add (x, h)  y = Add (h, h1)", "last"])
def test_every_form_computes_the_same_bits_as_the_loop(step, kind, ways, steps, initial) -> None:
    parts = {"inputs": "float[2] h, float[2] x", "outputs": "float[2] h1, float[2] y", "given": f"float[2] s, float[{steps},2] xs"}
    parts |= {"results": f"float[2] z, float[{steps},2] ys", "weights": ""}
    if initial == "zeros":
        parts |= {"given": f"float[{steps},2] xs", "weights": "float[2] s = {0, 0}"}
    if step == "last":
        step, parts = "h1 = Add (h, x)", parts | LAST
    attributes = f"num_scan_inputs = 1, scan_input_directions = [{ways[0]}]"
    if "y" in parts["outputs"]:
        attributes += f", scan_output_directions = [{ways[1]}]"
    parts = {key: text.replace("float", kind) for key, text in parts.items()}
    text = scan(step, attributes=attributes, **parts)
    rng = np.random.default_rng(0)
    dtype = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64}[kind]
    if kind.startswith("int"):
        xs = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 2), dtype, endpoint=True)
    else:
        xs = (rng.standard_normal((3, 2)) * 1e3).astype(dtype)
    feeds = {"xs": xs} | ({"s": xs[1] if kind.startswith("int") else xs[1] / 3} if initial == "given" else {})
    before = model_from_text(text, 18)
    after, _ = apply(before, BOTH, feeds=feeds)
    assert not any(node.op_type == "Scan" for node in after.graph.node)
    for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
        assert mine.tobytes() == loops.tobytes()


NUMBERS = {
    "an overflow that the last steps would take back": [[3e38, -3e38], [3e38, -3e38], [-3e38, 3e38]],
    "infinities of both signs": [[np.inf, 1], [1, -np.inf], [-np.inf, np.inf]],
    "NaN": [[1, np.nan], [2, 1], [np.nan, 1]],
    "zeros of both signs": [[-0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]],
    "what rounding loses": [[1e8, 1], [1, 1e8], [-1e8, -1e8]],
}


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("start", ["{0, 0}", "{-0.0, -0.0}", "{1, -0.0}"])
@pytest.mark.parametrize("step", [ADDED, BEFORE])
def test_infinities_nan_and_rounding_equal_those_of_the_loop(step, start, numbers) -> None:
    feeds = {"xs": np.array(NUMBERS[numbers], np.float32)}
    before = model_from_text(scan(step, given="float[3,2] xs", weights=f"float[2] s = {start}"), 18)
    after, _ = apply(before, [cumulative], feeds=feeds)
    for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
        assert np.array_equal(mine, loops, equal_nan=True)
        assert np.array_equal(np.signbit(mine[~np.isnan(mine)]), np.signbit(loops[~np.isnan(loops)]))


def test_operands_are_computed_and_broadcast_for_all_steps() -> None:
    text = scan(
        "u = Exp (x)  h1 = Add (u, h)  y = Mul (h1, h)",
        inputs="float[2,3] h, float[3] x",
        outputs="float[2,3] h1, float[2,3] y",
        given="float[2,3] s, float[T,3] xs",
        results="float[2,3] z, float[T,2,3] ys",
    )
    after, _ = becomes(BOTH, text, T=5)
    assert sorted(node.op_type for node in after.graph.node if node.op_type in ("CumSum", "Exp", "Expand", "Scan")) == [
        "CumSum",
        "Exp",
        "Expand",
    ]


@pytest.mark.parametrize("ways", [0, 1])
def test_a_count_from_a_constant_by_a_constant_becomes_a_constant(ways: int) -> None:
    text = f"""g (float[3] xs) => (float z, float[3] ys) <float s = {{0.1}}, float w = {{0.2}}> {{
        z, ys = Scan <num_scan_inputs = 1, scan_input_directions = [{ways}], scan_output_directions = [{ways}],
            body = b (float h, float x) => (float h1, float y) {{ h1 = Add (h, w)  y = Mul (h, x) }}> (s, xs) }}"""
    after, _ = becomes(BOTH, text)
    assert not any(node.op_type in ("CumSum", "Scan") for node in after.graph.node)


def test_a_captured_value_is_added_in_each_step() -> None:
    becomes(cumulative, scan("h1 = Add (h, w)  y = Identity (h1)", weights="float[2] w = {0.1, 0.2}"))


def test_states_that_the_rest_of_the_loop_reads_become_scan_inputs() -> None:
    text = scan(
        "h1 = Add (h, x)  p = Mul (k, h)  q = Add (p, h1)  k1 = Sin (q)  y = Identity (k1)",
        inputs="float[2] h, float[2] k, float[2] x",
        outputs="float[2] h1, float[2] k1, float[2] y",
        given="float[2] s, float[2] t, float[3,2] xs",
        operands="s, t, xs",
        results="float[2] z, float[2] l, float[3,2] ys",
        outer="z, l, ys",
    )
    after, _ = becomes(cumulative, text)
    (left,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert (len(left.input), len(left.output)) == (4, 2)


def test_duplicate_sums_in_the_body_become_one() -> None:
    after, _ = becomes(cumulative, scan("h1 = Add (h, x)  y = Add (x, h)"))
    assert not any(node.op_type == "Scan" for node in after.graph.node)


def test_a_sum_of_another_state_is_split_off_and_accumulated() -> None:
    text = scan(
        "h1 = Add (h, k1)  y = Identity (h1)  k2 = Mul (k, x)  k1 = Sin (k2)",
        inputs="float[2] h, float[2] k, float[2] x",
        outputs="float[2] h1, float[2] k1, float[2] y",
        given="float[2] s, float[2] t, float[3,2] xs",
        operands="s, t, xs",
        results="float[2] z, float[2] l, float[3,2] ys",
        outer="z, l, ys",
    ).replace(
        "h1 = Add (h, k1)  y = Identity (h1)  k2 = Mul (k, x)  k1 = Sin (k2)",
        "k2 = Mul (k, x)  k1 = Sin (k2)  h1 = Add (h, k1)  y = Identity (h1)",
    )

    after, report = apply(model_from_text(text, 18), [cumulative, loop_fission, state_fission])
    assert "cumulative" in patches(report)
    assert [len(node.input) for node in after.graph.node if node.op_type == "Scan"] == [2]


def test_a_loop_becomes_a_sum_too() -> None:
    text = loop("x = Gather (xs, i)  h1 = Add (h, x)  y = Identity (h1)", results="float[2] z, float[3,2] ys")
    becomes([loop_to_scan, cumulative], text)


REFUSED = {
    "halves, which CumSum adds in float32": ({"kind": "float16"}, ["CUMULATIVE-TYPE"]),
    "natural numbers, which have no kernel": ({"kind": "uint64"}, ["CUMULATIVE-TYPE"]),
    "a state that is taken away": ({"step": "h1 = Sub (x, h)  y = Identity (h1)"}, []),
    "a state that is added twice": ({"step": "h1 = Add (h, h)  y = Add (h1, x)"}, []),
    "what depends on the state": ({"step": "u = Mul (h, x)  h1 = Add (h, u)  y = Identity (h1)"}, []),
    "an opset without CumSum": ({"opset": 10}, []),
    "stacks that break the budget": ({"options": Options(memory_budget=40)}, ["MEMORY-BUDGET"]),
    "random numbers": ({"step": "r = RandomNormalLike (x)  h1 = Add (h, r)  y = Identity (h1)", "on_ort": False}, ["RANDOM"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unsupported_states_stay_in_the_loop(case) -> None:
    given, codes = REFUSED[case]
    given = dict(given)
    kind, step = given.pop("kind", "float"), given.pop("step", ADDED)
    text = scan(step, **{key: value.replace("float", kind) for key, value in _PARTS.items()})
    _, report = apply(text, [cumulative], opset=given.get("opset", 18), options=given.get("options"))
    assert patches(report) == []
    assert reasons(report) == codes


_PARTS = {
    "inputs": "float[2] h, float[2] x",
    "outputs": "float[2] h1, float[2] y",
    "given": "float[2] s, float[3,2] xs",
    "results": "float[2] z, float[3,2] ys",
}


@pytest.mark.parametrize(
    ("step", "width", "steps", "fires"),
    [
        (ADDED, 2048, 4096, True),
        (ADDED, 4096, 4096, False),
        (ADDED, 4096, 64, True),
        (ADDED, 4096, "T", False),
        (ADDED, "A, B", "T", True),
        (ADDED, "A, 4096", "T", False),
        ("u = Tanh (x)  h1 = Add (h, u)  y = Identity (h1)", 4096, 4096, False),
        ("u = Tanh (x)  h1 = Add (h, u)  y = Identity (h1)", 1024, 4096, True),
        ("h1 = Add (h, x)  y = Sqrt (h1)", 4096, "T", False),
        ("h1 = Max (h, x)  y = Identity (h1)", 768, 64, True),
        ("h1 = Max (h, x)  y = Identity (h1)", 1024, 64, False),
        ("g = Less (h, x)  h1 = Where (g, x, h)  y = Identity (h1)", 256, 64, True),
        ("g = Less (h, x)  h1 = Where (g, x, h)  y = Identity (h1)", 512, 64, False),
    ],
)
def test_wide_rows_stay_in_the_loop_that_keeps_them_in_the_cache(step, width, steps, fires) -> None:
    sizes = {"[3,2]": f"[{steps},{width}]", "[2]": f"[{width}]"}
    parts = dict(_PARTS)
    for old, new in sizes.items():
        parts = {key: value.replace(old, new) for key, value in parts.items()}
    _, report = apply(scan(step, **parts), [cumulative])
    assert patches(report) == (["cumulative"] if fires else [])
    assert fires or reasons(report) == ["CUMULATIVE-COST"]


COUNTED = {
    "inside": "k1 = Add (k, one)  h1 = Mul (h, k1)  y = Tanh (h1)",
    "inputs": "float[2] h, float[2] k, float[2] x",
    "outputs": "float[2] h1, float[2] k1, float[2] y",
    "given": "float[2] s, float[2] k0, float[3,2] xs",
    "results": "float[2] z, float[2] zk, float[3,2] ys",
    "weights": "float[2] one = {1, 1}",
    "operands": "s, k0, xs",
    "outer": "z, zk, ys",
}


@pytest.mark.parametrize("text", [scan(ADDED), scan(**COUNTED)], ids=["alone", "beside a state that reads it"])
def test_a_loop_with_a_plan_keeps_its_states(text: str) -> None:
    _, report = apply(text, [cumulative, native_loop])
    assert patches(report) == ["native-loop"]


def test_a_state_of_a_loop_without_a_plan_leaves() -> None:
    _, report = apply(
        scan(**COUNTED | {"inside": "k1 = Add (k, one)  h1 = Mul (h, k1)  y = Shrink (h1)"}), [cumulative, native_loop]
    )
    assert patches(report) == ["cumulative"]
