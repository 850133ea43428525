"""The family of recurrent cells, drawn at random: cell, encoding, direction, initial state, mask and element type, and mutants of each.

`python -m tests.rewrites.recurrences.family COUNT SEED` draws more than the suite does and prints what is wrong.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.recurrences.written_cells import ENCODINGS, HIDDEN, INPUT, SIGMOIDS, written
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

__all__ = ["Member", "check", "draw", "mutant"]

STEPS, ROWS = 5, 3
KINDS = ("RNN", "GRU", "GRU keeping the rest", "LSTM", "LSTM peepholes", "LSTM coupled")
MASKS = {
    "none": "",
    "Where": "{new}k = Where (m, {new}, {old})",
    "Where not": "{new}k = Where (over, {old}, {new})",
    "products": "{new}p = Mul (fm, {new})  {new}q = Mul ({old}, fn)  {new}k = Add ({new}p, {new}q)",
}
PREFIX = "m = Less (now, lengths)  over = Not (m)  fm = Cast <to = 1> (m)  fn = Cast <to = 1> (over)"
ANY = "m = Identity (given)  over = Not (m)  fm = Cast <to = 1> (m)  fn = Cast <to = 1> (over)"
INITIAL = ("given", "zeros", "computed zeros")
TYPES = {1: (1e-4, 1e-5), 10: (3e-2, 6e-3), 11: (1e-9, 1e-12)}
NATIVE = frozenset({"RNN", "GRU", "LSTM"})


@dataclass(frozen=True)
class Member:
    """A random cell. `fuses`: the loop must become a native node."""

    name: str
    model: onnx.ModelProto
    fuses: bool
    kind: int


def draw(seed: int) -> Member:
    """Return a random member of the family."""
    rng = random.Random(seed)
    kind, encoding, sigmoid = rng.choice(KINDS), rng.choice(ENCODINGS), rng.choice(list(SIGMOIDS))
    reverse, initial, dtype = rng.random() < 0.5, rng.choice(INITIAL), rng.choice((1, 1, 10, 11))
    cell = written(kind, encoding, sigmoid)
    mask, prefix = rng.choice(list(MASKS)) if cell.rank == 2 else "none", rng.random() < 0.5
    rows = f"{ROWS}," if cell.rank == 2 else ""
    suffix = "" if mask == "none" else "k"
    kept = "  ".join(MASKS[mask].format(new=f"{state}1", old=state) for state in cell.states)
    inner = ", ".join(f"float[{rows}{HIDDEN}] {state}" for state in cell.states)
    nexts = ", ".join(f"float[{rows}{HIDDEN}] {state}1{suffix}" for state in cell.states)
    directions = ", scan_input_directions = [1, 1, 1], scan_output_directions = [1]" if reverse else ""
    declared = "".join(f"float[{rows}{HIDDEN}] {state}0, " for state in cell.states)
    finals = [f"{state}n" for state in cell.states]
    zeros = " ".join(f"{state}z = Mul ({state}0, naught)" for state in cell.states) if initial == "computed zeros" else ""
    start = {"given": "0", "zeros": "zero", "computed zeros": "z"}[initial]
    text = f"""<ir_version: 8, opset_import: ["": 18]>
    g ({declared} float[{STEPS},{rows}{INPUT}] xs, bool[{STEPS},{ROWS},1] masks, int64[{ROWS},1] lengths, int64[{STEPS}] times)
    => ({", ".join(f"float[{rows}{HIDDEN}] {final}" for final in finals)}, float[{STEPS},{rows}{HIDDEN}] ys) {{
        {zeros} {cell.before}
        {", ".join(finals)}, ys = Scan <num_scan_inputs = 3{directions}, body = step ({inner}, float[{rows}{cell.width}] x,
            bool[{ROWS},1] given, int64 now) => ({nexts}, float[{rows}{HIDDEN}] y) {{
            {(PREFIX if prefix else ANY) if suffix else ""} {cell.body} {kept} y = Identity (h1{suffix})
        }}> ({", ".join(f"{state}{start}" for state in cell.states)}, {cell.scanned}, masks, times) }}"""
    model = onnx.parser.parse_model(text)
    shape = (ROWS, HIDDEN) if cell.rank == 2 else (HIDDEN,)
    weights = cell.weights | {"naught": np.zeros(1, np.float32)}
    if initial == "zeros":
        weights |= {f"{state}zero": np.zeros(shape, np.float32) for state in cell.states}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    _retype(model.graph, dtype)
    name = f"{kind}, {encoding}, {sigmoid}, {'reverse' if reverse else 'forward'}, {initial}, {mask}, {dtype}, {seed}"
    return Member(name, model, dtype != 11, dtype)


def _retype(graph: onnx.GraphProto, dtype: int) -> None:
    for info in (*graph.input, *graph.output):
        if info.type.tensor_type.elem_type == 1:
            info.type.tensor_type.elem_type = dtype
    for tensor in graph.initializer:
        if tensor.data_type == 1:
            array = onnx.numpy_helper.to_array(tensor).astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _retype(attribute.g, dtype)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == 1:
                attribute.i = dtype


ALIKE = (("Add", "Sub", "Mul", "Max", "Min"), ("Sigmoid", "Tanh", "Relu", "Softsign", "Neg", "Identity", "HardSigmoid"))


def mutant(member: Member, seed: int) -> Member | None:
    """Change one thing in the body so that onnxruntime still runs the model; return None if no such change exists.

    Nor for float16: what a change makes of a cell may amplify the roundings of its original beyond any tolerance.
    """
    rng = random.Random(seed)
    if member.kind == onnx.TensorProto.FLOAT16:
        return None
    for _ in range(12):
        model = onnx.ModelProto()
        model.CopyFrom(member.model)
        body = next(onnx.helper.get_node_attr_value(node, "body") for node in model.graph.node if node.op_type == "Scan")
        place = rng.randrange(len(body.node))
        node = body.node[place]
        what = rng.choice(("operator", "order", "operand", "weight"))
        if what == "operator":
            others = [op for group in ALIKE if node.op_type in group for op in group if op != node.op_type]
            node.op_type = rng.choice(others) if others else node.op_type
        elif what == "order":
            turned = list(node.input)
            turned[-2:] = turned[-2:][::-1]
            node.input[:] = turned
        elif what == "operand":
            known = [info.name for info in body.input] + [value for one in body.node[:place] for value in one.output]
            node.input[rng.randrange(len(node.input))] = rng.choice(known)
        else:
            tensor = rng.choice(model.graph.initializer)
            array = np.array(onnx.numpy_helper.to_array(tensor))
            if array.dtype.kind == "f":
                array.reshape(-1)[rng.randrange(array.size)] += array.dtype.type(rng.choice((0.5, -1, 1)))
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        if model == member.model:
            continue
        try:
            onnx.checker.check_model(model, full_check=True)
            ort_run(model, feeds_of(model, 0))
        except Exception:
            continue
        return Member(f"{member.name} with another {what} at {node.op_type} {place}, {seed}", model, False, member.kind)
    return None


def feeds_of(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Return random inputs. One row never runs, and one always does."""
    rng = np.random.default_rng(seed)
    feeds = dict[str, np.ndarray]()
    for info in model.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        feeds[info.name] = rng.standard_normal(shape).astype(kind)
    feeds["masks"] = rng.random((STEPS, ROWS, 1)) < 0.5
    feeds["masks"][:, 0], feeds["masks"][:, 1] = False, True
    feeds["lengths"] = np.array([[0], [STEPS], [rng.integers(1, STEPS + 2)]])
    feeds["times"] = np.arange(STEPS)
    return feeds


def check(member: Member) -> str:
    """Optimise and compare; return the fate of the loop."""
    result = to_caller_type(rewritten(member.model, target="onnx", debug=True)[0])
    onnx.checker.check_model(result, full_check=True)
    rtol, atol = TYPES[member.kind]
    for seed in range(2):
        feeds = feeds_of(member.model, seed)
        assert_same_numbers(ort_run(result, feeds), ort_run(member.model, feeds), rtol=rtol, atol=atol)
    operators = {node.op_type for node in result.graph.node}
    assert not member.fuses or (operators & NATIVE and "Scan" not in operators), "the loop must become a native node"
    return "native" if operators & NATIVE else "loop" if "Scan" in operators else "neither"


def main() -> None:
    """Check many random members."""
    count, first = int(sys.argv[1]), int(sys.argv[2])
    found = Counter[str]()
    for seed in range(first, first + count):
        member = draw(seed)
        for each in (member, mutant(member, seed)):
            if each is None:
                continue
            try:
                found[f"{'member' if each is member else 'mutant'}: {check(each)}"] += 1
            except Exception as error:
                found["WRONG"] += 1
                print(each.name, type(error).__name__, str(error)[:500])
    print(dict(found))


if __name__ == "__main__":
    main()
