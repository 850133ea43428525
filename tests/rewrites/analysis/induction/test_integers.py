"""What small integer tensors are read as."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, Dim, at_least
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.refine import refine_shapes
from tests.rewrites.apply import prepared


def value_of(nodes: str, given: str = "float[B,3,T] x") -> tuple[AffineExpression | None, ir.Value]:
    weights = "int64 o = {0}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1}, int64[2] pair = {2, 0}, float half = {0.5}, float down = {-1}, float[1] large = {1000000000}, int64[1] large_ = {2000000000}"
    ctx = prepared(f"g ({given}, int64 m) => (int64[K] y) <{weights}> {{ {nodes} y = Identity (v) }}", check=False)
    value = ctx.model.graph.outputs[0].producer().inputs[0]
    return Integers(ctx.opset).of(value), value


def as_text(found: AffineExpression | None) -> str:
    if found is None:
        return "?"
    parts = []
    for i in range(found.const.size):
        symbols = {
            (s.key if isinstance(s, Dim) else s.name if isinstance(s, ir.Value) else s): a.reshape(-1)[i]
            for s, a in found.terms.items()
        }
        terms = [f"{factor}*{name}" for name, factor in sorted(symbols.items()) if factor]
        parts.append(" + ".join([*terms, str(found.const.reshape(-1)[i])]))
    return ", ".join(parts)


READ = {
    "n = Shape (x) v = Identity (n)": "1*B + 0, 3, 1*T + 0",
    "n = Shape <start = 1> (x) v = Cast <to = 6> (n)": "3, 1*T + 0",
    "n = Shape (x) v = Gather (n, two)": "1*T + 0",
    "n = Shape (x) v = Gather (n, minus)": "1*T + 0",
    "n = Shape (x) v = Gather (n, pair)": "1*T + 0, 1*B + 0",
    "n = Shape (x) v = Slice (n, one, two, zero)": "3",
    "n = Shape (x) k = Gather (n, zero) v = Concat <axis = 0> (k, one, two)": "1*B + 0, 1, 2",
    "n = Shape (x) k = Gather (n, o) w = Sub (k, two) v = Neg (w)": "-1*B + 2",
    "n = Shape (x) k = Gather (n, zero) w = Add (k, k) q = Unsqueeze (w, zero) r = Mul (q, two) v = Reshape (r, minus)": "4*B + 0",
    "r = Transpose (x) n = Shape (r) k = Squeeze (a, zero) v = Reshape (k, minus)".replace("k = ", "a = Gather (n, zero) k = "): "1*T + 0",
    "f = Cast <to = 1> (m) c = Cast <to = 7> (f) v = Reshape (c, minus)": "1*m + 0",
    "f = Cast <to = 1> (m) d = Div (f, down) g = Ceil (d) c = Cast <to = 7> (g) v = Reshape (c, minus)": "-1*m + 0",
    "f = Cast <to = 1> (m) d = Div (f, half) g = Floor (d) v = Cast <to = 7> (g)": "1*v + 0",
    "n = Shape <start = 0, end = 1> (x) f = Cast <to = 1> (n) g = Max (f, large) v = Cast <to = 7> (g)": "1000000000",
    "f = Cast <to = 1> (m) g = Max (f, large) v = Cast <to = 7> (g)": "1*v + 0",
    "f = Cast <to = 1> (one) g = Add (f, large) v = Cast <to = 7> (g)": "1*v + 0",
    "n = Shape <end = 1> (x) v = Div (n, large_)": "0",
    "n = Shape <end = 1> (x) v = Mod (n, large_)": "1*B + 0",
    "n = Shape <end = 1> (x) v = Mod (n, two)": "1*v + 0",
    "f = Cast <to = 1> (one) d = Div (f, large) g = Ceil (d) v = Cast <to = 7> (g)": "1*v + 0",
    "v = Size (x)": "1*v + 0",
    "n = Shape (x) v = Mul (n, n)": "?",
    "f = Cast <to = 1> (m) g = Mul (f, half) v = Cast <to = 7> (g)": "1*v + 0",
    "n = Shape (x) v = Gather (n, m)": "1*v + 0",
}  # fmt: skip


@pytest.mark.parametrize("nodes", READ)
def test_sizes_are_followed_through_what_exporters_do_with_them(nodes: str) -> None:
    assert as_text(value_of(nodes)[0]) == READ[nodes]


@pytest.mark.parametrize(("size", "found"), [("float[B,4]", "4*B + 0"), ("float[2,4]", "8"), ("float[B,T]", "1*n + 0")])
def test_a_size_with_one_open_dimension_is_known(size: str, found: str) -> None:
    assert as_text(value_of("n = Size (x) v = Reshape (n, minus)", f"{size} x")[0]) == found


def step(factor: int, const: int) -> AffineExpression:
    return AffineExpression.symbol(STEP) * AffineExpression.of(factor) + AffineExpression.of(const)


T = AffineExpression.symbol(Dim("T", ir.Value(name="x"), 0))


@pytest.mark.parametrize(
    ("value", "steps", "proven"),
    [
        (step(1, 0), None, True),
        (step(1, -1), None, False),
        (step(-1, 5), None, False),
        (step(-1, 5), AffineExpression.of(6), True),
        (step(-1, 5), AffineExpression.of(7), False),
        (T - step(1, 1), T, True),
        (T - step(1, 2), T, False),
        (T - AffineExpression.of(1), T, True),
        (-T + 10**9, None, True),
        (-T + 10**9 - 1, None, False),
        (T - AffineExpression.of(1), None, False),
        (T - AffineExpression.of(2), T - AffineExpression.of(1), True),
        (AffineExpression.symbol(ir.Value(name="m")), None, False),
        (-T, T, False),
    ],
)
def test_what_is_never_negative_in_a_step_is_proven(value: AffineExpression, steps: AffineExpression | None, proven: bool) -> None:
    assert at_least(value, 0, steps) == proven


def test_affine_arithmetic_broadcasts_and_keeps_what_floats_can_hold() -> None:
    two = AffineExpression.of(np.array([[1], [2]])) * AffineExpression.symbol(STEP)
    total = two.with_exact_limit(1 << 24) + AffineExpression.of(np.array([10, 20]))
    assert total.const.tolist() == [[10, 20], [10, 20]]
    assert total.terms[STEP].tolist() == [[1, 1], [2, 2]]
    assert total.exact_to == 1 << 24
    with pytest.raises(ValueError, match="not affine"):
        two * two


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("n = Shape (x) k = Cast <to = 6> (n) w = Slice (k, zero, one, zero) p = Concat <axis = 0> (w, two_) q = Cast <to = 7> (p) z = Expand (f, q)", ["B", 2]),
        ("n = Shape (x) k = Cast <to = 6> (n) w = Slice (k, zero, one, zero) q = Cast <to = 7> (w) z = ConstantOfShape (q)", ["B"]),
        ("z = Slice (x, both, far, axes)", ["B", 3]),
    ],
)  # fmt: skip
def test_sizes_that_inference_left_open_are_found(nodes: str, found: list[int | str]) -> None:
    weights = "int64[1] zero = {0}, int64[1] one = {1}, int32[1] two_ = {2}, float f = {0}, int64[2] both = {0, 1}, int64[2] far = {2147483647, 2147483647}, int64[2] axes = {0, 1}"
    rank = ",".join("K" * len(found))
    ctx = prepared(f"g (float[B,4] x) => (float[{rank}] y) <{weights}> {{ {nodes} y = Neg (z) }}", check=False)
    (value,) = [value for node in ctx.model.graph for value in node.outputs if value.name == "z"]
    value.shape = ir.Shape([None] * len(found))
    assert refine_shapes([value], ctx)
    assert [dim if isinstance(dim, int) else dim.value for dim in value.shape.dims] == found
