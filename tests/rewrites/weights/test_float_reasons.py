"""The largest constant that is no weight is named, with what keeps it from being stored in fewer bits."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.weights.finding import find_weights
from rewrites.weights.float_reasons import why_float
from tests.support.text import parsed


def sentence_on(body: str, weight: np.ndarray, interface: str = "(float[40, 40] x) => (float[40, 40] y)") -> str:
    graph = ir.from_proto(parsed(f"g {interface} {{ {body} }}", weights={"w": weight})).graph
    return why_float(graph, {weight.value for weight in find_weights(graph)})


WIDE = np.ones((40, 40), np.float32)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a = MatMul (x, w) y = Add (a, w)", "Add reads it too"),
        ("v = Transpose (w) y = MatMul (x, v)", "Transpose reads it, and no product or recurrent node"),
        ("y = Relu (x)", "no node reads it"),
    ],
)
def test_a_node_that_needs_float32_is_named(body: str, reason: str) -> None:
    assert sentence_on(body, WIDE) == f"'w' stays float32, because {reason}"


def test_a_small_weight_and_one_of_another_type_are_named() -> None:
    assert sentence_on("y = MatMul (x, w)", WIDE[:20]).endswith("it has only 800 elements, and at least 1024 are needed")
    assert sentence_on("y = MatMul (x, w)", WIDE.astype(np.float64)) == "'w' is not float32, but double"


def test_an_output_and_an_input_are_named() -> None:
    output = "(float[40, 40] x) => (float[40, 40] y, float[40, 40] w)"
    assert sentence_on("y = MatMul (x, w)", WIDE, output) == "'w' stays float32, because it is an output"
    listed = "(float[40, 40] x, float[40, 40] w) => (float[40, 40] y)"
    assert sentence_on("y = MatMul (x, w)", WIDE, listed).endswith(
        "because the caller may replace it; to make it a constant: --freeze"
    )


def test_nothing_is_said_if_the_largest_constant_is_stored() -> None:
    assert sentence_on("c = Constant <value = float[1] {1}> () a = MatMul (x, w) y = Add (a, c)", WIDE) == ""
