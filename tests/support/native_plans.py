"""Sessions of loop plans, with the library built once for all tests of a process; and small plans."""

import base64
import functools
import hashlib
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from ortscan.native import building
from ortscan.native.building import LIBRARIES, build
from rewrites.native.encoding import encode
from rewrites.native.operations import FLOAT, Op
from rewrites.native.plan import Form, Input, InputKind, Instruction, Output, Phase, Plan, PlanOperand, Size, Value, ValueKind

__all__ = ["elementwise", "library", "operand", "outputs_of", "plan_session", "row", "run_native", "session_of", "single"]

Array = npt.NDArray[Any]


@functools.cache
def library() -> Path:
    """Return the library next to the sources if it is newer than them, else a library that is built once for these sources."""
    home = Path(building.__file__).parent
    sources = [home / "building.py", *sorted(file for file in (home / "c").rglob("*") if file.is_file())]
    newest = max(file.stat().st_mtime for file in sources)
    known = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:20]
    folder = Path(__file__).parents[2] / ".pytest_cache" / "native" / known
    folder.mkdir(parents=True, exist_ok=True)

    def built() -> Path | None:
        installed = (home / name for name in LIBRARIES.values())
        up_to_date = (file for file in installed if file.is_file() and file.stat().st_mtime > newest)
        return next(up_to_date, None) or next((folder / name for name in LIBRARIES.values() if (folder / name).is_file()), None)

    if (there := built()) is not None:
        return there
    with _one_at_a_time(folder / "building"):
        return built() or build(folder)


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    """Wait while another process builds, but at most as long as a build takes, because that process may have died."""
    for _ in range(600):
        try:
            lock.mkdir()
            break
        except FileExistsError:
            time.sleep(0.2)
    try:
        yield
    finally:
        shutil.rmtree(lock, ignore_errors=True)


def outputs_of(plan: Plan) -> int:
    """Return the number of outputs of the plan's node."""
    return len(plan.states) + len(plan.outputs) - (plan.form == Form.LOOP)


def plan_session(
    plan: Plan | bytes, inputs: int, outputs: int, constants: dict[int, Array] | None = None, *, operator: str | None = None
) -> ort.InferenceSession:
    """Return a session of one node that runs a plan. Constants are initializers."""
    text = base64.b64encode(plan if isinstance(plan, bytes) else encode(plan)).decode()
    names = [f"i{index}" for index in range(inputs)]
    types = [each.dtype for each in plan.inputs] if isinstance(plan, Plan) else []
    kinds = [each.dtype for each in (*plan.inputs[: len(plan.states)], *plan.outputs)] if isinstance(plan, Plan) else []
    if isinstance(plan, Plan) and plan.form == Form.LOOP:
        operator, kinds = operator or "Loop1", kinds[1:]
    node = helper.make_node(operator or "Scan1", names, [f"o{index}" for index in range(outputs)], domain="ai.ortscan", plan=text)
    graph = helper.make_graph(
        [node],
        "g",
        [each for index, each in enumerate(_infos(names, types)) if index not in (constants or {})],
        _infos(list(node.output), kinds),
        [numpy_helper.from_array(array, names[index]) for index, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.ortscan", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.register_custom_ops_library(str(library()))
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def session_of(model: onnx.ModelProto, *, native: bool) -> ort.InferenceSession:
    """Return a session of a model, with or without the library."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if native:
        options.register_custom_ops_library(str(library()))
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _infos(names: Sequence[str], types: Sequence[int]) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, [*types, *[FLOAT] * len(names)], strict=False)
    ]


def run_native(plan: Plan, inputs: Sequence[Array], constants: Collection[int] = ()) -> list[Array]:
    """Run a plan once."""
    held = {index: inputs[index] for index in constants}
    session = plan_session(plan, len(plan.inputs), outputs_of(plan), held)
    return list(session.run(None, {f"i{index}": array for index, array in enumerate(inputs) if index not in held}))


def operand(value: int, strides: Sequence[int], offset: int = 0) -> PlanOperand:
    """Return an operand with literal strides."""
    three, two, one, zero = map(Size, strides)
    return PlanOperand(value, Size(offset), (three, two, one, zero))


def row(value: int, repeated: bool = False) -> PlanOperand:
    """Return an operand whose elements are contiguous, or a single element."""
    return operand(value, (0, 0, 0, 0 if repeated else 1))


def single(
    op: Op,
    dims: Sequence[int],
    operands: Sequence[PlanOperand | None],
    counts: Sequence[int],
    *,
    matrix: Sequence[int] = (1, 1, 1),
    immediates: tuple[float, float] = (0.0, 0.0),
    dtype: int = FLOAT,
    to: int | None = None,
) -> Plan:
    """Return a plan with one instruction. Value 0 is the stacked output, the others are scanned inputs with rows of ``counts``
    elements.

    All values have the type ``dtype``, but the output has the type ``to`` if it is set.
    """
    three, two, one, zero = map(Size, dims)
    m, n, k = map(Size, matrix)
    to = to or dtype
    values = [Value(ValueKind.STACKED, 0, Size(counts[0]), dtype=to)]
    values += [Value(ValueKind.SCANNED, index, Size(count), dtype=dtype) for index, count in enumerate(counts[1:])]
    return Plan(
        inputs=tuple(Input(InputKind.SCANNED, (Size(count),), dtype=dtype) for count in counts[1:]),
        outputs=(Output((Size(counts[0]),), dtype=to),),
        states=(),
        values=tuple(values),
        instructions=(Instruction(op, (three, two, one, zero), tuple(operands), (m, n, k), immediates),),
        phases=(Phase(True, 0, 1),),
        block=1,
    )


def elementwise(
    op: Op,
    count: int,
    sources: Sequence[bool],
    immediates: tuple[float, float] = (0.0, 0.0),
    *,
    dtype: int = FLOAT,
    to: int | None = None,
) -> Plan:
    """Return a plan with an elementwise operation on rows. True stands for a source that is a single number."""
    operands = [row(0), *(row(index + 1, repeated) for index, repeated in enumerate(sources))]
    counts = [count, *(1 if repeated else count for repeated in sources)]
    return single(op, (1, 1, 1, count), operands, counts, immediates=immediates, dtype=dtype, to=to)
