"""Operators run on the nastiest values of their types: `python -m tests.rewrites.analysis.nasty_values` prints those that fail.

A process of its own, since an operator that divides integers by zero ends it; the last line tells which was run last.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.support.runtime import ort_session, run_session

__all__ = ["CASES", "Case", "model_of"]

DTYPES = {
    "f": np.float32,
    "d": np.float64,
    "h": np.float16,
    "i": np.int32,
    "l": np.int64,
    "b": np.int8,
    "u": np.uint8,
    "q": np.bool_,
}
LARGEST_OPSET = 22


@dataclass
class Case:
    """``inputs``: a letter for the type and the sizes of each (`f2x3`, `f` for one number), or the numbers of a constant."""

    op: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = LARGEST_OPSET

    @property
    def fed(self) -> dict[str, tuple[type, tuple[int, ...]]]:
        given = {f"x{i}": spec for i, spec in enumerate(self.inputs) if isinstance(spec, str) and spec}
        return {name: (DTYPES[spec[0]], tuple(map(int, spec[1:].split("x"))) if spec[1:] else ()) for name, spec in given.items()}


def _same(ops: str, *inputs: str, **attributes: Any) -> Iterator[Case]:
    for op in ops.split():
        yield Case(op, list(inputs), attributes)


def _cases() -> Iterator[Case]:
    unary = (
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu "
        "Log Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Size Shape Softplus Softsign Sqrt Tan Tanh ThresholdedRelu "
        "ArgMax ArgMin Flatten Hardmax LogSoftmax Softmax LpNormalization DynamicQuantizeLinear EyeLike Transpose"
    )
    for op in unary.split():
        yield Case(op, ["f2x3"], outputs=3 if op == "DynamicQuantizeLinear" else 1)
    for kind in "dhilbu":
        yield from _same("Abs Neg Sign Relu Identity Clip", f"{kind}2x3")
        yield from _same("Add Mul Sub Max Min Pow Equal Less LessOrEqual Greater GreaterOrEqual", f"{kind}2x3", f"{kind}3")
        yield Case("Clip", [f"{kind}2x3", kind, kind])
        yield from _same("ArgMax ArgMin Transpose EyeLike", f"{kind}2x3")
        yield Case("Where", ["q2x3", f"{kind}3", f"{kind}2x3"])
        yield from (Case("Cast", [f"{kind}2x3"], {"to": to}) for to in (1, 2, 3, 6, 7, 8, 9, 10, 11, 16))
    yield from (Case("Cast", [f"{kind}2x3"], {"to": to}) for kind in "fq" for to in (1, 2, 3, 6, 7, 8, 9, 10, 11, 16))
    yield from _same("Add Mul Sub Div Max Min Pow Sum Mean Equal Less LessOrEqual Greater GreaterOrEqual PRelu", "f2x3", "f3")
    yield from _same("Div", "d2x3", "d3")
    yield from _same("Mod", "f2x3", "f3", fmod=1)
    yield from _same("And Or Xor", "q2x3", "q3")
    yield from _same("BitwiseAnd BitwiseOr BitwiseXor", "i2x3", "i3")
    yield from [Case("Not", ["q2x3"]), Case("BitwiseNot", ["l2x3"]), Case("Constant", [], {"value_float": 1.0})]
    yield from [Case("Clip", ["f2x3", "f", "f"]), Case("Where", ["q2x3", "f3", "f"]), Case("Concat", ["f2x3", "f2x1"], {"axis": 1})]
    pooled = {"kernel_shape": [2, 2]}
    yield from (Case(op, ["f1x2x4x4"], pooled) for op in ("AveragePool", "LpPool"))
    yield from [Case("MaxPool", ["f1x2x4x4"], pooled, outputs=2), Case("MaxPool", ["u1x2x4x4"], pooled)]
    yield from (Case(op, ["f1x2x4x4"]) for op in ("GlobalAveragePool", "GlobalMaxPool", "MeanVarianceNormalization"))
    yield from [Case("LRN", ["f1x2x4x4"], {"size": 3}), Case("DepthToSpace", ["f1x4x2x2"], {"blocksize": 2})]
    yield Case("SpaceToDepth", ["f1x1x4x4"], {"blocksize": 2})
    yield from [Case("Conv", ["f1x2x4x4", "f2x2x3x3", "f2"]), Case("ConvTranspose", ["f1x2x4x4", "f2x2x3x3", "f2"])]
    yield from [Case("MatMul", ["f2x3", "f3x2"]), Case("MatMul", ["i2x3", "i3x2"]), Case("Gemm", ["f2x3", "f3x2", "f2"])]
    yield from [Case("Einsum", ["f2x3", "f3x2"], {"equation": "ij,jk->ik"}), Case("MatMulInteger", ["u2x3", "b3x2", "u", "b2"])]
    yield Case("BatchNormalization", ["f1x2x3", "f2", "f2", "f2", "f2"])
    yield from [Case("InstanceNormalization", ["f1x2x3", "f2", "f2"]), Case("LayerNormalization", ["f2x3", "f3", "f3"], outputs=3)]
    yield Case("GroupNormalization", ["f1x4x3", "f4", "f4"], {"num_groups": 2})
    yield Case("RMSNormalization", ["f2x3", "f3"], opset=23)
    yield Case("GlobalLpPool", ["f1x2x4x4"], opset=21)
    yield Case("Swish", ["f2x3"], opset=24)
    yield from (Case("QuantizeLinear", ["f2x3", "f", f"{kind}"]) for kind in "bu")
    yield from [
        Case("QuantizeLinear", ["f2x3", "f3", "u3"], {"axis": 1}),
        Case("DequantizeLinear", ["u2x3", "f3", "u3"], {"axis": 1}),
    ]
    yield from (Case("DequantizeLinear", [f"{kind}2x3", "f", kind]) for kind in "bui")
    yield from (Case("QLinearMatMul", ["u2x3", "f", "u", f"{kind}3x2", "f2", f"{kind}2", "f", "u"]) for kind in "bu")
    yield from (Case("QLinearConv", ["u1x2x4x4", "f", "u", f"{kind}2x2x3x3", "f2", f"{kind}2", "f", "u", "i2"]) for kind in "bu")
    yield from (Case(op, ["f2x3", [1]], {"keepdims": 0}) for op in REDUCTIONS)
    yield from (Case(op, ["l2x3", [1]]) for op in REDUCTIONS if op not in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2"))
    yield from [Case("CumSum", ["f2x3", 1]), Case("Expand", ["f2x3", [2, 2, 3]]), Case("Gather", ["f2x3", [1, -2]])]
    yield from [
        Case("GatherElements", ["f2x3", [[1, 0, -1]]]),
        Case("GatherND", ["f2x3", [[1, 2]]]),
        Case("Reshape", ["f2x3", [3, -1]]),
    ]
    yield from [Case("Pad", ["f2x3", [1, 0, 0, 1]], {"mode": mode}) for mode in ("constant", "edge", "reflect")]
    yield from [
        Case("Slice", ["f2x3", [0], [1]]),
        Case("Split", ["f2x3", [1, 2]], {"axis": 1}, outputs=2),
        Case("Tile", ["f2x3", [2, 1]]),
    ]
    yield from [Case("Squeeze", ["f1x3", [0]]), Case("Unsqueeze", ["f2x3", [0]]), Case("Trilu", ["f3x3", 1])]
    yield from (Case("TopK", [f"{kind}2x3", [2]], outputs=2) for kind in "fdil")
    modes: list[dict[str, Any]] = [{"mode": "nearest"}, {"mode": "linear"}, {"mode": "cubic"}]
    yield from (Case("Resize", ["f1x1x4x4", "", np.array([1, 1, 0.5, 2], np.float32)], mode) for mode in modes)
    yield Case("Upsample", ["f1x1x4x4", np.array([1, 1, 2, 2], np.float32)], opset=9)
    yield from (
        Case("ScatterElements", ["f2x3", [[1, 0, -1]], "f1x3"], {"reduction": how}) for how in ("none", "add", "mul", "max", "min")
    )
    yield from (
        Case("ScatterND", ["f2x3", [[1], [-2]], "f2x3"], {"reduction": how}) for how in ("none", "add", "mul", "max", "min")
    )
    yield Case("Scatter", ["f2x3", [[1, 0, -1]], "f1x3"], opset=9)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        yield Case(
            op, ["f2x1x3", f"f1x{2 * gates}x3", f"f1x{2 * gates}x2", f"f1x{4 * gates}", "", "f1x1x2"], {"hidden_size": 2}, outputs=2
        )


REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
CASES = list(_cases())


def model_of(case: Case) -> onnx.ModelProto:
    constants = {f"x{i}": np.asarray(spec) for i, spec in enumerate(case.inputs) if not isinstance(spec, str)}
    names = ["" if isinstance(spec, str) and not spec else f"x{i}" for i, spec in enumerate(case.inputs)]
    node = helper.make_node(case.op, names, [f"y{i}" for i in range(case.outputs)], **case.attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
        for name, (kind, shape) in case.fed.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "g", given, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def nasty(kind: type, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Values of which each is at an end of its type or is no number, or all one such."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        ends = np.finfo(dtype)
        values = [0.0, -0.0, np.nan, np.inf, -np.inf, ends.max, ends.min, ends.smallest_subnormal, 1.0, -1.0, 0.5]
    elif dtype.kind == "b":
        values = [False, True]
    else:
        limits = np.iinfo(dtype)
        values = [0, 1, limits.max, limits.min, limits.max // 2]
    one = random.random() < 0.4
    return np.array(random.choice(np.array(values, dtype), () if one else shape) * np.ones(shape, dtype), dtype)


def main() -> None:
    random = np.random.default_rng(0)
    for case in CASES:
        try:
            session = ort_session(model_of(case))
        except Exception as error:
            print("not run", case.op, case.inputs, str(error)[:80])
            continue
        print("run", case.op, case.inputs, flush=True)
        for _ in range(8):
            feeds = {name: nasty(kind, shape, random) for name, (kind, shape) in case.fed.items()}
            try:
                run_session(session, feeds)
            except Exception as error:
                print("failed", case.op, case.inputs, str(error)[-120:])
                break
    print("done")


if __name__ == "__main__":
    main()
