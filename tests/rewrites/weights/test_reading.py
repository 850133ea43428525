"""A weight that ``storing`` wrote is recognised, and nothing else."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.weights.reading import narrow_weight
from tests.support.text import parsed

Q, S, H = np.ones((1, 8, 4), np.int8), np.ones((1, 8, 1), np.float32), np.ones((1, 8, 4), np.float16)


def read(nodes: str, **weights: np.ndarray) -> tuple[str | None, str | None, list[str]] | None:
    graph = ir.from_proto(parsed(f"g (float[1, 8, 4] x) => (float[1, 8, 4] y) {{ {nodes} }}", weights=weights)).graph
    weight = narrow_weight(graph.outputs[0])
    return weight and (weight.constant.name, weight.scale and weight.scale.name, [node.op_type for node in weight.nodes])


def test_int8_with_a_scale_of_each_row_is_read() -> None:
    assert read("c = Cast <to = 1> (q) y = Mul (c, s)", q=Q, s=S) == ("q", "s", ["Cast", "Mul"])


def test_numbers_of_16_bits_are_read() -> None:
    assert read("y = Cast <to = 1> (h)", h=H) == ("h", None, ["Cast"])


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ("c = Cast <to = 1> (q) y = Mul (c, s)", {"q": Q, "s": S[..., 0]}),
        ("c = Cast <to = 1> (q) y = Mul (c, x)", {"q": Q}),
        ("c = Cast <to = 1> (h) y = Mul (c, s)", {"h": H, "s": S}),
        ("y = Cast <to = 1> (q)", {"q": Q}),
        ("y = Cast <to = 1> (x)", {}),
        ("y = Tanh (x)", {}),
    ],
    ids=["scale of columns", "scale that varies", "scaled float16", "int8 without scale", "input", "no weight"],
)
def test_other_values_are_not_read(nodes: str, weights: dict[str, np.ndarray]) -> None:
    assert read(nodes, **weights) is None
