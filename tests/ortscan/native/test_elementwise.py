"""Elementwise kernels at every length: equal to onnxruntime if its bits do not depend on the length, otherwise close to numpy."""

import itertools
import platform

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from rewrites.native.operations import Op
from rewrites.native.plan import ONE, Input, InputKind, Instruction, Output, Phase, Plan, PlanOperand, Size, Value, ValueKind
from tests.support.native_plans import elementwise, operand, run_native
from tests.support.plan_interpreter import run_plan
from tests.support.runtime import ort_session
from tests.support.sample_plans import arity
from tests.support.text import model_from_text

LENGTHS = range(1, 131)
STARTS = [0, *itertools.accumulate(LENGTHS)]
TOTAL = STARTS[-1]
ROW = 140
ELEMENTWISE = [op for op in Op if op < Op.SUM and op != Op.CAST]
ONNX = {
    **{
        op: op.name.title()
        for op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAX, Op.MIN, Op.GREATER, Op.LESS, Op.EQUAL, Op.NEG, Op.ABS, Op.POW)
    },
    **{op: op.name.title() for op in (Op.SQRT, Op.EXP, Op.TANH, Op.SIGMOID, Op.RECIPROCAL, Op.RELU, Op.ERF, Op.FLOOR, Op.CEIL)},
    **{op: op.name.title() for op in (Op.ROUND, Op.SIGN, Op.SOFTSIGN)},
    Op.GREATER_OR_EQUAL: "GreaterOrEqual",
    Op.LESS_OR_EQUAL: "LessOrEqual",
    Op.LEAKY_RELU: "LeakyRelu",
    Op.HARD_SIGMOID: "HardSigmoid",
    Op.COPY: "Identity",
    Op.MOD: "Mod",
}
ATTRIBUTES = {Op.MOD: {"fmod": 1}, Op.LEAKY_RELU: {"alpha": 0.3}, Op.HARD_SIGMOID: {"alpha": 0.3, "beta": 0.45}}
IMMEDIATES = (np.float32(0.3).item(), np.float32(0.45).item())
LIMITS = [88.7, 88.73, 89.0, -87.4, -88.0, -103.9, -104.5, 9.0, -9.1, 18.0, -18.1, 0.921875, 3.925, -3.926]
HALVES = [65504.0, 65519.996, 65520.0, 6.1035156e-05, 6.1e-05, 2.9802322e-08, 2.9802326e-08, 3.3961776e38]
WHOLE = [1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 8388609.0, 4.5e15, 16777217.0, 127.5]
EXTREME = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-39, 3.4e38, -3.4e38]
SPECIAL = np.array([*LIMITS, *HALVES, *WHOLE, *EXTREME], np.float32)


def numbers(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    made = (random.standard_normal((3, ROW)) * 10.0 ** random.integers(-4, 3, (3, ROW))).astype(np.float32)
    some = random.random(made.shape) < 0.3
    made[some] = random.choice(SPECIAL, int(some.sum()))
    return made


def all_lengths(op: Op, repeated: tuple[bool, ...]) -> Plan:
    """Return a plan with an instruction for each length, each from its own offset."""
    instructions = []
    for length, start in zip(LENGTHS, STARTS, strict=False):
        sources: list[PlanOperand] = [operand(1 + k, (0, 0, 0, 0 if flag else 1), length % 10) for k, flag in enumerate(repeated)]
        dims = (ONE, ONE, ONE, Size(length))
        instructions.append(Instruction(op, dims, (operand(0, (0, 0, 0, 1), start), *sources), immediates=IMMEDIATES))
    return Plan(
        inputs=tuple(Input(InputKind.SCANNED, (Size(ROW),)) for _ in repeated),
        outputs=(Output((Size(TOTAL),)),),
        states=(),
        values=(
            Value(ValueKind.STACKED, 0, Size(TOTAL)),
            *(Value(ValueKind.SCANNED, index, Size(ROW)) for index in range(len(repeated))),
        ),
        instructions=tuple(instructions),
        phases=(Phase(True, 0, len(instructions)),),
    )


def gathered(source: np.ndarray, repeated: bool) -> np.ndarray:
    """Return the elements of a source that the instructions read, in order."""
    at = [
        index for length in LENGTHS for index in ([length % 10] * length if repeated else range(length % 10, length % 10 + length))
    ]
    return np.ascontiguousarray(source[:, at])


def by_onnxruntime(op: Op, sources: list[np.ndarray]) -> np.ndarray:
    names = [f"x{index}" for index in range(len(sources))]
    node = helper.make_node(ONNX[op], names, ["y"], **ATTRIBUTES.get(op, {}))
    kind = TensorProto.BOOL if Op.GREATER <= op <= Op.EQUAL else TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return ort_session(model).run(None, dict(zip(names, sources, strict=True)))[0].astype(np.float32)


POLYNOMIALS = {Op.EXP, Op.TANH, Op.SIGMOID, Op.ERF}


def fused(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return True if polynomials use fused operations, as in onnxruntime; SSE2 has none."""
    with monkeypatch.context() as patch:
        patch.setenv("ORTSCAN_ISA", "x86_64_v3")
        try:
            run_native(all_lengths(Op.EXP, (False,)), [numbers(0)])
        except Exception as error:
            return "names no instruction set" not in str(error)
    return True


def assert_same_bits(got: np.ndarray, wanted: np.ndarray, sources: list[np.ndarray]) -> None:
    same = (got.view(np.int32) == wanted.view(np.int32)) | (np.isnan(got) & np.isnan(wanted))
    where = np.argwhere(~same)[:5]
    assert same.all(), [([x[tuple(at)] for x in sources], got[tuple(at)], wanted[tuple(at)]) for at in where]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_every_length_and_repeated_source(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = op in ONNX and (op not in POLYNOMIALS or fused(monkeypatch))
    sources = [numbers(seed) for seed in range(arity(op))]
    if op == Op.NOT:
        sources = [(source > 0).astype(np.float32) for source in sources]
    for pattern in itertools.product((False, True), repeat=len(sources)):
        (got,) = run_native(all_lengths(op, pattern), sources)
        read = [gathered(source, flag) for source, flag in zip(sources, pattern, strict=True)]
        if op == Op.ERF:  # of NaN onnxruntime makes 1 on some machines
            assert np.isnan(got[np.isnan(read[0])]).all()
            sources, read = [np.nan_to_num(sources[0])], [np.nan_to_num(read[0])]
            (got,) = run_native(all_lengths(op, pattern), sources)
        if exact:
            assert_same_bits(got, by_onnxruntime(op, read), read)
        else:
            (wanted,) = run_plan(all_lengths(op, pattern), sources)
            np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=3e-7)


LOGARITHMS = np.concatenate([np.geomspace(1e-44, 3e38, 40000), np.linspace(0.4, 2.5, 40000), np.abs(SPECIAL), -np.abs(SPECIAL)])


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="measured there alone")
@pytest.mark.parametrize("isa", ["x86_64", ""])
def test_logarithms_of_whole_vectors_have_the_bits_of_onnxruntime(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTSCAN_ISA", isa)
    x = np.resize(LOGARITHMS, (1, LOGARITHMS.size // 128 * 128)).astype(np.float32)
    (got,) = run_native(elementwise(Op.LOG, x.size, [False]), [x])
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Log", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # what is cut for threads has ends of its own
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert_same_bits(got, session.run(None, {"x": x})[0], [x])


@pytest.mark.parametrize("isa", ["x86_64_v3", ""])
def test_logarithms_of_two_powers_have_the_bits_of_their_operators(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = fused(monkeypatch)
    monkeypatch.setenv("ORTSCAN_ISA", isa if exact and platform.machine().lower() in ("x86_64", "amd64") else "")
    random = np.random.default_rng(0)
    apart = np.concatenate([np.linspace(-89, 89, 1 << 17), random.standard_normal(1 << 17), np.resize(SPECIAL, 1 << 10)])
    x = random.standard_normal((1, apart.size)).astype(np.float32)
    y = (x + apart).astype(np.float32)
    x[0, ::1000], y[0, ::777] = random.choice(SPECIAL, len(x[0, ::1000])), random.choice(SPECIAL, len(y[0, ::777]))
    (got,) = run_native(elementwise(Op.LOG_ADD_EXP, x.size, [False, False]), [x, y])
    model = model_from_text(
        """g (float[1,N] x, float[1,N] y) => (float[1,N] l) {
          m = Max (x, y) a = Sub (x, m) b = Sub (y, m) c = Exp (a) d = Exp (b) s = Add (c, d) e = Log (s) l = Add (m, e) }""",
        18,
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x, "y": y})[0]
    if exact:
        assert_same_bits(got, wanted, [x, y])
    np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=3e-7)


def test_softplus_of_very_negative_numbers_is_the_exponential() -> None:
    x = np.array([[-1.0, -16.0, -17.0, -25.0, -80.0, 0.0, 30.0]], np.float32)
    (got,) = run_native(elementwise(Op.SOFTPLUS, x.size, [False]), [x])
    np.testing.assert_allclose(got, np.log1p(np.exp(x.astype(np.float64))), rtol=5e-7)


@pytest.mark.parametrize("isa", ["x86_64", ""])
@pytest.mark.parametrize("op", [Op.SIN, Op.COS], ids=lambda op: op.name)
def test_sin_and_cos_agree_with_doubles(op: Op, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTSCAN_ISA", isa if platform.machine().lower() in ("x86_64", "amd64") else "")
    quarters = np.arange(-5300, 5300) * np.pi / 2  # beyond 8192 too
    random = np.random.default_rng(0).normal(size=20000) * 10.0 ** np.linspace(-40, 38, 20000)
    x = np.concatenate([quarters, quarters + np.pi / 4, random, SPECIAL]).astype(np.float32)
    (got,) = run_native(elementwise(op, x.size, [False]), [x[None]])
    with np.errstate(invalid="ignore"):
        wanted = (np.sin if op == Op.SIN else np.cos)(x.astype(np.float64))
    np.testing.assert_allclose(got[0], wanted, rtol=2e-7)
    np.testing.assert_array_equal(np.signbit(got[0])[x == 0], np.signbit(wanted)[x == 0])
