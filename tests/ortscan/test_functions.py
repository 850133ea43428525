"""Models with functions: branches before opset 11, pairs that onnxruntime crashes on, and functions that call each other."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.quirks import dies, fate_of
from tests.support.runtime import ort_run
from tests.support.text import parsed

SCANNED = """z = my.f (x, c) l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] s1, float[3] v) {
    s1 = Add (s, r) v = Tanh (s1) }> (h, z)"""
CALLED_BY_ANOTHER = SCANNED.replace("my.f", "my.g")
JOINED = SCANNED.replace("z = my.f (x, c)", "w = my.f (x, c) z = Concat <axis = 0> (w, x)")
IN_A_BODY = """l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] s1, float[3] v) {
    z = my.f (x, c) k = ReduceMean <axes = [0], keepdims = 0> (z) s1 = Add (s, r) v = Mul (s1, k) }> (h, x)"""
MODEL = """<ir_version: 8, opset_import: ["": OPSET, "my": 1]>
g (float[N,3] x, bool c, float[3] h) => (float[3] l, float[M,3] y) { BODY }
<domain: "my", opset_import: ["": OPSET, "my": 1]> g (x, c) => (y) { y = my.f (x, c) }
<domain: "my", opset_import: ["": OPSET]> f (x, c) => (y) {
    o = Constant <value = float[2,3] {1, 2, 3, 4, 5, 6}> ()
    y = If (c) <then_branch = t () => (float[2,3] a) { a = Identity (o) }, else_branch = e () => (float[K,3] b) { b = Neg (x) }> }"""


@pytest.mark.parametrize("opset", [9, 10])
@pytest.mark.parametrize("body", [SCANNED, CALLED_BY_ANOTHER, JOINED, IN_A_BODY])
def test_no_size_of_one_branch_is_taken_for_that_of_the_other(body: str, opset: int) -> None:
    model = parsed(MODEL.replace("BODY", body).replace("OPSET", str(opset)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = [ortscan.optimize(model, opset="keep", target=target, verify=False) for target in ("cpu", "coreml")]
        made.append(ortscan.migrate(model, 18, verify=False))
    for rows in (3, 4):
        for flag in (True, False):
            feeds = {"c": np.array(flag), "x": np.ones((rows, 3), np.float32), "h": np.ones(3, np.float32)}
            for after in made:
                assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


SCAN = """<ir_version: 8, opset_import: ["": 14, "my": 1]> g (KIND[1,T,2] x, float16[2,1] v) => (KIND[1,1] last, KIND[T,1,1] ys)
    <KIND[1,1] h = {0}, float16[2,1] w = {15360, 16384}, float[2,1] d = {1, 2}> {
    TURNED
    last, ys = Scan <num_scan_inputs = 1, body = b (KIND[1,1] s, float16[1,2] r) => (KIND[1,1] s1, KIND[1,1] y) {
        PRODUCT a = Mul (p, s) s1 = Tanh (a) y = Identity (s1) }> (h, t)
}
<domain: "my", opset_import: ["": 14]> turn (x) => (t) { t = Transpose <perm = [1, 0, 2]> (x) }
<domain: "my", opset_import: ["": 14]> pair (x) => (s, t) { s = Neg (x) t = Transpose <perm = [1, 0, 2]> (x) }
<domain: "my", opset_import: ["": 14]> product (r, w) => (p) { p = MatMul (r, w) }
<domain: "my", opset_import: ["": 14]> cast (r) => (c) { c = Cast <to = 1> (r) }"""
TURN = "t = Transpose <perm = [1, 0, 2]> (x)"
CASES = [
    ("t = my.turn (x)", "p = MatMul (r, w)", "float16"),
    ("s, t = my.pair (x)", "p = MatMul (r, w)", "float16"),
    (TURN, "p = my.product (r, w)", "float16"),
    ("t = my.turn (x)", "p = my.product (r, w)", "float16"),
    ("t = my.turn (x)", "c = Cast <to = 1> (r) p = MatMul (c, d)", "float"),
    (TURN, "c = my.cast (r) p = MatMul (c, d)", "float"),
]
STATELESS = """<ir_version: 8, opset_import: ["": 13, "my": 1]> g (float16[1,T,2] x) => (float16[T,1,1] y) <float16[2,1] w = {15360, 16384}> {
    t = my.turn (x) y = MatMul (t, w)
}
<domain: "my", opset_import: ["": 13]> turn (x) => (t) { t = Transpose <perm = [1, 0, 2]> (x) }"""
X = np.linspace(-1, 1, 6).astype(np.float16).reshape(1, 3, 2)


def rewritten(rewrite: Callable[[onnx.ModelProto], onnx.ModelProto], data: bytes) -> bytes:
    return rewrite(onnx.load_from_string(data)).SerializeToString()


@pytest.mark.parametrize("options", [{}, {"native": True, "verify": False}, {"opset": "keep", "verify": False}])
@pytest.mark.parametrize(("turned", "product", "kind"), CASES)
def test_the_work_before_a_recurrence_loads(turned: str, product: str, kind: str, options: dict[str, object]) -> None:
    text = SCAN.replace("TURNED", turned).replace("PRODUCT", product).replace("KIND[1,T,2]", "float16[1,T,2]").replace("KIND", kind)
    model = parsed(text)
    fate = fate_of(partial(rewritten, partial(ortscan.optimize, **options)), model.SerializeToString())
    assert not fate.died
    optimized = onnx.load_from_string(fate.result)
    assert not dies(optimized, {"x": X, "v": X[0, :2, :1]})


def test_a_migrated_product_loads() -> None:
    model = parsed(STATELESS)
    assert dies(model, {"x": X})
    fate = fate_of(partial(rewritten, partial(ortscan.migrate, opset=18)), model.SerializeToString())
    assert not fate.died
    (y,) = ort_run(onnx.load_from_string(fate.result), {"x": X})
    np.testing.assert_allclose(y, X.transpose(1, 0, 2) @ np.array([[1], [2]], np.float16), rtol=1e-2, atol=1e-3)


LOOP = """y = Scan <num_scan_inputs = 1, body = b (float[3] x1) => (float[3] z1) { z1 = Neg (x1) }> (x)"""


def calling(levels: int, calls: int, leaf: str = "y = Neg (x)", where: str = "y = f.F{0} (x)") -> onnx.ModelProto:
    functions = [f'<domain: "f", opset_import: ["": 18, "f": 1]> F0 (x) => (y) {{ {leaf} }}']
    for i in range(1, levels):
        chain = " ".join(f"v{j + 1} = f.F{i - 1} (v{j})" for j in range(calls))
        functions.append(
            f'<domain: "f", opset_import: ["": 18, "f": 1]> F{i} (x) => (y) {{ v0 = Neg (x) {chain} y = Neg (v{calls}) }}'
        )
    head = '<ir_version: 10, opset_import: ["": 18, "f": 1]>'
    main = f"g (float[5,3] x) => (float[5,3] y) {{ {where.format(levels - 1)} }}"
    return parsed(head + main + "\n".join(["", *functions]))


CALLING_BODY = "y = Scan <num_scan_inputs = 1, body = b (float[3] a) => (float[3] c) {{ c = f.F{0} (a) }}> (x)"


@pytest.mark.parametrize("where", ["y = f.F{0} (x)", CALLING_BODY])
@pytest.mark.parametrize("leaf", ["y = Neg (x)", LOOP])
@pytest.mark.parametrize(
    "work",
    [
        ortscan.optimize,
        ortscan.explain,
        lambda model: ortscan.migrate(model, 21),
        lambda model: ortscan.verify(model, model),
        lambda model: ortscan.optimize(ir.from_proto(model)),
    ],
)
def test_calls_without_end_are_refused_in_one_sentence(work, leaf, where):
    with pytest.raises(ortscan.OrtscanError, match=r"would have \d{13} nodes with all calls of its functions expanded"):
        work(calling(13, 10, leaf, where))


def test_functions_that_nobody_calls_and_many_calls_of_one_pass():
    assert ortscan.explain(calling(2, 2000))
    model = calling(3, 2)
    model.graph.node[0].CopyFrom(onnx.helper.make_node("Neg", ["x"], ["y"]))
    assert ortscan.explain(model)
