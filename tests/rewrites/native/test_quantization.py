"""Bytes that stand for numbers in a body: products of whole numbers are exact, and so are scales and zero points."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

import ortscan
from ortscan.native import library as installed
from tests.rewrites.apply import read
from tests.rewrites.harness import scan
from tests.rewrites.native.harness import refusal, same_numbers
from tests.support.native_plans import library
from tests.support.runtime import ort_run


def quantized(inside: str, y: str = "float[4]", *, size: int = 6, x: str = "float[6]", weights: str = "", given: str = "") -> str:
    name, _, dims = y.partition("[")
    return scan(
        f"{inside} h1 = Add (h, y)" if name == "float" else f"{inside} f = Cast <to = 1> (y) h1 = Add (h, f)",
        given=f"float[{dims} s, float[5,{x.partition('[')[2]} xs{given}".replace("6]", f"{size}]"),
        inputs=f"float[{dims} h, {x} x".replace("6]", f"{size}]"),
        outputs=f"float[{dims} h1, {y} y",
        results=f"float[{dims} z, {name}[5,{dims} ys",
        weights=weights,
    )


def bytes_as(name: str, kind: str, dims: str, count: int, low: int, high: int) -> str:
    numbers = np.random.default_rng(count).integers(low, high + 1, count)
    return f"{kind}[{dims}] {name} = {{{', '.join(map(str, numbers))}}}"


DYNAMIC = "q, r, k0 = DynamicQuantizeLinear (x)"
W = {"int8": (-128, 127), "uint8": (0, 255)}


@pytest.mark.parametrize("kind", W)
@pytest.mark.parametrize("size", [6, 300, 515])
@pytest.mark.parametrize("zero", ["", "one", "each"])
def test_products_of_bytes_are_exact(kind: str, size: int, zero: str) -> None:
    """Of 6 rows the weights are in the plan, of more they are packed, in parts."""
    weights = bytes_as("w", kind, f"{size},4", 4 * size, *W[kind]) + f", {kind} one = {{7}}, {kind}[4] each = {{1, 0, 100, 3}}"
    inside = f"{DYNAMIC} y = MatMulInteger (q, w, k0{', ' + zero if zero else ''})"
    text = quantized(inside, "int32[4]", size=size, weights=weights)
    feeds = {"s": np.zeros(4, np.float32), "xs": np.random.default_rng(1).normal(size=(5, size)).astype(np.float32)}
    feeds["xs"][0] = np.sign(feeds["xs"][0])  # the largest products
    assert same_numbers(text, feeds).packs == () if size == 6 else True


def test_the_largest_sums_are_exact() -> None:
    size = 1024
    weights = f"int8[{size},4] w = {{{', '.join(['-128'] * (4 * size))}}}"
    text = quantized(f"{DYNAMIC} y = MatMulInteger (q, w)", "int32[4]", size=size, weights=weights)
    exact = np.full((5, 4), 255 * -128 * size, np.int32)
    same_numbers(text, {"s": np.zeros(4, np.float32), "xs": np.ones((5, size), np.float32)}, wanted={"ys": exact})


def adds_exactly() -> bool:
    """Return True if onnxruntime adds products of bytes exactly here, as it does on processors with VNNI."""
    weights = ", ".join(["127"] * 256)
    model = read(f"g (uint8[1,64] q) => (int32[1,4] y) <int8[64,4] w = {{{weights}}}> {{ y = MatMulInteger (q, w) }}")
    return bool((ort_run(model, {"q": np.full((1, 64), 255, np.uint8)})[0] == 255 * 127 * 64).all())


def exactly(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model by onnx's reference, whose products of integers are exact."""
    return list(ReferenceEvaluator(model).run(None, feeds))


ODD = np.float32(
    [[np.nan, 1, 2, 0, -1, 0.5], [np.inf, 1, 0, -1, 3, 2], [-np.inf, 1, 0, -1, 3, 2], [1e-45, 0, 0, 0, 0, 0], [0, -0.0, 0, 0, 0, 0]]
)


@pytest.mark.parametrize("scaled", [1.0, 1e-30, 1e30])
def test_the_range_of_numbers_is_that_of_onnxruntime(scaled: float) -> None:
    rows = np.random.default_rng(2).normal(size=(5, 6)).astype(np.float32) * np.float32(scaled)
    for xs in (rows, np.abs(rows), -np.abs(rows), ODD):
        feeds = {"s": np.zeros(6, np.float32), "xs": xs}
        same_numbers(quantized(f"{DYNAMIC} y = Cast <to = 1> (q)", "float[6]"), feeds, close=0)
        feeds["s"] = np.zeros((), np.float32)
        for value in ("Identity (r)", "Cast <to = 1> (k0)"):
            text = quantized(f"{DYNAMIC} y = {value}", "float[1]").replace("float[1]", "float").replace("[5,1]", "[5]")
            same_numbers(text, feeds, close=0)


@pytest.mark.parametrize("kind", W)
def test_numbers_become_bytes_and_come_back(kind: str) -> None:
    weights = (
        f"float r1 = {{0.1}}, {kind} z1 = {{5}}, float[6] r6 = {{0.1, 1, 2, 0.01, 5, 1}}, {kind}[6] z6 = {{0, 1, 2, 3, 100, 5}}"
    )
    feeds = {
        "s": np.zeros(6, np.float32),
        "xs": np.concatenate([ODD[:2], np.random.default_rng(3).normal(size=(3, 6)) * 20]).astype(np.float32),
    }
    for scale in ("r1, z1", "r6, z6"):
        way = f"<axis = 0> (x, {scale}) y = DequantizeLinear <axis = 0> (q, {scale})"
        same_numbers(quantized(f"q = QuantizeLinear {way}", "float[6]", weights=weights), feeds, close=0)
    same_numbers(quantized("q = QuantizeLinear (x, r1) y = DequantizeLinear (q, r1)", "float[6]", weights=weights), feeds, close=0)


@pytest.mark.parametrize(
    "inside",
    [
        "q, r, k0 = DynamicQuantizeLinear (x) e = Concat <axis = 0> (q, q) y = Cast <to = 1> (q)",
        "q, r, k0 = DynamicQuantizeLinear (x) e = Gather (q, k) y = Cast <to = 1> (e)",
        "q, r, k0 = DynamicQuantizeLinear (x) e = Max (q, q) y = Cast <to = 1> (e)",
    ],
)
def test_other_operators_on_bytes_refuse_the_loop(inside: str) -> None:
    text = quantized(
        inside.replace("y = Cast <to = 1> (q)", "y = Cast <to = 1> (e2)").replace(
            "axis = 0> (q, q)", "axis = 0> (q, q) e2 = Max (q)"
        ),
        "float[6]",
        weights="int64[6] k = {0, 1, 2, 3, 4, 5}",
    )
    assert refusal(text) == "NATIVE-TYPE"


def test_a_loop_that_gives_bytes_has_no_plan() -> None:
    text = scan(
        "q, a, b = DynamicQuantizeLinear (x) y = Identity (q) h1 = Add (h, x)",
        outputs="float[2] h1, uint8[2] y",
        results="float[2] z, uint8[3,2] ys",
    )
    assert refusal(text) == "NATIVE-TYPE"


def test_the_library_gives_the_bits_of_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
    size = 300
    weights = bytes_as("w", "int8", f"{size},4", 4 * size, -128, 127) + ", float v = {0.01}"
    inside = "h2 = Tanh (h) e = Concat <axis = 0> (x, h2) q, r, k0 = DynamicQuantizeLinear (e) p = MatMulInteger (q, w, k0) f = Cast <to = 1> (p) t = Mul (r, v) y = Mul (f, t)"
    text = quantized(inside, size=size - 4, weights=weights)
    model = read(text, 18)
    native = ortscan.optimize(model, native=True, verify=False)
    assert isinstance(native, onnx.ModelProto)
    assert [node.op_type for node in native.graph.node if node.domain == "ai.ortscan"] == ["Scan1"]
    xs = np.random.default_rng(5).normal(size=(5, 296)).astype(np.float32)
    feeds = {"s": np.ones(4, np.float32), "xs": xs}
    own = ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions())).run(None, feeds)
    for result, exact in zip(own, exactly(model, feeds), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
    if adds_exactly():
        for result, other in zip(own, ort_run(model, feeds), strict=True):
            np.testing.assert_array_equal(result, other)
