"""Weights are constants that only products and recurrent nodes read; each knows along which axis its channels lie."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.weights.finding import find_weights
from tests.support.text import parsed

WIDE = np.ones((40, 40), np.float32)
LOOP = (
    "b{0} (int64 i{0}, bool c{0}, float[1, 40] h{0}) => (bool d{0}, float[1, 40] k{0}) "
    "{{ d{0} = Identity (c{0}) m{0} = MatMul (h{0}, w) k{0} = Tanh (m{0}) }}"
)


def weights_of(text: str, **weights: np.ndarray) -> list[tuple[str | None, int, int]]:
    graph = ir.from_proto(parsed(text, weights=weights)).graph
    return [(weight.value.name, len(weight.reads), weight.axis) for weight in find_weights(graph)]


@pytest.mark.parametrize(
    ("node", "axis"),
    [
        ("MatMul (x, w)", -2),
        ("MatMul (w, x)", -1),
        ("Gemm (x, w)", -2),
        ("Gemm <transB = 1> (x, w)", -1),
        ("Gemm (w, x)", -1),
        ("Gemm <transA = 1> (w, x)", -2),
    ],
)
def test_a_channel_of_a_product_spans_the_axis_that_is_summed(node: str, axis: int) -> None:
    assert weights_of(f"g (float[40, 40] x) => (float[40, 40] y) {{ y = {node} }}", w=WIDE) == [("w", 1, axis)]


def test_both_weights_of_a_recurrent_node_are_found_but_not_its_biases() -> None:
    weights = {"w": np.ones((1, 64, 40), np.float32), "r": np.ones((1, 64, 16), np.float32), "b": np.ones((1, 2048), np.float32)}
    text = "g (float[T, 1, 40] x) => (float[T, 1, 1, 16] y) { y = LSTM <hidden_size = 16> (x, w, r, b) }"
    assert weights_of(text, **weights) == [("w", 1, -1), ("r", 1, -1)]


def test_a_weight_that_two_bodies_read_is_found_once() -> None:
    loops = "".join(f"y{i} = Loop <body = {LOOP.format(i)}> (n, c, x) " for i in range(2))
    text = f"g (int64 n, bool c, float[1, 40] x) => (float[1, 40] y0, float[1, 40] y1) {{ {loops} }}"
    assert weights_of(text, w=WIDE) == [("w", 2, -2)]


@pytest.mark.parametrize(
    "text",
    [
        "g (float[40, 40] x) => (float[40, 40] y) { y = Add (x, w) }",
        "g (float[40, 40] x) => (float[40, 40] y, float[40, 40] z) { y = MatMul (x, w) z = Add (x, w) }",
        "g (float[40, 40] x, float[40, 40] w) => (float[40, 40] y) { y = MatMul (x, w) }",
        "g (float[40, 40] x) => (float[40, 40] y, float[40, 40] w) { y = MatMul (x, w) }",
    ],
    ids=["no product", "another reader", "an input", "an output"],
)
def test_a_constant_that_others_read_or_replace_is_no_weight(text: str) -> None:
    assert weights_of(text, w=WIDE) == []


@pytest.mark.parametrize("weight", [np.ones((31, 33), np.float32), np.ones((40, 40), np.float64), np.ones(1024, np.float32)])
def test_a_small_or_other_constant_is_no_weight(weight: np.ndarray) -> None:
    assert weights_of("g (float[a, b] x) => (float[a, c] y) { y = MatMul (x, w) }", w=weight) == []
