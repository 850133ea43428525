import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from rewrites.base.abilities import Abilities, UnrollLimits
from rewrites.graph.context import Options
from rewrites.loop_form import no_steps
from rewrites.repair import own_outputs
from rewrites.unroll import unroll
from tests.rewrites.apply import apply, patches, reasons
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

FAR = Options(unroll=UnrollLimits(None, 20_000))
INSIDE = "h1 = Add (h, x) y = Tanh (h1)"
GATHERED = "x = Gather (xs, i) h1 = Add (h, x) y = Tanh (h1)"


def unrolled(text: str, options: Options = FAR, **given: object) -> onnx.ModelProto:
    """The model of `text` with its loops written out, equal to it in numbers; no loop is left."""
    after, _ = becomes(unroll, text, options=options, **given)  # type: ignore[arg-type]
    assert not loops(after)
    return after


def kept(text: str, *codes: str, options: Options = FAR, opset: int = 18, check: bool = True) -> None:
    after, report = apply(text, [unroll], options=options, opset=opset, check=check)
    assert patches(report) == []
    assert reasons(report) == list(codes)
    assert loops(after)


def loops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in ir.from_proto(model).graph.all_nodes() if node.op_type in ("Scan", "Loop")]


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_a_scan_becomes_its_steps() -> None:
    after, _ = becomes(
        unroll,
        scan(INSIDE),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) <int64[1] flat = {6}, int64[2] shape = {3, 2}> {
            rows = Reshape (xs, flat)  x0, x1, x2 = Split <axis = 0, num_outputs = 3> (rows)
            h1 = Add (s, x0)  y0 = Tanh (h1)  h2 = Add (h1, x1)  y1 = Tanh (h2)  z = Add (h2, x2)  y2 = Tanh (z)
            joined = Concat <axis = 0> (y0, y1, y2)  ys = Reshape (joined, shape)
        }""",
        options=FAR,
    )
    assert not loops(after)


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21, 25])
def test_scans_of_every_opset_are_written_out(opset: int) -> None:
    unrolled(scan(INSIDE), opset=opset)


@pytest.mark.parametrize("directions", ["[0], scan_output_directions = [1]", "[1], scan_output_directions = [0]", "[1]"])
@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (1, 1), (-1, -1)])
def test_axes_and_directions_are_kept(axes: tuple[int, int], directions: str) -> None:
    attributes = f"num_scan_inputs = 1, scan_input_directions = {directions}, scan_input_axes = [{axes[0]}]"
    shape = "float[2,3]" if axes[1] else "float[3,2]"
    given = "float[2] s, float[3,2] xs" if not axes[0] else "float[2] s, float[2,3] xs"
    text = scan(INSIDE, attributes=f"{attributes}, scan_output_axes = [{axes[1]}]", given=given, results=f"float[2] z, {shape} ys")
    unrolled(text)


@pytest.mark.parametrize("opset", [11, 13, 18, 25])
def test_a_loop_becomes_its_steps_with_their_numbers_folded(opset: int) -> None:
    after = unrolled(loop("n = Cast <to = 1> (i) a = Mul (n, n) h1 = Add (h, a) y = Neg (h1)"), opset=opset)
    assert "Cast" not in ops(after)
    assert ops(after).count("Mul") == 0


def test_rows_read_at_the_number_of_the_step_are_read_as_they_are() -> None:
    unrolled(loop(GATHERED))


def test_rows_of_a_constant_are_constants() -> None:
    after = unrolled(
        scan(
            "a = Mul (x, x) h1 = Add (h, a) y = Neg (h1)",
            given="float[2] s",
            operands="s, xs",
            weights="float[3,2] xs = {1,2,3,4,5,6}",
        )
    )
    assert set(ops(after)) == {"Add", "Neg", "Concat", "Reshape"}


def test_results_that_nobody_reads_are_not_stacked() -> None:
    after = unrolled(scan(INSIDE, results="float[2] z"))
    assert "Concat" not in ops(after)
    assert "Tanh" not in ops(after)


def test_work_that_all_steps_repeat_is_done_once() -> None:
    after = unrolled(scan("w = Exp (v) a = Mul (x, w) h1 = Add (h, a) y = Neg (h1)", given="float[2] s, float[3,2] xs, float[2] v"))
    assert ops(after).count("Exp") == 1


@pytest.mark.parametrize(
    "outputs", ["float[2] h, float[2] h", "float[2] x, float[2] x", "float[2] h, float[2] x", "float[2] x, float[2] h"]
)
def test_what_a_step_returns_as_it_was_given_is_passed_on(outputs: str) -> None:
    text = scan("", outputs=outputs)
    after, _ = apply(text, [own_outputs, unroll], options=FAR)
    feeds = data(after)
    assert_same_numbers(ort_run(after, feeds), [*run_model(onnx.parser.parse_model(header(text)), feeds)])


def header(text: str) -> str:
    return f'<ir_version: 10, opset_import: ["": 18]>\n{text}'


@pytest.mark.parametrize("kind", ["string", "bool", "float16", "double", "uint8", "int64"])
@pytest.mark.parametrize("inner", ["", "[2]", "[N]"])
def test_every_type_may_be_split_and_stacked(kind: str, inner: str) -> None:
    rows = f"[3,{inner[1]}]" if inner else "[3]"
    text = scan(
        "h1 = Identity (x) y = Identity (h)",
        inputs=f"{kind}{inner} h, {kind}{inner} x",
        outputs=f"{kind}{inner} h1, {kind}{inner} y",
        given=f"{kind}{inner} s, {kind}{rows} xs",
        results=f"{kind}{inner} z, {kind}{rows} ys",
    )
    unrolled(text)


def test_types_that_cannot_be_split_keep_their_loop() -> None:
    text = scan(
        "h1 = Identity (x) y = Identity (h)",
        inputs="float8e4m3fn[2] h, float8e4m3fn[2] x",
        outputs="float8e4m3fn[2] h1, float8e4m3fn[2] y",
        given="float8e4m3fn[2] s, float8e4m3fn[3,2] xs",
        results="float8e4m3fn[2] z, float8e4m3fn[3,2] ys",
    )
    kept(text, "UNROLL-TYPE", opset=21)


def test_free_sizes_are_stacked_without_knowing_them() -> None:
    sizes = {
        "inputs": "float[A,B] h, float[A,B] x",
        "outputs": "float[A,B] h1, float[A,B] y",
        "given": "float[A,B] s, float[3,A,B] xs",
        "results": "float[A,B] z, float[3,A,B] ys",
    }
    for a, b in ((2, 3), (0, 3), (1, 1), (2, 0)):
        unrolled(scan(INSIDE, **sizes), A=a, B=b)


def test_a_batch_may_be_empty() -> None:
    sizes = {
        "inputs": "float[B,2] h, float[B,2] x",
        "outputs": "float[B,2] h1, float[B,2] y",
        "given": "float[B,2] s, float[3,B,2] xs",
        "results": "float[B,2] z, float[3,B,2] ys",
    }
    for batch in (0, 1, 4):
        unrolled(scan(INSIDE, **sizes), B=batch)


def test_values_from_around_are_read_from_there() -> None:
    text = scan(
        "a = Add (x, v) h1 = Mul (a, w) y = Add (h1, h)",
        given="float[2] s, float[3,2] xs, float[2] v0",
        before="v = Neg (v0)",
        weights="float[2] w = {2, 3}",
    )
    unrolled(text)


def test_branches_and_loops_in_the_body_are_copied_with_it() -> None:
    branch = (
        "y = If (p) <then_branch = t () => (float[2] y1) { y1 = Add (h, x) }, else_branch = e () => (float[2] y1) { y1 = Neg (x) }>"
    )
    text = scan(f"m = ReduceSum <keepdims = 0> (x) p = Greater (m, k) {branch} h1 = Add (h, y)", weights="float k = {0}")
    after = unrolled(text)
    assert ops(after).count("If") == 3


def test_an_inner_loop_whose_length_is_the_number_of_the_outer_step_is_written_out_after_it() -> None:
    inner = """h1, unused = Loop <body = c (int64 j, bool d, float[2] g) => (bool d1, float[2] g1, float[2] u) {
        d1 = Identity (d) g1 = Add (g, one) u = Neg (g) }> (i, t, h)"""
    text = loop(f"{inner} y = Neg (h1)", weights="float one = {1}, bool t = {1}", given="float[2] s")
    after, _ = becomes([unroll, no_steps], text, options=FAR)
    assert not loops(after)


def test_branches_that_the_number_of_the_step_decides_are_taken() -> None:
    branch = (
        "y = If (p) <then_branch = t () => (float[2] a) { a = Add (h, h) }, else_branch = e () => (float[2] a) { a = Neg (h) }>"
    )
    text = loop(f"p = Equal (i, one) {branch} h1 = Add (h, y)", weights="int64 one = {1}", given="float[2] s")
    after = unrolled(text)
    assert "If" not in ops(after)
    assert ops(after).count("Neg") == 2


def test_states_whose_shape_changes_from_step_to_step_are_written_out() -> None:
    text = loop(
        "h1 = Concat <axis = 0> (h, s) y = ReduceSum <keepdims = 0> (h1)",
        inputs="float[N] h",
        outputs="float[M] h1, float y",
        results="float[K] z, float[J] ys",
        given="float[2] s",
    )
    after = unrolled(text, check=False)
    assert ort_run(after, {"s": np.ones(2, np.float32)})[0].shape == (8,)


def test_sequences_grow_step_by_step() -> None:
    text = """<ir_version: 8, opset_import: ["": 16]> g (float[2] s) => (float[K] z) <int64 m = {3}> {
        q0 = SequenceEmpty <dtype = 1> ()
        q = Loop <body = b (int64 i, bool c, seq(float[2]) a) => (bool c1, seq(float[2]) a1) {
            c1 = Identity (c)  n = Cast <to = 1> (i)  e = Add (s, n)  a1 = SequenceInsert (a, e) }> (m, , q0)
        z = ConcatFromSequence <axis = 0> (q) }"""
    after, _ = apply(text, [unroll], options=FAR, feeds={"s": np.ones(2, np.float32)}, check=False)
    assert not loops(after)


def test_names_in_the_body_do_not_clash_with_names_outside() -> None:
    text = scan(
        "a = Add (h, x) h1 = Neg (a) y = Tanh (a)",
        given="float[2] h, float[3,2] x",
        operands="h, x",
        results="float[2] a, float[3,2] y, float[2] h1",
        outer="h1, y",
        after="a = Exp (h1)",
    )
    after = unrolled(text, check=False)
    assert [info.name for info in after.graph.output] == ["a", "y", "h1"]
    names = [name for node in after.graph.node for name in node.output]
    assert len(names) == len(set(names))
    assert len({node.name for node in after.graph.node}) == len(after.graph.node)


@pytest.mark.parametrize("take", ["last = Gather <axis = 0> (ys, k)", "l = Slice (ys, k1, end, zero) last = Squeeze (l, zero)"])
def test_who_reads_the_last_step_reads_it_where_it_is_made(take: str) -> None:
    weights = "int64 k = {-1}, int64[1] k1 = {-1}, int64[1] end = {9223372036854775807}, int64[1] zero = {0}"
    after = unrolled(scan(INSIDE, results="float[2] last", after=take, weights=weights))
    assert set(ops(after)) == {"Reshape", "Split", "Add", "Tanh"}
    assert ops(after).count("Tanh") == 1


def test_the_last_step_is_found_batch_first_too() -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        inputs="float[4,2] h, float[4,2] x",
        outputs="float[4,2] h1, float[4,2] y",
        given="float[4,2] s, float[3,4,2] xs",
        results="float[4,2] last",
        after="t = Transpose <perm = [1, 0, 2]> (ys) last = Gather <axis = 1> (t, k)",
        weights="int64 k = {-1}",
    )
    assert "Concat" not in ops(unrolled(text))


@pytest.mark.parametrize("size", ["2", "B"])
@pytest.mark.parametrize("take", ["first = Gather (ys, k)", "first = Gather <axis = 1> (ys, k)"])
def test_the_parts_of_the_only_step_are_not_taken_for_steps(size: str, take: str) -> None:
    text = scan(
        "low, high = Split <axis = 0, num_outputs = 2> (h) h1 = Concat <axis = 0> (high, x) y = Identity (h1)",
        inputs="float[4] h, float[2] x",
        outputs="float[4] h1, float[4] y",
        given=f"float[4] s, float[1,{size}] xs",
        results="float[N] first",
        after=take,
        weights="int64 k = {0}",
    )
    unrolled(text.replace("float[2] x", f"float[{size}] x"), B=2)


def test_who_reads_all_steps_reads_the_stack() -> None:
    after = unrolled(
        scan(
            INSIDE,
            results="float[2] r, float[2] first",
            after="r = ReduceMax <keepdims = 0> (ys, k) first = Gather (ys, z0)",
            weights="int64[1] k = {0}, int64 z0 = {0}",
        )
    )
    assert ops(after).count("Concat") == 1
    assert "Gather" not in ops(after)


def test_the_limits_are_kept() -> None:
    kept(scan(INSIDE), "UNROLL-STEPS", options=Options(unroll=UnrollLimits(2, 1000)))
    kept(scan(INSIDE), "UNROLL-NODES", options=Options(unroll=UnrollLimits(3, 9)))
    unrolled(scan(INSIDE), Options(unroll=UnrollLimits(3, 10)))
    kept(scan(INSIDE), options=Options(unroll=UnrollLimits(0)))


def test_a_billion_steps_are_refused_at_once() -> None:
    big = scan(INSIDE, given="float[2] s, float[1000000000,2] xs", results="float[2] z, float[1000000000,2] ys")
    kept(big, "UNROLL-NODES")


def test_where_only_gains_count_loops_that_read_rows_are_kept() -> None:
    paying = Options(unroll=UnrollLimits(16, 4096, where_it_pays=True))
    kept(scan(INSIDE), "COST-UNROLL", options=paying)
    unrolled(loop("h1 = Add (h, h) y = Neg (h)", results="float[2] z", given="float[2] s"), paying)


def test_an_unknown_number_of_steps_is_named_where_the_target_runs_no_loops() -> None:
    free = scan(INSIDE, given="float[2] s, float[T,2] xs", results="float[2] z, float[T,2] ys")
    kept(free)
    kept(free, "UNROLL-UNKNOWN", options=Options(target=Abilities("coreml", frozenset(), {}), unroll=FAR.unroll))


def test_random_numbers_with_a_seed_keep_their_loop() -> None:
    body = "r = RandomUniform <shape = [2], seed = 1.0> () h1 = Add (h, r) y = Neg (x)"
    kept(scan(body), "RANDOM")
    kept(scan("r = Bernoulli (x) h1 = Add (h, r) y = Neg (x)"), "RANDOM")
    train = "half = Constant <value_float = 0.5> () yes = Constant <value = bool {1}> () "
    kept(scan(f"{train} r = Dropout <seed = 5> (x, half, yes) h1 = Add (h, r) y = Neg (x)"), "RANDOM")
    after, _ = apply(scan(body.replace(", seed = 1.0", "")), [unroll], options=FAR)
    assert ops(after).count("RandomUniform") == 3


def test_operators_of_unknown_domains_keep_their_loop() -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "own": 1]>""" + scan("h1 = own.Step (h, x) y = Neg (x)")
    kept(text, "UNROLL-MEMORY", check=False)


def test_large_constants_of_single_steps_are_not_made() -> None:
    body = "n = Cast <to = 1> (i) e = Expand (n, shape) h1 = Add (h, e) y = ReduceSum <keepdims = 0> (h1)"
    shapes = {
        "inputs": "float[1000] h",
        "outputs": "float[1000] h1, float y",
        "given": "float[1000] s",
        "results": "float[1000] z, float[3] ys",
    }
    text = loop(body, **shapes, weights="int64[1] shape = {1000}")
    assert "Expand" not in ops(unrolled(text))
    after = unrolled(text, Options(unroll=UnrollLimits(None, 20_000, bytes=10_000)))
    assert ops(after).count("Expand") == 3
    assert sum(numpy_helper.to_array(t).nbytes for t in after.graph.initializer) < 10_000
