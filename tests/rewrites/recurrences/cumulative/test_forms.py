"""Products, extremes, choices, latches and flags, computed for all steps at once, equal those of the loop."""

from itertools import product

import numpy as np
import pytest

from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.recurrences.cumulative import cumulative
from tests.rewrites.apply import apply, patches, reasons
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
KINDS = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64, "uint32": np.uint32, "bool": np.bool_}


def written(
    op: str,
    kind: str,
    steps: int | str,
    *,
    wants: str = "after",
    ways: int = 0,
    swapped: bool = False,
    start: str = "",
    width: str = "2",
) -> str:
    """Return a loop that returns its state `before` or `after` each step, or its `final` value, or several of these."""
    pair = "x, s" if swapped else "s, x"
    results = [f"{kind}[{width}] last"] if "final" in wants else []
    results += [f"{kind}[{steps},{width}] {name}s" for name in ("before", "after") if name in wants]
    copies = [f"{name} = Identity ({value})" for name, value in (("before", "s"), ("after", "s1")) if name in wants]
    outputs = [f"{kind}[{width}] s1", *(f"{kind}[{width}] {name}" for name in ("before", "after") if name in wants)]
    outer = ["last", *(f"{name}s" for name in ("before", "after") if name in wants)]
    given = f"{kind}[{steps},{width}] xs" if start else f"{kind}[{width}] s0, {kind}[{steps},{width}] xs"
    directions = f"scan_input_directions = [{ways}], " + (
        f"scan_output_directions = [{ways}{f', {ways}' if len(copies) > 1 else ''}], " if copies else ""
    )
    return f"""g ({given}) => ({", ".join(results)}) {f"<{kind}[{width}] s0 = {start}>" if start else ""} {{
        {", ".join(outer)} = Scan <num_scan_inputs = 1, {directions}
            body = b ({kind}[{width}] s, {kind}[{width}] x) => ({", ".join(outputs)}) {{
                s1 = {op} ({pair}) {"  ".join(copies)} }}> (s0, xs) }}"""


def numbers(kind: str, steps: int, width: int = 2) -> np.ndarray:
    rng = np.random.default_rng(steps)
    if kind == "bool":
        return rng.random((steps, width)) < 1.5 / steps
    if kind.startswith(("int", "uint")):
        limits = np.iinfo(KINDS[kind])
        return rng.integers(limits.min, limits.max, (steps, width), KINDS[kind], endpoint=True)
    return rng.standard_normal((steps, width)).astype(KINDS[kind])


def computed(text: str, feeds: dict[str, np.ndarray], opset: int = 18) -> list[str]:
    before = model_from_text(text, opset)
    after, _ = apply(before, [cumulative, loop_fission], feeds=feeds)
    assert not any(node.op_type == "Scan" for node in after.graph.node)
    for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
        assert np.array_equal(mine, loops, equal_nan=mine.dtype.kind == "f")
    return [node.op_type for node in after.graph.node]


def feeds_of(kind: str, xs: np.ndarray, start: str = "") -> dict[str, np.ndarray]:
    return {"xs": xs} | ({} if start else {"s0": xs[len(xs) // 2]})


@pytest.mark.parametrize("wants", ["after", "before", "final", "final before after"])
@pytest.mark.parametrize("ways", [0, 1])
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64", "uint32"])
def test_products_are_one_node(kind, ways, wants) -> None:
    for start in ("", "{1, 1}"):
        xs = numbers(kind, 7)
        kinds = computed(written("Mul", kind, "T", wants=wants, ways=ways, start=start), feeds_of(kind, xs, start), opset=26)
        assert kinds.count("CumProd") == 1


@pytest.mark.parametrize(
    "values", [[1e30, 1e30, 1e-30, 1e-30], [1e-30, 1e-30, 1e30, 1e30], [np.inf, 0, 1, 2], [-0.0, 1, -1, np.nan]]
)
def test_products_overflow_where_the_loop_does(values) -> None:
    xs = np.array(values, np.float32).reshape(4, 1).repeat(2, 1)
    computed(written("Mul", "float", 4), {"xs": xs, "s0": np.ones(2, np.float32)}, opset=26)


@pytest.mark.parametrize("steps", [2, 7, 24, 25, 36, 37, 100, 263])
@pytest.mark.parametrize("ways", [0, 1])
@pytest.mark.parametrize(("op", "kind"), [("Max", "float"), ("Min", "double"), ("Max", "int64"), ("Min", "int32")])
def test_extremes_are_computed_in_blocks_of_steps(op, kind, ways, steps) -> None:
    xs = numbers(kind, steps)
    for wants in ("after", "final before after"):
        computed(written(op, kind, steps, wants=wants, ways=ways, swapped=wants == "after"), feeds_of(kind, xs))


@pytest.mark.parametrize("place", [0, 20, 59])
@pytest.mark.parametrize("steps", [60, "T"])
def test_nan_propagates_as_in_the_loop(steps, place) -> None:
    xs = numbers("float", 60)
    xs[place, 0], xs[30, 1] = np.nan, np.inf
    for start in (xs[1], np.array([0, np.nan], np.float32)):
        computed(written("Max", "float", steps, wants="final" if steps == "T" else "after"), {"xs": xs, "s0": start})


@pytest.mark.parametrize("steps", [2, 15, 16, 17, 100, 1000])
@pytest.mark.parametrize("ways", [0, 1])
def test_the_last_extreme_of_wide_rows_is_combined_from_parts(ways, steps) -> None:
    xs = numbers("float", steps, 64)
    xs[steps // 2, 3] = np.nan
    assert "Split" in computed(written("Max", "float", steps, wants="final", ways=ways, width="64"), feeds_of("float", xs))


def test_blocks_keep_unknown_sizes() -> None:
    computed(written("Max", "float", 50, width="B"), feeds_of("float", numbers("float", 50, 3)))


@pytest.mark.parametrize("wants", ["after", "before", "final", "final before after"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_products_of_integers_are_computed_in_blocks_before_opset_26(kind, wants) -> None:
    kinds = computed(written("Mul", kind, 50, wants=wants), feeds_of(kind, numbers(kind, 50)))
    assert "CumProd" not in kinds


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_the_last_extreme_does_not_require_a_known_number_of_steps(op) -> None:
    for kind in ("float", "int32"):
        xs = numbers(kind, 9)
        assert op in computed(written(op.removeprefix("Reduce"), kind, "T", wants="final"), feeds_of(kind, xs))


@pytest.mark.parametrize("wants", ["after", "before", "final", "final before after"])
@pytest.mark.parametrize("ways", [0, 1])
@pytest.mark.parametrize("op", ["And", "Or"])
def test_flags_are_computed_by_counting(op, ways, wants) -> None:
    for start in ("", "{0, 0}", "{1, 1}", "{1, 0}"):
        for xs in (numbers("bool", 9), ~numbers("bool", 9)):
            feeds = {"xs": xs} | ({} if start else {"s0": np.array([True, False])})
            computed(written(op, "bool", "T", wants=wants, ways=ways, start=start), feeds)


REFUSED = {
    "products before opset 26": (written("Mul", "float", 8), 18, "CUMULATIVE-OPSET"),
    "products of a number of steps that is not known": (written("Mul", "int32", "T"), 18, "CUMULATIVE-STEPS"),
    "unsigned products before opset 26": (written("Mul", "uint32", 8), 18, "CUMULATIVE-OPSET"),
    "products of halves": (written("Mul", "float16", 8), 26, "CUMULATIVE-TYPE"),
    "the largest of steps whose number is not known": (written("Max", "float", "T"), 18, "CUMULATIVE-STEPS"),
    "wide rows": (written("Max", "float", 4096, width="512"), 18, "CUMULATIVE-COST"),
    "many flags": (written("Or", "bool", "T", width="512"), 18, "CUMULATIVE-COST"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unsupported_or_slower_forms_keep_the_loop(case) -> None:
    text, opset, code = REFUSED[case]
    _, report = apply(text, [cumulative], opset=opset, options=Options())
    assert (patches(report), reasons(report)) == ([], [code])


def test_the_rules_find_nothing_in_their_own_result() -> None:
    after, _ = apply(written("Max", "float", 100), [cumulative, loop_fission])
    assert patches(apply(after, [cumulative, loop_fission])[1]) == []


def sized(step: str, steps: int | str = 40, kind: str = "float", **parts: str) -> str:
    sizes = {"inputs": "float[2] h, float[2] x", "outputs": "float[2] h1, float[2] y", "given": f"float[2] s, float[{steps},2] xs"}
    sizes |= {"results": f"float[2] z, float[{steps},2] ys"} | parts
    return scan(step, **{key: text.replace("float", kind) for key, text in sizes.items()})


@pytest.mark.parametrize("attributes", ["num_scan_inputs = 1", BACKWARDS])
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_by_comparison_equals_that_of_the_loop(choice: str, kind: str, attributes: str) -> None:
    after, _ = becomes(cumulative, sized(CHOICES[choice], 40, kind, attributes=attributes))
    assert not any(node.op_type == "Scan" for node in after.graph.node)


@pytest.mark.parametrize("step", [*CHOICES.values(), "g = Greater (x, h)  h1 = Where (g, x, h)"])
def test_choices_never_take_nan_and_keep_the_signs_of_zeros(step: str) -> None:
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
def test_choices_that_are_no_extremes_stay(step: str) -> None:
    stays(cumulative, sized(step))


LATCH = "h1 = Where (c, x, h)  y = Identity (h1)"
FLAGS = {"a flag for each": "bool[2] c", "a flag a step": "bool c", "one flag for a row": "bool[1] c"}


@pytest.mark.parametrize("ways", [0, 1])
@pytest.mark.parametrize("kind", ["float", "int64", "float16", "uint8"])
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("seen", ["h1", "h"])
def test_a_latch_gathers_the_last_value_that_it_took(flag: str, kind: str, seen: str, ways: int) -> None:
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


def test_a_running_argmax_leaves_the_loop() -> None:
    text = """g (float[3] m0, int64[3] i0, float[50,3] xs) => (int64[3] last, int64[50,3] is) <int64 t0 = {0}, int64 one = {1}> {
        ml, last, tl, is = Scan <num_scan_inputs = 1, body = b (float[3] m, int64[3] i, int64 t, float[3] x)
            => (float[3] m1, int64[3] i1, int64 t1, int64[3] iy) { g = Greater (x, m) m1 = Where (g, x, m) i1 = Where (g, t, i)
                t1 = Add (t, one) iy = Identity (i1) }> (m0, i0, t0, xs) }"""
    after, _ = becomes(cumulative, text)
    assert not any(node.op_type == "Scan" for node in after.graph.node)


def test_the_comparison_itself_may_be_a_result() -> None:
    flags = {"outputs": "float[2] h1, bool[2] y", "results": "float[2] z, bool[T,2] ys"}
    stays(cumulative, sized("y = Greater (x, h)  h1 = Where (y, x, h)", "T", **flags), "CUMULATIVE-STEPS")
    becomes(cumulative, sized("y = Greater (x, h)  h1 = Where (y, x, h)", **flags | {"results": "float[2] z, bool[40,2] ys"}))


def test_choices_with_unknown_steps_or_wide_rows_stay() -> None:
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


def test_a_latch_for_which_where_loses_minus_zero_stays() -> None:
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
