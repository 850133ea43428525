"""Recurrent layers, all in the body of one loop or each in its own loop."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx.parser

from tests.support.text import parsed

__all__ = ["CELLS", "layer_feeds", "layers"]

_LSTM = """{p}a = MatMul({x}, {p}W) {p}r = MatMul({h}, {p}R) {p}s = Add({p}a, {p}r) {p}z = Add({p}s, {p}b)
    {p}i, {p}f, {p}g, {p}o = Split <axis = 1, num_outputs = 4> ({p}z)
    {p}i1 = Sigmoid({p}i) {p}f1 = Sigmoid({p}f) {p}g1 = Tanh({p}g) {p}o1 = Sigmoid({p}o)
    {p}fc = Mul({p}f1, {c}) {p}ig = Mul({p}i1, {p}g1) {p}c = Add({p}fc, {p}ig) {p}t = Tanh({p}c) {p}h = Mul({p}o1, {p}t)"""
CELLS = {
    "LSTM": _LSTM,
    "LayerNorm-LSTM": _LSTM.replace(
        "{p}z = Add({p}s, {p}b)", "{p}n = LayerNormalization <axis = -1> ({p}s, {p}k) {p}z = Add({p}n, {p}b)"
    ),
    "sine cell": """{p}a = MatMul({x}, {p}V) {p}r = MatMul({h}, {p}U) {p}z = Add({p}a, {p}r) {p}s = Sin({p}z)
        {p}fc = Mul({p}s, {c}) {p}c = Add({p}fc, {p}a) {p}h = Tanh({p}c)""",
}
"""What one layer does in a step: `{x}` is its input, `{h}` and `{c}` are its states; it gives `{p}h` and `{p}c`."""


def layers(
    cells: Sequence[str],
    hidden: int,
    batch: int,
    *,
    steps: int = 100,
    apart: bool = False,
    old: bool = False,
    change: Callable[[str], str] | None = None,
) -> onnx.ModelProto:
    """Return layers of `cells`, each of which reads the output of the previous layer; `apart` uses a loop for each.

    With `old`, each layer reads the previous layer's output of the previous step.
    """
    count, row = len(cells), f"float[{batch},{hidden}]"
    stack = f"float[{steps},{batch},{hidden}]"
    bodies = [
        CELLS[cell].format(p=f"p{i}", h=f"h{i}", c=f"c{i}", x="x" if not i or apart else f"h{i - 1}" if old else f"p{i - 1}h")
        for i, cell in enumerate(cells)
    ]

    def scan(numbers: Sequence[int], data: str, result: str) -> str:
        held = [f"{s}{i}" for i in numbers for s in "hc"]
        made = [f"p{i}{s}" for i in numbers for s in "hc"]
        text = " ".join(bodies[i] for i in numbers) + f" y = Identity(p{numbers[-1]}h)"
        return f"""{", ".join(f"{name}n" for name in held)}, {result} = Scan <num_scan_inputs = 1,
            body = step{numbers[0]} ({", ".join(f"{row} {name}" for name in held)}, {row} x)
            => ({", ".join(f"{row} {name}" for name in made)}, {row} y) {{ {text} }}> ({", ".join(f"{name}s" for name in held)}, {data})"""

    loops = scan(range(count), "xs", "ys")
    if apart:
        assert not old
        loops = " ".join(scan([i], "xs" if not i else f"y{i}", "ys" if i == count - 1 else f"y{i + 1}") for i in range(count))
    held = [f"{s}{i}" for i in range(count) for s in "hc"]
    text = f"""<ir_version: 9, opset_import: ["": 18]>
    main ({", ".join(f"{row} {name}s" for name in held)}, {stack} xs) => ({", ".join(f"{row} {name}n" for name in held)}, {stack} ys) {{
        {loops}
    }}"""
    model = parsed(text if change is None else change(text))
    draw = np.random.default_rng(1).standard_normal
    shapes = {"W": (hidden, 4 * hidden), "R": (hidden, 4 * hidden), "b": (4 * hidden,), "k": (4 * hidden,)}
    shapes |= {"V": (hidden, hidden), "U": (hidden, hidden)}
    weights = {
        f"p{i}{name}": (draw(shape) / (2 * hidden**0.5)).astype(np.float32) for i in range(count) for name, shape in shapes.items()
    }
    used = {name for node in model.graph.node for attribute in node.attribute for each in attribute.g.node for name in each.input}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items() if name in used)
    return model


def layer_feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return random inputs."""
    draw = np.random.default_rng(2).standard_normal
    shapes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    return {name: draw(shape).astype(np.float32) for name, shape in shapes.items()}
