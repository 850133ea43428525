"""Values of the same number are the same when run; values written twice have one number."""

import random

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.analysis.value_numbering import SameValues
from tests.rewrites.apply import prepared, read
from tests.support.runtime import ort_run

KINDS = [
    "Tanh ({0})",
    "Add ({0}, {1})",
    "Sub ({0}, {1})",
    "LeakyRelu <alpha = 0.1> ({0})",
    "LeakyRelu <alpha = 0.2> ({0})",
    "Identity ({0})",
    "Transpose ({0})",
    "Transpose <perm = [1, 0]> ({0})",
    "Transpose <perm = [0, 1]> ({0})",
    "Mul ({0}, one)",
    "Mul ({0}, uno)",
    "Mul ({0}, zero)",
    "Div ({0}, zero)",
    "Div ({0}, minus)",
    "Clip ({0}, one)",
    "Clip ({0}, , one)",
    "CumSum <reverse = 1> ({0}, k0)",
    "CumSum ({0}, k0)",
    "CumSum ({0}, k1)",
    "RandomUniformLike ({0})",
    "Dropout ({0})",
]
WEIGHTS = "float one = {1}, float uno = {1}, float zero = {0}, float minus = {-0.0}, int64 k0 = {0}, int64 k1 = {1}"


def values_of(text: str) -> dict[str, ir.Value]:
    ctx = prepared(text, check=False)
    return {value.name or "": value for node in ctx.model.graph for value in node.outputs}


def random_nodes(seed: int) -> tuple[list[str], list[str]]:
    rng, names, nodes = random.Random(seed), ["x", "y"], list[str]()
    for i in range(14):
        if rng.random() < 0.2:
            nodes.append(f"v{i}, w{i} = Split <axis = {rng.choice([0, 1])}, num_outputs = 2> ({rng.choice(['x', 'y'])})")
            nodes.append(f"u{i} = Concat <axis = {rng.choice([0, 1])}> (v{i}, w{i})")
            names += [f"v{i}", f"w{i}"]
        else:
            square = [name for name in names if name[0] != "v" and name[0] != "w"] if rng.random() < 0.7 else names
            nodes.append(
                f"n{i} = {rng.choice(KINDS[: rng.choice([4, 12, 21])]).format(rng.choice(square), rng.choice(['x', 'y']))}"
            )
            names.append(f"n{i}")
    return nodes, names[2:]


def test_values_of_one_number_are_bitwise_the_same() -> None:
    same, random_numbers = 0, np.random.default_rng(0)
    for seed in range(250):
        nodes, names = random_nodes(seed)
        text = f"g (float[2,2] x, float[2,2] y) => ({', '.join(f'float[] {name}' for name in names)}) <{WEIGHTS}> {{ {' '.join(nodes)} }}"
        feeds = {name: random_numbers.standard_normal((2, 2)).astype(np.float32) for name in "xy"}
        try:
            numbers = dict(zip(names, ort_run(read(text, check=False), feeds, optimised=False), strict=True))
        except Exception:
            continue
        values, numbering = values_of(text), SameValues()
        first: dict[int | None, str] = {}
        for name in names:
            if name in values:
                other = first.setdefault(numbering.number(values[name]), name)
                same += other != name
                assert numbers[name].tobytes() == numbers[other].tobytes(), f"{name} and {other}: {text}"
    assert same > 150


ALIKE = [
    ("a = Tanh (x) b = Tanh (x)", True),
    ("a = Tanh (x) i = Identity (x) b = Tanh (i)", True),
    ("a = Mul (x, one) b = Mul (x, uno)", True),
    ("a = Mul (x, zero) b = Mul (x, minus)", False),
    ("a = LeakyRelu <alpha = 0.0> (x) b = LeakyRelu <alpha = -0.0> (x)", False),
    ("a = Add (x, y) b = Add (y, x)", False),
    ("a = RandomUniformLike (x) b = RandomUniformLike (x)", False),
    ("t = Transpose (x) a = Transpose (t) b = Identity (x)", True),
    ("a = Transpose (x) b = Transpose <perm = [1, 0]> (x)", True),
    ("t = Transpose (x) i = Identity (t) u = Transpose (i) a = Tanh (u) b = Tanh (x)", True),
    ("a = Transpose (x) b = Identity (x)", False),
    ("a, c = Split <axis = 0, num_outputs = 2> (x) b, d = Split <axis = 0, num_outputs = 2> (x)", True),
    ("a, b = Split <axis = 0, num_outputs = 2> (x)", False),
    ("a = Clip (x, one) b = Clip (x, , one)", False),
]


@pytest.mark.parametrize(("nodes", "alike"), ALIKE, ids=[nodes for nodes, _ in ALIKE])
def test_what_is_written_twice_has_one_number(nodes: str, alike: bool) -> None:
    values = values_of(f"g (float[2,2] x, float[2,2] y) => (float[] a, float[] b) <{WEIGHTS}> {{ {nodes} }}")
    numbering = SameValues()
    assert (numbering.number(values["a"]) == numbering.number(values["b"])) == alike
    assert numbering.number(None) is None
