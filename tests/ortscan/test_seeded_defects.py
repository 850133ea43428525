"""Defects planted in rules: the self-check or the quick verification detects each of them and names the patch."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import ortscan
from ortscan.errors import OrtscanWarning, VerificationFailed
from rewrites.cleanup import hoist_invariants
from rewrites.fission import loop_fission
from rewrites.loop_form import loop_to_scan, written_rows
from rewrites.recurrences.cells import recurrent_cell
from tests.support.spoilt_rules import Spoil, constant, failing, put_after, spoil
from tests.support.text import parsed

MAP = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, B, 4] x, float[4] w) => (float[T, B, 4] y, float[T, B, 4] z) <float[4, 4] W = {OF_16}> {
  y, z = Scan <num_scan_inputs = 1, body = b (float[B, 4] xi) => (float[B, 4] yi, float[B, 4] zi) {
    v = Tanh (w) p = MatMul (xi, W) q = Add (p, v) yi = Sigmoid (q) zi = Mul (xi, v)
  }> (x)
}"""
CELL = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, B, 4] x, float[B, 4] h) => (float[B, 4] z, float[T, B, 4] y) <float[4, 4] W = {OF_16}, float[4, 4] R = {OF_16}> {
  z, y = Scan <num_scan_inputs = 1, body = b (float[B, 4] s, float[B, 4] xi) => (float[B, 4] n, float[B, 4] yi) {
    p = MatMul (xi, W) q = MatMul (s, R) a = Add (p, q) n = Tanh (a) yi = Identity (n)
  }> (h, x)
}"""
OPEN = CELL.replace("float[B, 4] z, float[T, B, 4] y)", "float[] z, float[] y)", 1)
STAYS = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] h, bool[T] m) => (float[4] z, float[T, 4] y) <float[4, 4] W = {OF_16}> {
  z, y = Scan <num_scan_inputs = 2, body = b (float[4] s, float[4] xi, bool mi) => (float[4] n, float[4] yi) {
    p = MatMul (xi, W) a = Mul (s, s) c = Sin (a) d = Add (c, p) n = Where (mi, d, s) e = Exp (n) yi = Neg (e)
  }> (h, x, m)
}"""
ROWS = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, B, 4] x, float[T, B, 4] buffer) => (float[T, B, 4] y) <int64 zero = {0}, bool yes = {1}> {
  s = Shape (x) n = Gather (s, zero)
  y = Loop <body = b (int64 i, bool c, float[T, B, 4] k) => (bool c1, float[T, B, 4] k1) <int64[1] ax = {0}, int64[1] two = {-1, 1}> {
    c1 = Identity (c) xi = Gather (x, i) t = Tanh (xi) u = Unsqueeze (t, ax) j = Unsqueeze (i, ax) jj = Unsqueeze (j, ax) k1 = ScatterND (k, jj, u)
  }> (n, yes, buffer)
}""".replace(", int64[1] two = {-1, 1}", "")


def model_of(text: str) -> Any:
    numbers = np.random.default_rng(0).standard_normal(32).astype(np.float32).round(2)
    for start in (0, 16):
        text = text.replace("OF_16", ", ".join(str(number) for number in numbers[start : start + 16]), 1)
    return parsed(text)


def nodes(model: ir.Model, *kinds: str) -> Iterator[ir.Node]:
    return (node for node in model.graph.all_nodes() if node.op_type in kinds)


def first(model: ir.Model, *kinds: str) -> ir.Node:
    return next(nodes(model, *kinds))


def after(name: str, *operators: Any) -> Spoil:
    """Insert operators after an output. A list stands for a constant."""

    def defect(model: ir.Model) -> None:
        made = [tuple(constant(model, np.array(part)) if isinstance(part, list) else part for part in each) for each in operators]
        put_after(model, name, *made)

    return defect


def operand(kind: str, position: int, make: Any) -> Spoil:
    """Replace an input of the first node of an operator by another value."""

    def defect(model: ir.Model) -> None:
        node = first(model, kind)
        node.replace_input_with(position, make(model, node))

    return defect


def attribute(kind: str, name: str, value: Any) -> Spoil:
    def defect(model: ir.Model) -> None:
        first(model, kind).attributes[name] = ir.convenience.convert_attribute(name, value)

    return defect


def zeros_like(position: int) -> Any:
    def make(model: ir.Model, node: ir.Node) -> ir.Value:
        node_before = ir.node("Sub", [node.inputs[position], node.inputs[position]])
        model.graph.insert_before(node, node_before)
        return node_before.outputs[0]

    return make


def swapped_outputs(model: ir.Model) -> None:
    one, other = model.graph.outputs
    one.name, other.name = "one", "other"
    one.name, other.name = "z", "y"
    model.graph.outputs[:] = [other, one]


def out_of_order(model: ir.Model) -> None:
    last = model.graph[-1]
    model.graph.remove(last)
    model.graph.insert_before(model.graph[0], last)


def clash(model: ir.Model) -> None:
    first(model, "MatMul").outputs[0].name = first(model, "Add").outputs[0].name


def state_before_the_step(model: ir.Model) -> None:
    body = first(model, "Scan").attributes["body"].as_graph()
    copy = ir.node("Identity", [body.inputs[0]])
    body.append(copy)
    body.outputs[1] = copy.outputs[0]


def wrong_type(model: ir.Model) -> None:
    model.graph[0].outputs[0].type = ir.TensorType(ir.DataType.DOUBLE)


def stale_rank(model: ir.Model) -> None:
    model.graph[0].outputs[0].shape = ir.Shape([7])


def lost_output(model: ir.Model) -> None:
    model.graph.outputs.pop()


def renamed_output(model: ir.Model) -> None:
    model.graph.outputs[0].name = "renamed"


def undefined(model: ir.Model) -> None:
    model.graph[-1].replace_input_with(0, ir.Value(name="nowhere", type=ir.TensorType(ir.DataType.FLOAT)))


def dropped_mask(model: ir.Model) -> None:
    where = first(model, "Where")
    where.outputs[0].replace_all_uses_with(where.inputs[1], replace_graph_outputs=True)


def other_operator(kind: str, new: str, domain: str = "") -> Spoil:
    def defect(model: ir.Model) -> None:
        node = first(model, kind)
        node.op_type, node.domain = new, domain

    return defect


def dropped_bias(model: ir.Model) -> None:
    node = first(model, "Add")
    node.outputs[0].replace_all_uses_with(node.inputs[0])


def one_weight(model: ir.Model, node: ir.Node) -> ir.Value:
    array = node.inputs[1].const_value.numpy().copy()
    array.flat[1] += 1e-2
    return constant(model, array)


def turned_weight(model: ir.Model, node: ir.Node) -> ir.Value:
    return constant(model, np.swapaxes(node.inputs[1].const_value.numpy(), -1, -2).copy())


LAST = [("Slice", [0], [-1], [0]), ("Pad", [0, 0, 0, 1, 0, 0])]
DEFECTS: dict[str, tuple[str, Any, Spoil]] = {
    "an axis too few where the batch is 1": (CELL, recurrent_cell, after("y", ("Squeeze",))),
    "an axis too few where the batch is 1, of an output of unknown rank": (OPEN, recurrent_cell, after("y", ("Squeeze",))),
    "an axis too few of an output of unknown rank": (OPEN, recurrent_cell, after("y", ("ReduceSum", [1], {"keepdims": 0}))),
    "an axis too many": (OPEN, recurrent_cell, after("z", ("Unsqueeze", [0]))),
    "steps and batch exchanged": (CELL, recurrent_cell, after("y", ("Transpose", {"perm": [1, 0, 2]}))),
    "the last step left out": (MAP, loop_fission, after("y", ("Slice", [0], [-1], [0]))),
    "the last step zero": (MAP, loop_fission, after("y", *LAST)),
    "a result short by one": (CELL, recurrent_cell, after("z", ("Slice", [0], [3], [1]))),
    "a result cut to a number of steps": (MAP, loop_fission, after("y", ("Slice", [0], [2], [0]))),
    "the initial state forgotten": (CELL, recurrent_cell, operand("RNN", 5, zeros_like(5))),
    "outputs exchanged": (MAP, loop_fission, swapped_outputs),
    "a result of the wrong direction": (MAP, loop_fission, after("y", ("Slice", [-1], [-(2**62)], [0], [-1]))),
    "the node in the wrong direction": (CELL, recurrent_cell, attribute("RNN", "direction", "reverse")),
    "another activation": (CELL, recurrent_cell, attribute("RNN", "activations", ["Relu"])),
    "the state before the step": (STAYS, loop_fission, state_before_the_step),
    "nodes out of order": (MAP, loop_fission, out_of_order),
    "a value read that nothing defines": (MAP, loop_fission, undefined),
    "two values of one name": (MAP, loop_fission, clash),
    "a type that is wrong": (MAP, loop_fission, wrong_type),
    "a rank that is wrong": (MAP, loop_fission, stale_rank),
    "an output lost": (MAP, loop_fission, lost_output),
    "an output by another name": (MAP, loop_fission, renamed_output),
    "an operator the opset has not": (MAP, loop_fission, other_operator("Sigmoid", "Gelu")),
    "an operator nobody has": (MAP, loop_fission, other_operator("Sigmoid", "FusedSigmoid", "com.microsoft")),
    "an operator for another": (MAP, loop_fission, other_operator("Sigmoid", "HardSigmoid")),
    "digits lost in a cast": (MAP, loop_fission, after("y", ("Cast", {"to": 10}), ("Cast", {"to": 1}))),
    "another element type": (OPEN, recurrent_cell, after("y", ("Cast", {"to": 11}))),
    "a mask dropped": (STAYS, loop_fission, dropped_mask),
    "a bias dropped": (MAP, loop_fission, dropped_bias),
    "a weight that is off by a hundredth": (MAP, loop_fission, operand("MatMul", 1, one_weight)),
    "a weight transposed": (MAP, loop_fission, operand("MatMul", 1, turned_weight)),
    "numbers that are sums over all steps": (MAP, hoist_invariants, after("y", ("CumSum", [0]))),
    "the first step alone": (CELL, recurrent_cell, after("y", ("Gather", [0], {"axis": 0}))),
    "rows of a written buffer without an axis": (ROWS, written_rows, after("y", ("Squeeze",))),
    "rows of a written buffer one place on": (ROWS, written_rows, after("y", *LAST)),
    "a loop that became a Scan backwards": (ROWS, loop_to_scan, after("y", ("Slice", [-1], [-(2**62)], [0], [-1]))),
    "an error of Python's": (MAP, loop_fission, failing(IndexError("list index out of range"))),
}


@pytest.mark.parametrize(("text", "rule", "defect"), DEFECTS.values(), ids=list(DEFECTS))
def test_a_planted_defect_reaches_nobody_and_its_patch_is_named(
    text: str, rule: Any, defect: Spoil, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(text)
    done = []
    spoil(monkeypatch, rule, lambda model: (done.append(model), defect(model)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            ortscan.optimize(model, target="onnx")
            said = [str(each.message) for each in told if issubclass(each.category, OrtscanWarning)]
        except VerificationFailed as error:
            said = [str(error)]
    assert done, "the rule was not used"
    assert said, "nothing was found"
    assert re.search(rf"(took back |change \d+, ){rule.RULE.name} on main/", said[0]), said


def test_there_are_thirty_and_more() -> None:
    assert len(DEFECTS) > 30
