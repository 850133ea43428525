"""A Scan written by its parts, split, and compared on onnxruntime and with the plain loop over time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from rewrites.base.report import RewriteReport
from rewrites.cleanup import unused_scan_inputs
from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply, read
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

__all__ = ["body_ops", "data", "loops_of", "outer_ops", "scan", "split"]

RULES = [own_outputs, unused_scan_inputs, loop_fission]


def scan(body: str, results: str, *, states: str = "", scans: str = "x", attributes: str = "", steps: str = "5") -> str:
    """A model whose main graph is one Scan; each state `s` starts at the input `s0`, and all are float[3] in a step.

    `body` gives each state `s` its next value under the name `s_next`; `results` are the names of scan outputs in the body.
    """
    held, given, made = states.split(), scans.split(), results.split()
    inputs = [*(f"float[3] {s}0" for s in held), *(f"float[{steps}, 3] {x}s" for x in given), "float[3] w"]
    inner = ", ".join(f"float[3] {name}" for name in [*held, *given])
    next_values = ", ".join([*(f"float[3] {s}_next" for s in held), *(f"float[3] {name}" for name in made)])
    outer = [*(f"{s}_last" for s in held), *(f"{name}s" for name in made)]
    shapes = [*(f"float[3] {s}_last" for s in held), *(f"float[{steps}, 3] {name}s" for name in made)]
    operands = ", ".join([*(f"{s}0" for s in held), *(f"{x}s" for x in given)])
    return f"""main ({", ".join(inputs)}) => ({", ".join(shapes)}) {{
        {", ".join(outer)} = Scan <num_scan_inputs: int = {len(given)} {attributes},
            body: graph = body ({inner}) => ({next_values}) {{ {body} }}> ({operands})
    }}"""


def split(
    text: str, *, opset: int = 18, feeds: Mapping[str, Any] | None = None, options: Options | None = None, numbers: bool = True
) -> tuple[onnx.ModelProto, RewriteReport]:
    """What splitting makes of `text`: run on onnxruntime it must give what onnxruntime, and the plain loop, give for `text`."""
    before = read(text, opset)
    given = data(before) if feeds is None else feeds
    after, report = apply(before, RULES, options=options, feeds=given if numbers else None)
    if numbers:
        assert_same_numbers(ort_run(after, given), run_model(before, given))
    return after, report


def data(model: onnx.ModelProto, **sizes: int) -> dict[str, np.ndarray]:
    """Random inputs; symbolic dimensions are 4 unless `sizes` says otherwise."""
    random = np.random.default_rng(7)
    feeds = {}
    for info in model.graph.input:
        kind = info.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else sizes.get(dim.dim_param, 4) for dim in kind.shape.dim]
        numbers = random.integers(-4, 5, shape)
        if kind.elem_type == onnx.TensorProto.STRING:
            feeds[info.name] = numbers.astype(str).astype(object)
        elif kind.elem_type == onnx.TensorProto.FLOAT:
            feeds[info.name] = random.standard_normal(shape).astype(np.float32)
        else:
            feeds[info.name] = numbers.astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


def loops_of(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The Scans of the main graph."""
    return [node for node in model.graph.node if node.op_type == "Scan"]


def body_ops(model: onnx.ModelProto) -> list[str]:
    """The operators left in the only Scan of the main graph, sorted, copies and constants aside."""
    (node,) = loops_of(model)
    (body,) = [attribute.g for attribute in node.attribute if attribute.name == "body"]
    return sorted(inner.op_type for inner in body.node if inner.op_type not in ("Identity", "Constant"))


def outer_ops(model: onnx.ModelProto) -> list[str]:
    """The operators of the main graph, sorted."""
    return sorted(node.op_type for node in model.graph.node)
