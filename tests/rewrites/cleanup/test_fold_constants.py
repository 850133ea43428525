import numpy as np
import onnx_ir as ir
import pytest

from rewrites.cleanup import fold_constants
from rewrites.loop_form import loop_to_scan
from rewrites.loops import view
from rewrites.rule import Patch
from tests.rewrites.apply import apply, one_loop, prepared, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_a_constant_node_becomes_an_initializer(opset: int) -> None:
    becomes(
        fold_constants,
        scan("k = Constant <value = float[2] {1, 2}> () h1 = Add (h, k) y = Tanh (h)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) <float[2] k = {1, 2}> {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, k)  y = Tanh (h) }> (s, xs) }""",
        opset=opset,
    )


def test_work_on_constants_is_done_once() -> None:
    becomes(
        fold_constants,
        scan(
            "a = Constant <value_floats = [1.0, 2.0]> () k = Add (a, w) k2 = Mul (k, k) h1 = Add (h, k2) y = Tanh (h)",
            weights="float[2] w = {3, 4}",
        ),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) <float[2] k = {16, 36}> {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, k)  y = Tanh (h) }> (s, xs) }""",
    )


@pytest.mark.parametrize(("opset", "shape"), [(9, "Shape (x)"), (18, "Shape <start = -2> (x)"), (18, "Shape <end = 2> (x)")])
def test_a_known_shape_is_a_constant(opset: int, shape: str) -> None:
    wide = {"inputs": "float[2] h, float[4,2] x", "given": "float[2] s, float[3,4,2] xs", "outputs": "float[2] h1, float[2,4] y"}
    becomes(
        fold_constants,
        scan(
            f"n = {shape} o = Gather (n, order) h1 = Neg (h) y = Reshape (x, o)",
            **wide,
            results="float[2] z, float[3,2,4] ys",
            weights="int64[2] order = {1, 0}",
        ),
        scan("h1 = Neg (h) y = Reshape (x, o)", **wide, results="float[2] z, float[3,2,4] ys", weights="int64[2] o = {2, 4}"),
        opset=opset,
    )


def test_part_of_a_shape_is_known_where_the_rest_is_not() -> None:
    wide = {
        "inputs": "float[2] h, float[R,2] x",
        "given": "float[2] s, float[3,R,2] xs",
        "outputs": "float[2] h1, int64[1] y",
        "results": "float[2] z, int64[3,1] ys",
    }
    inside = "n = Shape <start = {}> (x) y = Identity (n) h1 = Neg (h)"
    becomes(
        fold_constants, scan(inside.format(1), **wide), scan("y = Identity (n) h1 = Neg (h)", **wide, weights="int64[1] n = {2}")
    )
    two = wide | {"outputs": "float[2] h1, int64[2] y", "results": "float[2] z, int64[3,2] ys"}
    stays(fold_constants, scan(inside.format(0), **two))
    stays(fold_constants, scan(inside.replace("Shape <start = {}>", "Size").replace("int64[1]", "int64"), **wide), check=False)


def test_an_initializer_that_can_be_fed_is_no_constant() -> None:
    text = scan(
        "k = Neg (w) h1 = Add (h, k) y = Tanh (h)", given="float[2] s, float[3,2] xs, float[2] w", weights="float[2] w = {3, 4}"
    )
    stays(fold_constants, text)


STAY = {
    "a body output": "h1 = Constant <value_floats = [1.0, 2.0]> () y = Tanh (h)",
    "random": "k = RandomUniform <shape = [2]> () h1 = Add (h, k) y = Tanh (h)",
    "large": "k = Expand (one, many) e = ReduceSum <keepdims = 0> (k) h1 = Add (h, e) y = Tanh (h)",
    "of unknown size": "k = Unique (w) e = ReduceSum <keepdims = 0> (k) h1 = Add (h, e) y = Tanh (h)",
    "a branch": "e = ReduceSum <keepdims = 0> (h) p1 = Greater (e, zero) k = If (p1) <then_branch = p () => (float[2] u) { u = Neg (w) }, else_branch = q () => (float[2] v) { v = Abs (w) }> "
    "h1 = Add (h, k) y = Tanh (h)",
    "failing": "k = Gather (w, nine) h1 = Add (h, k) y = Tanh (h)",
}
WEIGHTS = "float zero = {0}, float one = {1}, int64[1] many = {1000000}, float[2] w = {1, 2}, int64 nine = {9}"


@pytest.mark.parametrize("case", STAY)
def test_what_stays(case: str) -> None:
    stays(fold_constants, scan(STAY[case], weights=WEIGHTS))


def test_strings_stay() -> None:
    stays(
        fold_constants,
        scan(
            "k = Constant <value_string = 'a'> () e = Equal (k, k) f = Cast <to = 1> (e) h1 = Add (h, f) y = Tanh (h)".replace(
                "'", '"'
            )
        ),
        opset=19,
    )


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "double", "int8", "bool", "float8e4m3fn"])
def test_constants_of_every_type_keep_their_bits(kind: str) -> None:
    text = scan(f"k = Constant <value = {kind}[2] {{1, 1}}> () f = Cast <to = 1> (k) h1 = Add (h, f) y = Tanh (h)")
    becomes(fold_constants, text, opset=21)


def test_a_zero_with_a_sign_keeps_it() -> None:
    text = scan(
        "k = Constant <value_float = -0.0> () n = Constant <value_float = 0.0> () a = Div (x, k) b = Div (x, n) h1 = Add (h, x) y = Max (a, b)"
    )
    becomes(fold_constants, text)


def test_in_a_loop_that_may_not_run_too() -> None:
    text = loop("k = Constant <value_floats = [1.0, 2.0]> () h1 = Add (h, k) y = Tanh (h)", steps=None)
    becomes(fold_constants, text, feeds={"m": np.array(0)})


def test_the_declared_size_of_a_growing_state_is_not_believed() -> None:
    text = loop(
        "n = Size (h) y = Identity (n) h1 = Concat <axis = 0> (h, s)",
        outputs="float[2] h1, int64 y",
        results="float[M] z, int64[N] ys",
    )
    stays(fold_constants, text, check=False)


def test_an_input_that_is_left_out_is_no_obstacle() -> None:
    becomes(
        fold_constants,
        scan("k = Clip (w, , one) h1 = Add (h, k) y = Tanh (h)", weights="float[2] w = {0.5, 4}, float one = {1}"),
        scan("h1 = Add (h, k) y = Tanh (h)", weights="float[2] k = {0.5, 1}"),
    )


def test_a_weight_of_the_body_hides_an_outer_one_of_its_name() -> None:
    text = scan(
        "k = Neg (w) h1 = Add (h, k) y = Tanh (h)", before="v = Add (s, w)", operands="v, xs", weights="float[2] w = {5, 6}"
    )
    becomes(
        fold_constants,
        text.replace("{ k = Neg", "<float[2] w = {1, 2}> { k = Neg"),
        scan(
            "h1 = Add (h, k) y = Tanh (h)",
            before="v = Add (s, w)",
            operands="v, xs",
            weights="float[2] w = {5, 6}, float[2] k = {-1, -2}",
        ),
        check=False,
    )


@pytest.mark.parametrize("by", ["0", "-1"])
def test_integers_are_not_divided_by_what_could_end_the_process(by: str) -> None:
    text = loop("k = Div (m, d) f = Cast <to = 1> (k) h1 = Add (h, f) y = Tanh (h)", weights=f"int64 d = {{{by}}}", steps=0)
    stays(fold_constants, text)
    becomes(fold_constants, text.replace(f"d = {{{by}}}", "d = {2}"))


def test_what_reads_a_folded_constant_learns_its_shape() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2] s, float[3,2] xs) => (float[2] z, float[3,n] ys) {
        z, ys = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1, float[m] y) {
            i = Constant <value = int64[2] {3, 2}> ()  j = Neg (i)  k = Abs (j)  e = Expand (x, k)  t = Tanh (e)  y = Flatten <axis = 0> (t)
            h1 = Add (h, x)
        }> (s, xs)
    }""".replace("float[m] y", "float[m, o] y").replace("float[3,n] ys", "float[3, n, p] ys")
    ctx = prepared(text)
    loop = one_loop(ctx)
    body = loop.attributes["body"].as_graph()
    for node in body:
        if node.op_type in ("Expand", "Tanh", "Flatten"):
            node.outputs[0].shape = ir.Shape([None, None])
    outcome = fold_constants.check(view(loop, 18), ctx)
    assert isinstance(outcome, Patch)
    outcome.edit()
    shapes = {node.op_type: list(node.outputs[0].shape or ()) for node in body}
    assert shapes["Expand"] == shapes["Tanh"] == [3, 2]
    assert shapes["Flatten"] == [1, 6]


CHOICE = "If ({}) <then_branch = p () => (float[2] p1) {{ p1 = Exp (h) }}, else_branch = q () => (float[2] q1) {{ q1 = Neg (h) }}>"


def test_an_if_on_what_becomes_a_constant_is_the_branch_it_takes() -> None:
    """The condition of a Loop that is never stopped is true in its body."""
    after, report = becomes([loop_to_scan, fold_constants], loop(f"h1 = Add (h, h) y = {CHOICE.format('c')}"))
    assert "replaced Ifs with constant conditions by one branch" in report.patches[-1].what
    assert "If" not in [node.op_type for node in ir.from_proto(after).graph.all_nodes()]


def test_an_if_on_data_stays() -> None:
    stays(fold_constants, scan(f"h1 = Add (h, x) y = {CHOICE.format('t')}", given="float[2] s, float[3,2] xs, bool t"))


@pytest.mark.parametrize("opset", [16, 17])
def test_an_optional_is_no_constant(opset: int) -> None:
    inside = "w = Constant <value = float[2] {1, 2}> () o = Optional (w) y = OptionalGetElement (o) h1 = Add (h, y)"
    model = read(loop(inside), opset, check=False)
    feeds = data(model)
    after, _ = apply(model, [fold_constants], feeds=feeds, check=False)
    assert "Optional" in {node.op_type for node in ir.from_proto(after).graph.all_nodes()}
