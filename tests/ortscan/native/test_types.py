"""Element types other than float32: kernels and casts against onnxruntime, and whole loops."""

import itertools

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

import ortscan
from ortscan.native import library as installed
from rewrites.native.operations import BOOL, DOUBLE, FLOAT, INT32, INT64, NUMPY, Op, has_kernel
from tests.ortscan.native.test_refusals import FAILURES
from tests.rewrites.native.typed_bodies import typed_feeds, typed_scan
from tests.support.native_plans import elementwise, library, operand, run_native, session_of, single
from tests.support.plan_interpreter import run_plan
from tests.support.runtime import ort_session
from tests.support.sample_plans import arity
from tests.support.text import model_from_text, parsed

OTHERS = (INT32, INT64, DOUBLE)
DIVISIONS = (Op.DIV, Op.MOD)
PAIRS = [(op, dtype) for dtype in OTHERS for op in Op if op < Op.SUM and has_kernel(op, dtype) and op != Op.CAST]


def numbers(dtype: int, count: int, seed: int) -> np.ndarray:
    """Return three rows of small numbers with the largest and smallest number and NaN among them."""
    random, kind = np.random.default_rng(seed), NUMPY[dtype]
    small = random.integers(-4, 5, (3, count)).astype(kind)
    if dtype == BOOL:
        return small > 0
    odd: list[float] = [0, 1, -1]
    if kind.kind == "f":
        small += random.choice([0, 0.5, 0.3], small.shape).astype(kind)
        odd += [
            np.nan,
            np.inf,
            -np.inf,
            -0.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            8388609.0,
            2.0**31,
            2.0**31 - 256,
            -(2.0**31),
            2.0**63,
            -(2.0**63),
            9.2e18,
        ]
    else:
        odd += [np.iinfo(kind).max, np.iinfo(kind).min, np.iinfo(kind).min + 1]
    return np.where(random.random(small.shape) < 0.4, random.choice(np.array(odd, kind), small.shape), small)


def assert_same(got: np.ndarray, wanted: np.ndarray, message: object) -> None:
    np.testing.assert_array_equal(got, wanted, str(message), strict=True)
    if got.dtype.kind == "f":
        real = ~np.isnan(wanted)
        assert (np.signbit(got) == np.signbit(wanted))[real].all(), message


@pytest.mark.parametrize(("op", "dtype"), PAIRS, ids=lambda each: each.name if isinstance(each, Op) else str(each))
def test_every_operation_on_every_type(op: Op, dtype: int) -> None:
    for pattern in itertools.product((False, True), repeat=arity(op)):
        for count in (1, 2, 3, 7, 16, 33):
            plan = elementwise(op, count, pattern, dtype=dtype)
            given = [numbers(dtype, 1 if flag else count, seed) for seed, flag in enumerate(pattern)]
            if op == Op.NEG and dtype == DOUBLE:
                given[0] = np.nan_to_num(given[0])
            if op in DIVISIONS and dtype != DOUBLE:
                given[1] = np.where(given[1] == 0, 3, given[1]).astype(NUMPY[dtype])
            (got,), (wanted,) = run_native(plan, given), run_plan(plan, given)
            if op in (Op.POW, Op.SIN, Op.COS):  # numpy has its own
                np.testing.assert_allclose(got, wanted, 1e-14)
                continue
            np.testing.assert_array_equal(got, wanted, f"{given}", strict=True)


@pytest.mark.parametrize("dtype", [INT32, INT64])
@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize("where", [0, 5, 6])
def test_integer_division_by_zero_fails_the_run(op: Op, dtype: int, where: int) -> None:
    plan = elementwise(op, 7, (False, False), dtype=dtype)
    given = [np.full((3, 7), 9, NUMPY[dtype]), np.full((3, 7), 2, NUMPY[dtype])]
    run_native(plan, given)
    given[1][2, where] = 0
    with pytest.raises(FAILURES, match="instruction 0 divides an integer by zero"):
        run_native(plan, given)
    given[1][2, where] = -1
    run_native(plan, given)


@pytest.mark.parametrize("dtype", [INT32, INT64])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_the_least_integer_divided_by_minus_one_wraps_around(dtype: int, count: int) -> None:
    least = np.iinfo(NUMPY[dtype]).min
    operands = [np.full((3, count), least, NUMPY[dtype]), np.full((3, count), -1, NUMPY[dtype])]
    for op, expected in ((Op.DIV, least), (Op.MOD, 0)):
        (quotients,) = run_native(elementwise(op, count, (False, False), dtype=dtype), operands)
        assert quotients.tolist() == np.full(quotients.shape, expected).tolist()


DIVIDING = """g (int64[3] h, int64[T,3] xs, int64[T,3] ds) => (int64[3] hT, int64[T,3] ys) {
  hT, ys = Scan <num_scan_inputs = 2, body = b (int64[3] s, int64[3] x, int64[3] d) => (int64[3] s1, int64[3] y) {
    p = Add (x, s) q = OPERATOR (p, d) s1 = Add (q, s) y = Sub (q, x)
  }> (h, xs, ds)
}"""


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("way", ["optimized", "plugin"])
def test_a_loop_that_divides_by_zero_fails_as_it_does_without_a_plan(
    operator: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "_built", library)
    model = model_from_text(DIVIDING.replace("OPERATOR", operator), 18)
    if way == "optimized":
        native = ortscan.optimize(model, native=True)
        assert any(node.domain == "ai.ortscan" for node in native.graph.node)
        session = ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions()))
    else:
        session = ort.InferenceSession(model.SerializeToString(), ortscan.register(ort.SessionOptions(), model))
    feeds = {"h": np.zeros(3, np.int64), "xs": np.arange(12).reshape(4, 3), "ds": np.full((4, 3), 2)}
    for left, right in zip(session.run(None, feeds), ort_session(model).run(None, feeds), strict=True):
        np.testing.assert_array_equal(left, right)
    feeds["ds"][3, 1] = 0
    for each in (session, ort_session(model)):
        with pytest.raises(FAILURES, match="by zero"):
            each.run(None, feeds)


def by_onnxruntime(op: str, sources: list[np.ndarray], kind: int, **attributes: object) -> np.ndarray:
    names = [f"x{index}" for index in range(len(sources))]
    kinds = [helper.np_dtype_to_tensor_dtype(source.dtype) for source in sources]
    given = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, kinds, strict=True)]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", kind, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return np.asarray(ort_session(model).run(None, dict(zip(names, sources, strict=True)))[0])


BY_NAME = {
    **{
        op: op.name.title()
        for op in (Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.MIN, Op.GREATER, Op.LESS, Op.EQUAL, Op.ABS, Op.NEG, Op.SIGN)
    },
    **{op: op.name.title() for op in (Op.SQRT, Op.RECIPROCAL, Op.FLOOR, Op.CEIL, Op.ROUND, Op.DIV, Op.MOD, Op.POW)},
    Op.GREATER_OR_EQUAL: "GreaterOrEqual",
    Op.LESS_OR_EQUAL: "LessOrEqual",
    Op.WHERE: "Where",
}


@pytest.mark.parametrize(("op", "dtype"), [(Op.WHERE, FLOAT), *(pair for pair in PAIRS if pair[0] in BY_NAME)], ids=str)
def test_onnxruntime_gives_the_same_bits(op: Op, dtype: int) -> None:
    given = [numbers(dtype, 300, seed) for seed in range(arity(op))]
    if op in DIVISIONS and dtype != DOUBLE:
        given[1] = np.where(np.isin(given[1], (0, -1)), 3, given[1]).astype(NUMPY[dtype])  # these end onnxruntime's process
    (got,) = run_native(elementwise(op, 300, [False] * len(given), dtype=dtype), given)
    compares = Op.GREATER <= op <= Op.EQUAL
    sources = [given[0] != 0, *given[1:]] if op == Op.WHERE else given
    fmod = {"fmod": 1} if op == Op.MOD and dtype == DOUBLE else {}
    wanted = by_onnxruntime(BY_NAME[op], sources, BOOL if compares else dtype, **fmod)
    assert_same(got, wanted.astype(NUMPY[dtype]), op)


@pytest.mark.parametrize(("dtype", "to"), list(itertools.product(NUMPY, repeat=2)))
def test_cast_equals_onnxruntime(dtype: int, to: int) -> None:
    given = numbers(dtype, 300, dtype)
    (got,) = run_native(elementwise(Op.CAST, 300, [False], dtype=dtype, to=to), [given])
    assert_same(got, by_onnxruntime("Cast", [given], to, to=to), (dtype, to))


@pytest.mark.parametrize("dtype", OTHERS)
def test_reductions(dtype: int) -> None:
    for op in (op for op in Op if Op.SUM <= op <= Op.DOT and has_kernel(op, dtype)):
        for count in (1, 5, 40) if op == Op.MEAN else (0, 1, 5, 40):
            sources = [operand(1 + index, (0, 0, count, 1)) for index in range(2 if op == Op.DOT else 1)]
            plan = single(op, (1, 1, 4, count), [operand(0, (0, 0, 1, 0)), *sources], [4, *[4 * count] * len(sources)], dtype=dtype)
            given = [np.nan_to_num(numbers(dtype, 4 * count, seed), posinf=3, neginf=2) for seed in range(len(sources))]
            given = [np.clip(array, -1000, 1000).astype(NUMPY[dtype]) for array in given]
            (got,), (wanted,) = run_native(plan, given), run_plan(plan, given)
            np.testing.assert_allclose(got, wanted, rtol=1e-12, err_msg=op.name)


@pytest.mark.parametrize("dtype", OTHERS)
def test_matrices(dtype: int) -> None:
    for m, n, k in [(1, 1, 1), (3, 4, 5), (5, 1, 7), (1, 9, 4), (2, 3, 0)]:
        operands = [operand(0, (0, 0, n, 1)), operand(1, (0, 0, k, 1)), operand(2, (0, 0, n, 1)), operand(3, (0, 0, 0, 1))]
        plan = single(Op.MATMUL, (1, 1, 1, 1), operands, [m * n, m * k, k * n, n], matrix=(m, n, k), dtype=dtype)
        given = [np.random.default_rng(at).standard_normal((2, size)) for at, size in enumerate((m * k, k * n, n))]
        if dtype != DOUBLE:
            given = [(each * np.iinfo(NUMPY[dtype]).max / 4).astype(NUMPY[dtype]) for each in given]
        (got,), (wanted,) = run_native(plan, given), run_plan(plan, given)
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_loops_of_all_types_keep_their_results(first: int) -> None:
    plans = 0
    for seed in range(first, first + 10):
        model = typed_scan(seed)
        native = ortscan.optimize(
            model, native=True, verify=False, skip=["loop-fission", "recurrent-cell", "state-fission", "unroll"]
        )
        plans += any(function.domain == "ai.ortscan" for function in native.functions)
        sessions = [session_of(model, native=False), session_of(native, native=True), session_of(native, native=False)]
        for batch, steps in ((2, 3), (1, 1), (5, 7), (2, 3)):
            feeds = typed_feeds(model, seed, B=batch, T=steps)
            wanted, *others = (each.run(None, feeds) for each in sessions)
            for got in others:
                for left, right in zip(got, wanted, strict=True):
                    np.testing.assert_allclose(left, right, rtol=1e-6 if left.dtype.kind == "f" else 0, atol=0, strict=True)
    assert plans > 5


def test_undeclared_outputs_have_types() -> None:
    text = """<ir_version: 10, opset_import: ["": 18]>
        g (int64[2] n, float[T,2] xs) => (double[N] a, int64[N,M] b) {
            m, ps = Scan <num_scan_inputs = 1, body = b (int64[2] i, float[2] x) => (int64[2] j, bool[2] p) {
                k = Cast <to = 7> (x) l = Mul (k, i) j = Add (l, k) p = Greater (j, i)
            }> (n, xs)
            a = Cast <to = 11> (m) b = Cast <to = 7> (ps)
        }"""
    native = ortscan.optimize(parsed(text), native=True, verify=False)
    assert "Scan1" in [node.op_type for node in native.graph.node]
    del native.graph.value_info[:]
    feeds = {"n": np.array([1, 2]), "xs": np.ones((4, 2), np.float32)}
    made = session_of(native, native=True)
    assert [array.dtype for array in made.run(None, feeds)] == [np.float64, np.int64]
