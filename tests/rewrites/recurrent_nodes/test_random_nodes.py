"""Recurrent nodes drawn at random, refused by onnxruntime or not, have the numbers of the text afterwards."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto

import ortscan
from tests.rewrites.recurrent_nodes.nodes import INPUTS, KINDS, OneNode
from tests.rewrites.recurrent_nodes.test_refused_nodes import DIRECTIONS, agrees, optimised

ACTIVATIONS = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh")
ELEMENTS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
PER_WAY = {"RNN": 1, "GRU": 2, "LSTM": 3}


@st.composite
def nodes(draw: st.DrawFn) -> OneNode:
    kind = draw(st.sampled_from(KINDS))
    attributes = {"direction": draw(st.sampled_from(DIRECTIONS)), "layout": draw(st.integers(0, 1))}
    ways = 2 if attributes["direction"] == "bidirectional" else 1
    if draw(st.booleans()):
        count = PER_WAY[kind] * ways
        attributes["activations"] = draw(st.lists(st.sampled_from(ACTIVATIONS), min_size=count, max_size=count))
        numbers = st.lists(st.sampled_from([0.25, 0.5, 1.0]), max_size=count)
        attributes |= {f"activation_{which}": values for which in ("alpha", "beta") if (values := draw(numbers))}
    if draw(st.booleans()):
        attributes["clip"] = draw(st.sampled_from([0.5, 2.0]))
    if kind != "RNN":
        attributes["input_forget" if kind == "LSTM" else "linear_before_reset"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        attributes["output_sequence"] = 1
    extra = draw(st.frozensets(st.sampled_from(INPUTS[kind][3:])))
    return OneNode(
        kind,
        attributes,
        extra,
        draw(st.sampled_from(ELEMENTS)),
        draw(st.sampled_from([TensorProto.INT32, TensorProto.INT64])),
        draw(st.sampled_from([("B",), ("1", "B"), ("B", "1")])),
        draw(st.sampled_from(["T", 3])),
        draw(st.sampled_from(["B", 2])),
        draw(st.sampled_from([14, 18, 22, 26])),
        draw(st.booleans()),
    )


@settings(max_examples=40)
@given(nodes(), st.integers(0, 4), st.integers(0, 3))
def test_a_random_node_computes_what_the_text_says(node, steps, rows):
    if node.element == TensorProto.BFLOAT16 and node.opset < 22:
        return
    with np.errstate(over="ignore"):
        result = optimised(node)
        steps, rows = (size if isinstance(size, int) else drawn for size, drawn in ((node.steps, steps), (node.rows, rows)))
        # onnxruntime's Softplus is infinite from 89 on, and activations without bounds may get there
        assume(all(np.abs(one).max(initial=0) < 20 for one in node.expected(node.feeds(steps, rows))))
        refused = node.element in (TensorProto.DOUBLE, TensorProto.BFLOAT16) or not node.names_hidden_size
        refused = refused or node.batch_first or "output_sequence" in node.attributes
        refused = refused or ("lengths" in node.extra and (node.lengths_type, node.lengths_shape) != (TensorProto.INT32, ("B",)))
        if refused:
            agrees(node, result, steps, rows)
        elif steps and rows:
            agrees(node, result, steps, rows, [max(1, steps - row) for row in range(rows)])
    assert not ortscan.explain(result).nodes
