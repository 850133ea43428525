"""Draws one prefix tree of a seed, applies the rule, and compares the results on onnxruntime."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx.numpy_helper import from_array, to_array

from rewrites.loop_form import roll_up_trees
from tests.rewrites.apply import apply, patches, same_on_ort
from tests.rewrites.fission.harness import data
from tests.support.prefix_trees import FORMS, OPERATORS, prefix_tree
from tests.support.runtime import ort_run

__all__ = ["fault_of"]


def fault_of(seed: int) -> tuple[str, bool]:
    """Return what is wrong with the tree of `seed`, and True if the tree became a Scan. Trees of odd seeds have a wrong bound."""
    draw = np.random.default_rng(seed)
    form, operator = str(draw.choice(list(FORMS))), str(draw.choice(list(OPERATORS)))
    if OPERATORS[operator].neutral is None and form == "padded doubling":
        form = "doubling"
    if form == "dilated" and OPERATORS[operator].kind == "bool":
        form = "stacked"
    rank = int(draw.integers(1, 4))
    steps, axis = int(draw.integers(8, 70)), int(draw.integers(0, rank))
    model = prefix_tree(form, operator, steps, axis=axis, rank=rank, opset=int(draw.choice([13, 18, 21])))
    what = f"{operator} by {form}, {steps} steps along axis {axis} of {rank}"
    feeds = data(model)
    if seed % 2 and not _spoil(model, draw, feeds):
        return "", False
    after, report = apply(model, [roll_up_trees])
    is_rolled = bool(patches(report))
    if not seed % 2 and not is_rolled:
        return f"{what}: no tree was found {report.messages}", False
    try:
        same_on_ort(model, after, feeds)
    except AssertionError as difference:
        return f"{what}{', spoilt' if seed % 2 else ''}: {str(difference).splitlines()[0]}", is_rolled
    return "", is_rolled


def _spoil(model: onnx.ModelProto, draw: np.random.Generator, feeds: Mapping[str, np.ndarray]) -> bool:
    """Shift both bounds of a Slice by one, or exchange two inputs of a node. Return False if the model then fails."""
    nodes = [node for node in model.graph.node if len(node.input) >= 2 and node.op_type not in ("Pad", "Reshape", "Unsqueeze")]
    node = nodes[int(draw.integers(len(nodes)))]
    if node.op_type == "Slice":
        numbers = {item.name: to_array(item) for item in model.graph.initializer}
        shift = int(draw.choice([-1, 1]))
        for index in (1, 2):
            bound = numbers[node.input[index]] + (shift if abs(int(numbers[node.input[index]][0])) < 1 << 40 else 0)
            node.input[index] = f"{node.input[index]}_shifted"
            if all(item.name != node.input[index] for item in model.graph.initializer):
                model.graph.initializer.append(from_array(bound, node.input[index]))
    else:
        node.input[0], node.input[1] = node.input[1], node.input[0]
    try:
        onnx.checker.check_model(model, full_check=True)
        ort_run(model, feeds)
    except Exception:
        return False
    return True
