"""Constants of one number get the axes of what they meet, where onnxruntime would take elements one by one."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.driver.model_changes import change_model
from rewrites.tidy import axes_of_scalars
from tests.rewrites.apply import prepared
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

HEAD = "g (float[T,1] x, float[T,4] wide, float[T,1,1] cube, float[4,1] few) => (float[?,?] y) <float k = {0.3}, float[1] v = {0.3}, float[2] two = {1, 2}>"


def after(inside: str, head: str = HEAD) -> onnx.ModelProto:
    ctx = prepared(f"{head} {{ {inside} }}")
    change_model(axes_of_scalars.RULE, ctx)
    return ir.to_proto(ctx.model)


def ranks(model: onnx.ModelProto) -> list[int]:
    """Return how many axes the constants have that the last node reads."""
    known = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    return [known[name] for name in model.graph.node[-1].input if name in known]


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("y = Mul (x, k)", [2]),
        ("y = Div (v, x)", [2]),
        ("c = Greater (x, k) y = Where (c, k, x)", [2]),
        ("y = Add (cube, v)", [3]),
        ("y = Pow (x, k)", [2]),
    ],
)
def test_a_constant_gets_the_axes_of_what_it_meets(inside: str, found: list[int]) -> None:
    head = HEAD if "cube" not in inside else HEAD.replace("[?,?] y", "[?,?,?] y")
    model, rng = after(inside, head), np.random.default_rng(0)
    assert ranks(model) == found
    onnx.checker.check_model(model, full_check=True)
    for steps in (0, 1, 70):
        sizes = {"x": (steps, 1), "wide": (steps, 4), "cube": (steps, 1, 1), "few": (4, 1)}
        feeds = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
        before = ort_run(model_from_text(f"{head} {{ {inside} }}", 18), feeds)
        np.testing.assert_array_equal(ort_run(model, feeds)[0], before[0])


@pytest.mark.parametrize(
    "inside",
    [
        "y = Mul (wide, k)",
        "y = Mul (few, k)",
        "y = Mul (x, two)",
        "y = Clip (x, k)",
        "y = Max (x, k, k)",
        "s = Shape (x) z = ConstantOfShape (s) y = Scan <num_scan_inputs = 1, body = b (float[1] a) => (float[1] c) { c = Mul (a, k) }> (z)",
    ],
    ids=["a last axis of its own", "few elements", "two numbers", "no broadcasting", "three operands", "within a loop"],
)
def test_other_constants_stay(inside: str) -> None:
    model = after(inside)
    assert sorted(len(tensor.dims) for tensor in model.graph.initializer if tensor.name in ("k", "v", "two")) == [0, 1, 1]
    assert len(model.graph.initializer) == 3


def test_a_default_that_callers_may_override_stays() -> None:
    assert ranks(after("y = Mul (x, k)", HEAD.replace("float[4,1] few", "float[4,1] few, float k"))) == [0]
