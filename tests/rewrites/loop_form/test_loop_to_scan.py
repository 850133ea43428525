"""Loops that become Scans; the rows that they read agree with a run in which each row is marked with its number."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

import ortscan
from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, Dim
from rewrites.analysis.induction.emission import emit
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.cleanup import dead_code
from rewrites.loop_form import loop_to_scan
from rewrites.loop_form.loop_to_scan import RowRead, as_vector, row_reads
from rewrites.loops import LoopView, view
from rewrites.registry import RULES
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply, one_loop, patches, prepared, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

INSIDE = "x = Gather (xs, i) h1 = Add (h, x) y = Tanh (h)"


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 16, 18, 21, 25])
def test_rows_read_at_the_number_of_the_step_are_a_scan_input(opset: int) -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop(INSIDE),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (h) }> (s, xs) }""",
        opset=opset,
    )


def test_the_number_of_the_step_is_scanned_where_it_is_read_otherwise() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop("f = Cast <to = 1> (i) h1 = Add (h, f) y = Tanh (h)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64[3] n = {0, 1, 2}> {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, i) => (h1, y) {
                f = Cast <to = 1> (i)  h1 = Add (h, f)  y = Tanh (h)
            }> (s, n) }""",
    )


def test_something_is_scanned_where_the_body_reads_nothing_of_the_step() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop("h1 = Add (h, h) y = Tanh (h)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64[3] n = {0, 1, 2}> {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, i) => (h1, y) { h1 = Add (h, h)  y = Tanh (h) }> (s, n) }""",
    )


def test_of_a_longer_tensor_the_first_rows_are_scanned() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop(INSIDE, given="float[2] s, float[7,2] xs"),
        """g (float[2] s, float[7,2] xs) => (float[2] z, float[N,2] ys) <int64[1] a = {0}, int64[1] b = {3}> {
            x3 = Slice (xs, a, b, a)
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (h) }> (s, x3) }""",
    )


def test_of_a_tensor_of_unknown_length_the_rows_are_gathered_so_that_too_few_fail() -> None:
    text = loop(INSIDE, given="float[2] s, float[T,2] xs")
    after, _ = becomes(loop_to_scan, text, T=5)
    assert [node.op_type for node in after.graph.node] == ["Gather", "Scan"]
    with pytest.raises(Exception, match=r"out of data bounds|indices element"):
        becomes(loop_to_scan, text, T=2)


def test_rows_that_are_not_there_stay_in_the_loop() -> None:
    stays(
        loop_to_scan,
        loop(INSIDE, given="float[2] s, float[2,2] xs"),
        "LOOP-OUT-OF-RANGE",
        detail="'xs' has 2 rows, but is read at 0..2",
    )


READS = {
    "of another axis": "x = Gather <axis = 1> (xs, i) h1 = Add (h, x) y = Tanh (h)",
    "of a state": "x = Gather (h, i0) i0 = Identity (i) h1 = Add (h, x) y = Tanh (h)",
    "at another number": "j = Mul (i, i) k = Mod (j, three) x = Gather (xs, k) h1 = Add (h, x) y = Tanh (h)",
    "of a number": "x = Gather (pick, i) w = Gather (xs, x) h1 = Add (h, w) y = Tanh (h)",
    "twice": "x = Gather (xs, i) w = Gather (xs, i) h1 = Add (h, x) y = Mul (w, x)",
    "and of its number": "x = Gather (xs, i) f = Cast <to = 1> (i) h1 = Add (h, x) y = Add (x, f)",
    "in a branch": "h1 = Add (h, h) y = If (c) <then_branch = p () => (float[2] u) { u = Gather (xs, i) }, "
    "else_branch = q () => (float[2] v) { v = Identity (h) }>",
    "in a nested loop": "h1 = Add (h, h) y = Loop <body = d (int64 j, bool e, float[2] g) => (bool e, float[2] g1) "
    "{ u = Gather (xs, i) w = Gather (xs, j) a = Add (g, u) g1 = Add (a, w) }> (three, , h)",
    "and returned": "x = Gather (xs, i) h1 = Identity (x) y = Gather (xs, i)",
}


@pytest.mark.parametrize("case", READS)
def test_every_way_to_read_the_step_keeps_its_numbers(case: str) -> None:
    shape = "float[2,3] xs" if "axis" in case else "float[3,2] xs"
    inside = READS[case].replace("x = Gather (h, i0) i0 = Identity (i)", "i0 = Min (i, one) x = Gather (h, i0)")
    text = loop(inside, given=f"float[2] s, {shape}", weights="int64 three = {3}, int64 one = {1}, int64[3] pick = {2, 0, 1}")
    becomes(loop_to_scan, text)
    apply(text, RULES, feeds=data(read(text)))


def test_a_step_number_of_one_element_is_scanned_as_such() -> None:
    text = loop("x = Gather (xs, i) v = Squeeze (x, k) h1 = Add (h, v) y = Tanh (h)", weights="int64[1] k = {0}").replace(
        "int64 i,", "int64[1] i,"
    )
    apply(text, [loop_to_scan], feeds=data(read(text, check=False)), check=False)


def test_returned_inputs_get_nodes_of_their_own() -> None:
    text = loop(
        "x = Gather (xs, i)",
        outputs="float[2] x, float[2] h, bool c, bool c1",
        outer="z, ys, p, q",
        results="float[2] z, float[N,2] ys, bool[N] p, bool[N] q",
    )
    becomes(loop_to_scan, text)


@pytest.mark.parametrize("kind", ["float16", "double", "bool", "int8"])
def test_every_type_is_carried(kind: str) -> None:
    text = loop(
        "x = Gather (xs, i) h1 = Identity (x) y = Identity (h)",
        inputs=f"{kind}[2] h",
        outputs=f"{kind}[2] h1, {kind}[2] y",
        given=f"{kind}[2] s, {kind}[3,2] xs",
        results=f"{kind}[2] z, {kind}[N,2] ys",
    )
    becomes(loop_to_scan, text)


def test_rows_of_strings_are_gathered_as_before() -> None:
    """onnxruntime copies only the first string of each row; strings one by one it reads well."""
    text = loop(
        "x = Gather (xs, i) h1 = StringConcat (h, x) y = Identity (h)",
        inputs="string[2] h",
        outputs="string[2] h1, string[2] y",
        given="string[2] s, string[3,2] xs",
        results="string[2] z, string[N,2] ys",
    )
    after, _ = becomes(loop_to_scan, text, opset=20)
    assert any(node.op_type == "Gather" for node in after.graph.node[-1].attribute[0].g.node)
    one = text.replace("string[3,2] xs", "string[3] xs")
    after, _ = becomes(loop_to_scan, one, opset=20)
    assert not any(node.op_type == "Gather" for node in after.graph.node[-1].attribute[0].g.node)


def test_a_long_count_is_computed_not_stored() -> None:
    text = loop("f = Cast <to = 1> (i) h1 = Mul (h, f) y = Tanh (h)", steps=9000)
    after, _ = apply(text, [loop_to_scan], feeds=data(read(text)))
    assert [node.op_type for node in after.graph.node][-2:] == ["Range", "Scan"]
    assert not any(9000 in tensor.dims for tensor in after.graph.initializer)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (loop(INSIDE, steps=None).replace("(m, ,", "(, ,"), "LOOP-TRIP-COUNT"),
        (loop(INSIDE, steps=0), "LOOP-EMPTY"),
        (loop(INSIDE, steps=-3), "LOOP-EMPTY"),
        (loop(INSIDE, go_on="one = Constant <value_int = 1> () c1 = Less (i, one)"), "LOOP-CONDITION"),
        (loop(INSIDE, condition="t", given="float[2] s, float[3,2] xs, bool t"), "LOOP-CONDITION"),
        (loop(INSIDE, condition="t", weights="bool t = {0}"), "LOOP-CONDITION"),
    ],
    ids=["endless", "none", "negative", "computed", "fed condition", "false"],
)
def test_a_loop_without_a_known_number_of_steps_stays(text: str, code: str) -> None:
    stays(loop_to_scan, text, code)


FED = """
    some = Greater (m, zero)
    z, ys = If (some) <
        then_branch = b0 () => (z1, ys1) {
            one = Reshape (m, v1)
            ones = ConstantOfShape <value = int64[1] {1}> (one)
            found = NonZero (ones)
            places = Squeeze (found, v0)
            rows = Gather <axis = 0> (xs, places)
            z1, ys1 = Scan <num_scan_inputs = 1, body = b1 (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (h) }> (s, rows)
        },
        else_branch = b2 () => (z2, ys2) { z2 = Identity (s)  ys2 = Identity (nothing) }>
"""


def test_a_count_that_is_fed_may_be_none_so_the_scan_gets_a_branch_beside_it() -> None:
    text = loop(INSIDE, steps=None)
    weights = "int64 zero = {0}, int64[1] v1 = {1}, int64[1] v0 = {0}, float[0,2] nothing = {}"
    for steps in (-1, 0, 1, 2, 3):
        expected = f"g (float[2] s, float[3,2] xs, int64 m) => (float[2] z, float[N,2] ys) <{weights}> {{ {FED} }}"
        _, report = becomes([loop_to_scan, dead_code], text, expected if steps else None, feeds={"m": np.array(steps)})
    assert "a loop without steps" in report.loops[0].notes[0]


def test_a_count_that_can_be_fed_is_not_known() -> None:
    text = loop(INSIDE, given="float[2] s, float[3,2] xs, int64 m")
    after, _ = becomes(loop_to_scan, text, feeds={"m": np.array(2)})
    assert [node.op_type for node in after.graph.node] == ["Greater", "If"]


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_as_many_steps_as_there_are_rows_scan_the_tensor_itself(size: int) -> None:
    text = loop(
        INSIDE,
        steps=None,
        given="float[2] s, float[T,2] xs",
        before="n = Shape (xs) m = Gather (n, zero)",
        weights="int64 zero = {0}",
    ).replace(", int64 m) =>", ") =>")
    after, _ = becomes(loop_to_scan, text, T=size)
    (branch,) = [a.g for a in after.graph.node[-1].attribute if a.name == "then_branch"]
    assert [node.op_type for node in branch.node] == ["Scan"]
    assert branch.node[0].input[-1] == "xs"


TORCHSCRIPT_RANGE = "n = Shape (xs) T = Gather (n, zero) last = Sub (T, one) w = Sub (minus, last) f = Cast <to = {kind}> (w) down = Cast <to = {kind}> (minus) d = Div (f, down) r = Ceil (d) m = Cast <to = 7> (r)"
"""The number of steps of range(T - 1, -1, -1), as TorchScript's exporter computes it."""


def downward(kind: int) -> str:
    return loop(
        "k = Mul (i, minus) j = Add (last, k) x = Gather (xs, j) h1 = Add (h, x) y = Tanh (h)",
        steps=None,
        given="float[2] s, float[T,2] xs",
        before=TORCHSCRIPT_RANGE.format(kind=kind),
        weights="int64 zero = {0}, int64 one = {1}, int64 minus = {-1}",
    ).replace(", int64 m) =>", ") =>")


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_a_range_of_torchscript_that_counts_down_scans_the_tensor_in_reverse(size: int) -> None:
    after, report = becomes(loop_to_scan, downward(onnx.TensorProto.FLOAT), T=size)
    (branch,) = [a.g for a in after.graph.node[-1].attribute if a.name == "then_branch"]
    assert branch.node[0].input[-1] == "xs"
    assert "assumed to be exact, which holds up to 16777216" in report.loops[0].notes[0]


def test_a_range_of_half_floats_is_not_known_to_be_exact() -> None:
    after, _ = becomes(loop_to_scan, downward(onnx.TensorProto.FLOAT16), T=3)
    (branch,) = [a.g for a in after.graph.node[-1].attribute if a.name == "then_branch"]
    assert branch.node[-1].input[-1] != "xs"


def test_a_count_that_is_one_at_least_needs_no_branch() -> None:
    text = loop(
        INSIDE,
        steps=None,
        given="float[2] s, float[T,2] xs, float[3,2] ws",
        before="n = Shape (xs) k = Gather (n, zero) m = Add (k, one)",
        weights="int64 zero = {0}, int64 one = {1}",
    ).replace("Gather (xs, i)", "Gather (ws, i)").replace(", int64 m) =>", ") =>")  # fmt: skip
    after, _ = becomes(loop_to_scan, text, T=1)
    assert "If" not in [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("steps", [0, 2])
def test_results_without_a_step_have_the_sizes_that_are_declared(steps: int) -> None:
    """onnxruntime gives 0 for those that are not."""
    text = loop(
        "x = Gather (xs, i) h1 = Add (h, x) y = Concat <axis = 1> (h, h)",
        steps=None,
        inputs="float[B,2] h",
        outputs="float[B,2] h1, float[B,4] y",
        given="float[B,2] s, float[3,2] xs",
        results="float[B,2] z, float[N,B,4] ys",
    )
    becomes(loop_to_scan, text, feeds={"m": np.array(steps)} | data(read(text), B=3, m=1), on_ort=steps > 0)


BACKWARDS = "j = Sub (two, i) x = Gather (xs, j) h1 = Add (h, x) y = Tanh (h)"


def test_rows_read_from_the_last_to_the_first_are_scanned_in_reverse() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop(BACKWARDS, weights="int64 two = {2}"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (h, x) => (h1, y) {
                h1 = Add (h, x)  y = Tanh (h)
            }> (s, xs) }""",
    )


def test_rows_at_negative_places_stay_a_gather() -> None:
    """A Gather counts those from the end."""
    after, _ = becomes([loop_to_scan, dead_code], loop(BACKWARDS, weights="int64 two = {1}"))
    assert any(node.op_type == "Gather" for node in after.graph.node[-1].attribute[0].g.node)


def test_rows_from_some_place_on_are_a_slice() -> None:
    text = loop(BACKWARDS.replace("Sub (two, i)", "Add (two, i)"), given="float[2] s, float[7,2] xs", weights="int64 two = {2}")
    after, _ = becomes([loop_to_scan, dead_code], text)
    assert [node.op_type for node in after.graph.node] == ["Slice", "Scan"]


def test_before_opset_9_there_is_no_such_scan() -> None:
    stays(loop_to_scan, loop(INSIDE), "LOOP-OPSET", opset=8)


def test_a_loop_with_a_sequence_stays() -> None:
    text = loop(
        "x = Gather (xs, i) h1 = SequenceInsert (h, x) y = Tanh (x)",
        inputs="seq(float[2]) h",
        outputs="seq(float[2]) h1, float[2] y",
        before="q = SequenceConstruct (s)",
        operands="q",
        results="seq(float[2]) z, float[N,2] ys",
    )
    stays(loop_to_scan, text, "LOOP-SEQUENCE")


def test_a_state_that_changes_its_shape_stays() -> None:
    text = loop(
        "h1 = Concat <axis = 0> (h, s) y = Gather (xs, i)",
        inputs="float[M] h",
        outputs="float[K] h1, float[2] y",
        results="float[L] z, float[N,2] ys",
    )
    stays(loop_to_scan, text, "LOOP-STATE-SHAPE")


def test_a_scan_is_one_already() -> None:
    stays(loop_to_scan, scan("h1 = Add (h, x) y = Tanh (h)"))


def test_the_result_is_sound_for_the_other_rules() -> None:
    text = loop("", outputs="float[2] h, int64 i, bool c", outer="z, n, k", results="float[2] z, int64[N] n, bool[N] k")
    after, report = apply(text, RULES)
    assert "Loop" not in [node.op_type for node in after.graph.node]
    assert own_outputs.RULE.name in patches(report)


def test_too_few_rows_still_fail_after_onnxruntime_has_optimised_the_reading():
    text = """g (int64 m, float[N,3] x, float[3] h0) => (float[3] hn, float[K,3] ys) <bool on = {1}> {
        hn, ys = Loop (m, on, h0) <body = b (int64 i, bool c, float[3] h) => (bool d, float[3] h1, float[3] y) {
            d = Identity (c) a = Gather <axis = 0> (x, i) h1 = Add (h, a) y = Mul (h1, a) }>
    }"""
    model = model_from_text(text, 17, check=False)
    result = ortscan.optimize(model)
    feeds = {"m": np.array(7), "x": np.ones((6, 3), np.float32), "h0": np.zeros(3, np.float32)}
    for one in (model, result):
        with pytest.raises(Exception, match="indices element"):
            ort.InferenceSession(one.SerializeToString()).run(None, feeds)


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_the_size_of_no_step_is_not_that_of_steps(opset: int) -> None:
    text = loop(INSIDE, steps=None, results="float[2] z, float[N,2] ys, int64[2] sizes", after="sizes = Shape (ys)")
    for steps in (0, 3):
        becomes(
            loop_to_scan,
            text,
            opset=opset,
            feeds={"s": np.ones(2, np.float32), "xs": np.ones((3, 2), np.float32), "m": np.array(steps)},
        )


PLACES = {
    "i": "p = Identity (i)",
    "i + 1": "p = Add (i, k1)",
    "i - 1": "p = Sub (i, k1)",
    "i + 1 - 1": "q = Add (i, k1) p = Sub (q, k1)",
    "n - 1 - i": "q = Sub (n, i) p = Sub (q, k1)",
    "n - i": "p = Sub (n, i)",
    "2 - i": "p = Sub (k2, i)",
    "2 * i": "p = Mul (i, k2)",
    "i mod 2": "p = Mod (i, k2)",
    "a counter from 1": "p = Identity (c)",
    "a counter from 1 as one element": "p = Unsqueeze (c, v0)",
    "a falling counter from 3": "p = Identity (d)",
    "a count in floats": "f = Cast <to = 1> (i) p = Cast <to = 7> (f)",
    "2": "p = Identity (k2)",
}
SOURCES = {"x": 0, "y": 1, "z": 0}
FOUND = {
    "i": True,
    "i + 1 - 1": True,
    ("n - 1 - i", "n"): True,
    ("n - 1 - i", "k3"): False,
    ("n - 1 - i", "m"): False,
    "i - 1": False,
    "2 * i": False,
    "i mod 2": False,
    ("a count in floats", "k3"): True,
    "a count in floats": False,
    "2": False,
}
"""Whether reads are found, whatever the trip count or for one."""


def text_of(place: str, limit: str) -> str:
    reads = " ".join(f"{source}o = Gather <axis = {axis}> ({source}, p)" for source, axis in SOURCES.items())
    return f"""g (float[T,2] x, float[2,U] y, float[4,3] z, int64 m) => (float[] xs, float[] ys, float[] zs)
        <int64 k0 = {{0}}, int64 k1 = {{1}}, int64 k2 = {{2}}, int64 k3 = {{3}}, int64[1] v0 = {{0}}> {{
        s = Shape (x) n = Gather (s, k0) n1 = Sub (n, k1)
        ce, de, xs, ys, zs = Loop <body = body (int64 i, bool go, int64 c, int64 d) => (bool go1, int64 c1, int64 d1, float[] xo, float[] yo, float[] zo) {{
            go1 = Identity (go) c1 = Add (c, k1) d1 = Sub (d, k1) {PLACES[place]} {reads} }}> ({limit}, , k1, k3) }}"""


def number_in(expression: AffineExpression, feeds: dict[str, np.ndarray]) -> int:
    total = int(expression.const.item())
    for symbol in expression.terms:
        assert symbol != STEP
        if isinstance(symbol, Dim):
            total += expression.factor(symbol) * feeds[symbol.value.name or ""].shape[symbol.axis]
        else:
            assert isinstance(symbol, ir.Value)
            total += expression.factor(symbol) * int(feeds[symbol.name or ""])
    return total


def places_of(one: RowRead, feeds: dict[str, np.ndarray], count: int) -> list[int]:
    """Where a read is said to read in each step."""
    start, sign = number_in(one.start, feeds), -1 if one.reverse else 1
    return [start + sign * step for step in range(count)]


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        return ort_run(model, feeds, optimised=False)
    except Exception:
        return None


@pytest.mark.parametrize("limit", ["n", "n1", "k3", "m"])
@pytest.mark.parametrize("place", PLACES)
def test_the_rows_found_are_the_rows_read(place: str, limit: str) -> None:
    before = read(text_of(place, limit), check=False)
    ctx = prepared(text_of(place, limit), check=False)
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, LoopView)
    steps = trip_count(loop, ctx.opset)
    assert steps is not None
    found = row_reads(loop, integers_of(loop, ctx.opset, steps), steps)
    assert [(one.source.name, one.axis) for one in found] == [(name, axis) for name, axis in SOURCES.items() if found]
    assert bool(found) == FOUND.get((place, limit), FOUND.get(place, bool(found)))
    for one in found:
        b = ctx.builder()
        ctx.model.graph.outputs.append(one.emit_rows(b, steps, as_vector(b, emit(b, steps))))
        b.insert_before(loop.node)
    after = ir.to_proto(ctx.model)
    for size in (1, 2, 4, 5):
        numbers = {"x": np.arange(size * 2).reshape(size, 2), "y": np.arange(8).reshape(2, 4), "z": np.arange(12).reshape(4, 3)}
        feeds = {**{name: array.astype(np.float32) for name, array in numbers.items()}, "m": np.array(size)}
        count, stacks, all_there = number_in(steps, feeds), run(before, feeds), True
        for one in found:
            source, places = feeds[one.source.name or ""], places_of(one, feeds, count)
            there = [0 <= at < source.shape[one.axis] for at in places]
            all_there = all_there and all(there)
            assert min(places, default=0) >= 0
            assert not one.exceeds_source(steps) or not all(there) or not count
            if places:
                assert number_in(one.lowest_index(steps), feeds) == min(places)
            if stacks is not None and places:
                wanted = np.stack([source.take([at] if one.unit_axes else at, one.axis) for at in places])
                np.testing.assert_array_equal(stacks[list(SOURCES).index(one.source.name or "")], wanted)
        assert all_there or stacks is None
        results = run(after, feeds)
        if stacks is not None and count:
            assert results is not None
            for one, rows in zip(found, results[len(SOURCES) :], strict=True):
                places = sorted(places_of(one, feeds, count))
                np.testing.assert_array_equal(rows, feeds[one.source.name or ""].take(places, one.axis))
