"""Nodes that read only constants are run at rewrite time."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.graph.context import evaluate_nodes
from tests.rewrites.apply import prepared

EMPTY = "g (float[1] x) => (float[1] y) { y = Neg (x) }"


@pytest.mark.parametrize(
    "texts", [np.array(b"a"), np.array([b"a", b""]), np.array([["a", "s\N{LATIN SMALL LETTER O WITH DIAERESIS}"]], object)]
)
def test_constants_may_be_strings(texts: np.ndarray) -> None:
    x, same = ir.Value(name="x"), ir.Value(name="same")
    node = onnx.helper.make_node("Equal", ["x", "x"], ["same"])
    results = evaluate_nodes([node], {x: texts}, [same], prepared(EMPTY, opset=19))
    assert results is not None
    np.testing.assert_array_equal(results[0], np.ones(texts.shape, bool))
