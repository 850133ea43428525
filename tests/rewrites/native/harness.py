"""Loops compiled: their plans as text, why there is none, and their numbers beside those of onnxruntime."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.driver.prepare import prepare
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.loops import ScanView, loops_in, view
from rewrites.native.compiling import CompiledLoop, compile_loop
from rewrites.native.encoding import encode
from rewrites.native.operations import NUMPY, bytes_of
from rewrites.native.plan import Plan, Size, Storage, ValueKind
from tests.rewrites.apply import context_of, read
from tests.support.plan_decoder import decode
from tests.support.plan_interpreter import run_plan
from tests.support.runtime import ort_run

__all__ = ["compiled", "listing", "refusal", "same_numbers"]


def compiled(model: onnx.ModelProto) -> tuple[ScanView, CompiledLoop | NotApplicable]:
    """The only loop of a model that is in no other, and its plan or why there is none."""
    ctx = context_of(model)
    prepare(ctx)
    loop = _loop(ctx)
    return loop, compile_loop(loop, ctx)


def _loop(ctx: Context) -> ScanView:
    loop = view(loops_in(ctx.model.graph)[-1], ctx.opset)
    assert isinstance(loop, ScanView)
    return loop


def refusal(text: str, opset: int = 18) -> str:
    """The code of the reason why there is no plan."""
    _, outcome = compiled(read(text, opset, check="float[]" not in text))
    assert isinstance(outcome, NotApplicable), listing(outcome.plan)
    assert outcome.detail
    return outcome.code


def plan_of(text: str, opset: int = 18) -> Plan:
    """The plan of the only loop."""
    _, outcome = compiled(read(text, opset, check="float[]" not in text))
    assert isinstance(outcome, CompiledLoop), outcome
    return outcome.plan


def same_numbers(
    text: str | onnx.ModelProto,
    feeds: Mapping[str, Any] | None = None,
    *,
    opset: int = 18,
    close: float = 2e-5,
    seed: int = 0,
    wanted: Mapping[str, np.ndarray] | None = None,
    **sizes: int,
) -> Plan:
    """Check that the plan of the only loop computes in numpy what onnxruntime computes, or what is `wanted`, and return it."""
    model = read(text, opset, check="float[]" not in text) if isinstance(text, str) else text
    loop, outcome = compiled(model)
    assert isinstance(outcome, CompiledLoop), outcome
    feeds = feeds or random_feeds(model, seed, **sizes)
    values = [*(state.initial for state in loop.states), *(scan.outer for scan in loop.scan_inputs), *outcome.captured]
    results = run_plan(decode(encode(outcome.plan)), [_array(value, feeds) for value in values])
    names = [value.name for value in loop.node.outputs]
    expected = wanted or dict(zip([info.name for info in model.graph.output], ort_run(model, feeds), strict=True))
    compared = [(name, mine) for name, mine in zip(names, results, strict=True) if name in expected]
    assert compared
    for name, mine in compared:
        if mine.dtype.kind != "f":
            np.testing.assert_array_equal(mine, expected[name or ""], str(name), strict=True)
            continue
        np.testing.assert_allclose(mine, expected[name or ""], rtol=close, atol=close, err_msg=str(name))
    return outcome.plan


def random_feeds(model: onnx.ModelProto, seed: int, **sizes: int) -> dict[str, np.ndarray]:
    """Normal numbers for each input of the model; those of `sizes` by their names, others of unknown size with 5."""
    rng = np.random.default_rng(seed)
    given = {tensor.name for tensor in model.graph.initializer}
    return {
        info.name: rng.normal(
            size=[dim.dim_value or sizes.get(dim.dim_param, 5) for dim in info.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for info in model.graph.input
        if info.name not in given
    }


def _array(value: ir.Value, feeds: Mapping[str, Any]) -> np.ndarray:
    known = const_array(value, limit=1 << 30)
    return np.asarray(feeds[value.name or ""] if known is None else known)


def listing(plan: Plan) -> str:
    """The states, constants and instructions of a plan, a line each."""
    lines = [_state(index, plan) for index in range(len(plan.states))]
    for each in plan.instructions:
        walk = "x".join(str(size.coefficient) for size in each.dims if size != Size(1)) or "1"
        matrix = "" if each.matrix == (Size(1),) * 3 else " [" + " ".join(str(size.coefficient) for size in each.matrix) + "]"
        target, *sources = ["-" if operand is None else _operand(plan, operand) for operand in each.operands]
        numbers = "".join(f" {number:g}" for number in each.immediates if number)
        lines.append(f"{target} = {each.op.name}{matrix} {' '.join(sources)}{numbers} over {walk}")
    return "\n".join(lines)


def _state(index: int, plan: Plan) -> str:
    state = plan.states[index]
    where = f"rows of y{state.region_or_output}" if state.storage == Storage.OUTPUT_ROWS else f"at {state.offset.coefficient}"
    return f"h{index}: {state.storage.name.lower().replace('_', ' ')} {where}".replace("output rows rows", "rows")


_LETTERS = {
    ValueKind.SCANNED: "x",
    ValueKind.CAPTURED: "w",
    ValueKind.CONSTANT: "c",
    ValueKind.TEMPORARY: "t",
    ValueKind.STACKED: "y",
    ValueKind.OLD: "h",
    ValueKind.NEW: "h'",
    ValueKind.PACK: "p",
}


def _operand(plan: Plan, operand: Any) -> str:
    value = plan.values[operand.value]
    if value.kind == ValueKind.CONSTANT:
        start = value.offset.coefficient * bytes_of(value.dtype)
        numbers = np.frombuffer(plan.constants, NUMPY[value.dtype], value.count.coefficient, start).tolist()
        return "(" + " ".join(f"{number:g}" for number in numbers[:8]) + ")"
    number = value.offset.coefficient if value.kind == ValueKind.TEMPORARY else value.index
    return f"{_LETTERS[value.kind]}{number}" + _address(operand)


def _address(operand: Any) -> str:
    strides = [stride.coefficient for stride in operand.strides]
    offset = operand.offset.coefficient
    plain = strides[:3] == [0, 0, 0] and strides[3] in (0, 1) and not offset
    return "" if plain and strides[3] == 1 else "[" + (f"{offset}; " if offset else "") + " ".join(map(str, strides)) + "]"
