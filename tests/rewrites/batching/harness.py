"""Runs one-operator bodies on ORT step by step, and what the batching table makes of them at once, and compares.

All cases of one ``check`` share two sessions: the bodies side by side in one model, and the batched operators in another, whose
number of steps is symbolic, so that it is also run with one step, and with none.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Call, Operand, Result, batch
from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.names import Names
from rewrites.ops.versions import shape_of

STEPS = 3
_TREES_SINCE = 5
F32, F64, F16, I32, I64, I8, U8, BOOL = "float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool"
_RNG = np.random.default_rng(0)
_TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}


@dataclass
class Arg:
    """One operand: its data (with the steps in front where ``batched``), and what its body declares of its shape."""

    data: np.ndarray
    batched: bool = False
    constant: bool = False
    dims: Sequence[int | str | None] | None = None

    @property
    def step_shape(self) -> tuple[int, ...]:
        return self.data.shape[1:] if self.batched else self.data.shape

    def at(self, step: int) -> np.ndarray:
        return np.asarray(self.data[step]) if self.batched else self.data


@dataclass
class Case:
    """One operator in ONNX text, with its operands by name."""

    text: str
    args: dict[str, Arg]
    unknown_rank: bool = False


def case(text: str, *, unknown_rank: bool = False, **args: Arg) -> Case:
    return Case(text, args, unknown_rank)


def steps(dtype: str, *shape: int, dims: Sequence[int | str | None] | None = None, low: int = -4, high: int = 5) -> Arg:
    """Random data that differ between steps."""
    return Arg(_random(dtype, (STEPS, *shape), low, high), batched=True, dims=dims)


def same(dtype: str, *shape: int, dims: Sequence[int | str | None] | None = None, low: int = -4, high: int = 5) -> Arg:
    """Random data that are the same in every step."""
    return Arg(_random(dtype, shape, low, high), dims=dims)


def given(array: Any, dtype: str, *, batched: bool = False) -> Arg:
    """Chosen data fed at run time."""
    return Arg(np.array(array, dtype=dtype), batched=batched)


def const(array: Any, dtype: str = I64) -> Arg:
    """An initializer of the body."""
    return Arg(np.array(array, dtype=dtype), constant=True)


def check(cases: Sequence[Case], opset: int = 18, *, exact: bool = False, empty: bool = True, known_steps: bool = False) -> None:
    """Compare all cases with their bodies run step by step; where ``empty``, also what is made for possibly no steps at all.

    Where ``known_steps``, the number of steps is declared, and nothing is run with another.
    """
    bodies = _bodies(cases, opset)
    step_session = _session(bodies)
    per_step = [step_session.run(None, _feeds(cases, step, step_session)) for step in range(STEPS)]
    for output, found in zip(bodies.graph.output, per_step[0], strict=True):
        if output.type.WhichOneof("value") is None:
            output.CopyFrom(_info(output.name, found, found.shape))
    ways = [((STEPS,), False)] if known_steps else [((STEPS, 1), False), ((STEPS, 0), True)][: 1 + empty]
    for lengths, may_be_empty in ways:
        outer, answers = _batched(cases, bodies, opset, may_be_empty, STEPS if known_steps else "T")
        session = _session(outer)
        for count in lengths:
            found = session.run(None, _all_feeds(cases, count))
            for place, (got, (owner, result)) in enumerate(zip(found, answers, strict=True)):
                wanted = np.stack([outputs[place] for outputs in per_step])[:count] if result.batched else per_step[0][place]
                _compare(got, wanted, result, f"{owner.text} of {_shapes(owner)}, {count} steps, opset {opset}", exact)


def refusal(
    one: Case, opset: int = 18, *, may_be_empty: bool = False, declared: Sequence[int] | None = None, because_of: str | None = None
) -> str:
    """Give the code with which the table refuses a case (or the operator in it named here), and check that nothing is left."""
    bodies = _bodies([one], opset)
    model, body, builder = _outer([one], bodies)
    call = dataclasses.replace(_call(0, one, model, next(iter(body.graph)), builder), may_be_empty=may_be_empty)
    if declared is not None:
        call.node.outputs[0].shape = ir.Shape(declared)
    before = list(builder.nodes)
    answer = batch(call)
    assert isinstance(answer, NotApplicable), "not refused"
    assert (because_of or call.node.op_type) in answer.detail
    assert builder.nodes == before
    return answer.code


def emitted(one: Case, opset: int = 18) -> list[str]:
    """Give the types of the operators that one case becomes."""
    model, body, builder = _outer([one], _bodies([one], opset))
    call = _call(0, one, model, next(iter(body.graph)), builder)
    before = len(builder.nodes)
    answer = batch(call)
    assert not isinstance(answer, NotApplicable), str(answer)
    return [node.op_type for node in builder.nodes[before:]]


def _bodies(cases: Sequence[Case], opset: int) -> onnx.ModelProto:
    graph = onnx.GraphProto(name="bodies")
    for number, one in enumerate(cases):
        node = onnx.parser.parse_node(one.text)
        node.name = f"n{number}"
        for names in (node.input, node.output):
            names[:] = [f"{number}.{name}" if name else "" for name in names]
        for inner in _nested_nodes(node):
            inner.input[:] = [f"{number}.{name}" if name in one.args else name for name in inner.input]
        graph.node.append(node)
        for name, arg in one.args.items():
            if arg.constant:
                graph.initializer.append(onnx.numpy_helper.from_array(arg.data, f"{number}.{name}"))
            else:
                graph.input.append(_info(f"{number}.{name}", arg.data, _declared(one, arg)))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=_imports(opset, cases))
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _declared(one: Case, arg: Arg) -> Sequence[int | str | None] | None:
    return None if one.unknown_rank else arg.dims if arg.dims is not None else arg.step_shape


def _nested_nodes(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    inner = [one for attribute in node.attribute for one in attribute.g.node]
    return inner + [deeper for one in inner for deeper in _nested_nodes(one)]


def _imports(opset: int, cases: Sequence[Case]) -> list[onnx.OperatorSetIdProto]:
    trees = _TREES_SINCE if any("TreeEnsemble " in one.text for one in cases) else _TREES_SINCE - 1
    return [
        onnx.helper.make_opsetid("", opset),
        onnx.helper.make_opsetid("com.microsoft", 1),
        onnx.helper.make_opsetid("ai.onnx.ml", trees),
    ]


def _outer(cases: Sequence[Case], bodies: onnx.ModelProto, count: int | str = "T") -> tuple[ir.Model, ir.Model, Builder]:
    graph = onnx.GraphProto(name="outer")
    for number, name, arg in _args(cases):
        declared = _declared(cases[number], arg)
        if arg.constant:
            graph.initializer.append(onnx.numpy_helper.from_array(arg.data, f"{number}.{name}"))
        else:
            shape = None if declared is None else [count, *declared] if arg.batched else declared
            graph.input.append(_info(f"{number}.{name}", arg.data, shape))
    model = ir.from_proto(onnx.helper.make_model(graph, ir_version=10, opset_imports=bodies.opset_import))
    names = Names(model)
    builder = Builder(names, ConstantPool(model.graph, names), model.opset_imports, model.ir_version)
    body = ir.from_proto(bodies)
    infer_model(body)
    return model, body, builder


def _call(number: int, one: Case, model: ir.Model, node: ir.Node, builder: Builder) -> Call:
    values = {value.name: value for value in [*model.graph.inputs, *model.graph.initializers.values()]}

    def operand_of(inner: ir.Value) -> Operand:
        return Operand(values[inner.name], one.args[(inner.name or "").split(".")[1]].batched, inner)

    operands = tuple(None if inner is None else operand_of(inner) for inner in node.inputs)
    first = next(values[f"{number}.{name}"] for name, arg in one.args.items() if arg.batched)
    return Call(node, operands, builder, shape_of(builder, first, 0), captured=operand_of)


def _batched(
    cases: Sequence[Case], bodies: onnx.ModelProto, opset: int, may_be_empty: bool, count: int | str
) -> tuple[onnx.ModelProto, list[tuple[Case, Result]]]:
    model, body, builder = _outer(cases, bodies, count)
    answers: list[tuple[Case, Result]] = []
    for number, (one, node) in enumerate(zip(cases, body.graph, strict=True)):
        answer = batch(dataclasses.replace(_call(number, one, model, node, builder), may_be_empty=may_be_empty))
        assert not isinstance(answer, NotApplicable), f"{one.text} of {_shapes(one)} in opset {opset}: {answer}"
        for output, result in zip(node.outputs, answer, strict=True):
            if not output.name:
                continue
            answers.append((one, result))
            (copy,) = builder.node("Identity", [result.value], 1, [], hint="result")
            model.graph.outputs.append(copy)
    model.graph.extend(builder.nodes)
    proto = ir.to_proto(model)
    known = all(onnx.defs.has(node.op_type, node.domain) or node.domain for node in model.graph)
    if known and all(value.shape is not None for value in [*model.graph.inputs, *model.graph.outputs]):
        onnx.checker.check_model(proto)
    return proto, answers


def _session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _args(cases: Sequence[Case]) -> "itertools.chain[tuple[int, str, Arg]]":
    return itertools.chain.from_iterable(
        ((number, name, arg) for name, arg in one.args.items()) for number, one in enumerate(cases)
    )


def _all_feeds(cases: Sequence[Case], count: int) -> dict[str, np.ndarray]:
    return {
        f"{number}.{name}": arg.data[:count] if arg.batched else arg.data for number, name, arg in _args(cases) if not arg.constant
    }


def _feeds(cases: Sequence[Case], step: int, session: ort.InferenceSession) -> dict[str, np.ndarray]:
    wanted = {value.name for value in session.get_inputs()}
    return {f"{number}.{name}": arg.at(step) for number, name, arg in _args(cases) if f"{number}.{name}" in wanted}


def _info(name: str, data: np.ndarray, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    kind = onnx.TensorProto.STRING if data.dtype.kind in "OU" else onnx.helper.np_dtype_to_tensor_dtype(data.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def _compare(got: np.ndarray, wanted: np.ndarray, result: Result, what: str, exact: bool) -> None:
    assert got.dtype == wanted.dtype, what
    assert got.shape == wanted.shape, f"{what}: shape {got.shape}, not {wanted.shape}"
    assert result.value.dtype is not None, what
    if result.value.shape is not None:
        declared = result.value.shape.dims
        assert len(declared) == got.ndim, what
        assert all(not isinstance(dim, int) or dim == size for dim, size in zip(declared, got.shape, strict=True)), what
    tolerance = _TOLERANCE.get(str(got.dtype))
    if exact or tolerance is None:
        np.testing.assert_array_equal(got, wanted, err_msg=what)
    else:
        scale = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1.0))
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def _shapes(one: Case) -> str:
    return ", ".join(f"{name}{'*' * arg.batched}: {arg.data.dtype}{list(arg.step_shape)}" for name, arg in one.args.items())


def _random(dtype: str, shape: Sequence[int], low: int, high: int) -> np.ndarray:
    if dtype == BOOL:
        return np.asarray(_RNG.random(shape) < 0.5)
    if dtype == "str":
        return _RNG.choice(np.array(["a", "bb", ""], dtype=object), size=shape)
    if dtype.startswith("float"):
        return np.asarray(_RNG.standard_normal(shape)).astype(dtype)
    floor = 0 if dtype.startswith("u") else low
    return np.asarray(_RNG.integers(floor, high, shape)).astype(dtype)
