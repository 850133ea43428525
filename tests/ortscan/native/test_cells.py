"""Recurrent nodes of the library against onnxruntime: every kind, direction and option, sequence lengths and empty sizes."""

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import ortscan
from ortscan.native import library as installed
from tests.support.native_plans import library

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUTS = ("X", "W", "R", "B", "lens", "h", "c", "P")


@pytest.fixture(autouse=True)
def _with_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)


def recurrent(kind: str, hidden: int, given: str = "B lens h c", width: int = 3, **attributes: Any) -> onnx.ModelProto:
    """Return a model of a node with constant weights and free sizes. ``given``: its inputs besides X, W and R."""
    rng, gates = np.random.default_rng(hidden), GATES[kind]
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    there = {"X", "W", "R", *given.split()} - ({"c", "P"} if kind != "LSTM" else set())
    shapes = {"W": [gates * hidden, width], "R": [gates * hidden, hidden], "B": [2 * gates * hidden], "P": [3 * hidden]}
    weights = {name: rng.uniform(-1, 1, [ways, *shape]) / hidden**0.5 for name, shape in shapes.items() if name in there}
    dims: dict[str, list[Any]] = {"X": ["T", "N", width], "lens": ["N"], "h": [ways, "N", hidden], "c": [ways, "N", hidden]}
    outputs: dict[str, list[Any]] = {"Y": ["T", ways, "N", hidden], "Y_h": dims["h"], "Y_c": dims["h"]}
    if kind != "LSTM":
        del outputs["Y_c"]
    names = [name if name in there else "" for name in INPUTS[: 8 if kind == "LSTM" else 6]]
    node = helper.make_node(kind, names, list(outputs), hidden_size=hidden, **attributes)
    typed = {name: TensorProto.INT32 if name == "lens" else TensorProto.FLOAT for name in dims}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, typed[name], dims[name]) for name in dims if name in there],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def feeds_of(model: onnx.ModelProto, steps: int, rows: int) -> dict[str, np.ndarray]:
    rng, sizes = np.random.default_rng(steps), {"T": steps, "N": rows}
    shapes = {
        info.name: [sizes.get(dim.dim_param) or dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in model.graph.input
    }
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return feeds | ({"lens": rng.integers(0, steps + 1, rows).astype(np.int32)} if "lens" in feeds else {})


def session(model: onnx.ModelProto, threads: int = 1) -> ort.InferenceSession:
    options = ortscan.register(ort.SessionOptions())
    options.intra_op_num_threads = threads
    return ort.InferenceSession(model.SerializeToString(), options)


def handed_over(model: onnx.ModelProto) -> onnx.ModelProto:
    native = ortscan.optimize(model, native=True)
    assert [node.op_type for node in native.graph.node] == ["Cell1"]
    return native


def assert_same(model: onnx.ModelProto, *sizes: tuple[int, int], threads: int = 1) -> None:
    plain = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    native = session(handed_over(model), threads)
    for steps, rows in sizes:
        feeds = feeds_of(model, steps, rows)
        for left, right in zip(native.run(None, feeds), plain.run(None, feeds), strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-6, atol=2e-6, err_msg=f"{steps} steps, {rows} rows")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("kind", "attributes"), [("RNN", {}), ("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})])
def test_each_kind_and_direction_equals_onnxruntime(kind: str, attributes: dict[str, int], direction: str) -> None:
    for hidden, sizes in ((5, ((1, 1), (3, 2))), (16, ((40, 1), (7, 5))), (33, ((6, 9),))):
        assert_same(recurrent(kind, hidden, direction=direction, **attributes), *sizes)


@pytest.mark.parametrize("stored_as", ["int8", "float16", "bfloat16"])
@pytest.mark.parametrize(("kind", "attributes"), [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})])
def test_weights_in_fewer_bits_are_read_without_widening_them(kind: str, attributes: dict[str, int], stored_as: str) -> None:
    for hidden, direction, sizes in ((40, "bidirectional", ((1, 1), (40, 2))), (64, "reverse", ((3, 1), (5, 5)))):
        model = recurrent(kind, hidden, width=24, direction=direction, **attributes)
        assert_same(ortscan.optimize(model, weights=stored_as, max_error=1, verify=False), *sizes)


def test_a_node_of_any_size_with_smaller_weights_is_handed_over_unless_it_has_many_rows() -> None:
    model = ortscan.optimize(recurrent("LSTM", 300, "", 8), weights="int8", max_error=1, verify=False)
    (call,) = handed_over(model).graph.node
    assert list(call.input) == ["X", "W_int8", "R_int8", "W_scale", "R_scale"]
    report = ortscan.explain(model, fix_dims={"N": 3}, passes=["default", "native-cell"])
    assert [reason.code for cell in report.cells for reason in cell.reasons] == ["NATIVE-COST"]


@pytest.mark.parametrize("given", ["", "B", "B h", "B P", "B c P lens"])
def test_optional_inputs_may_be_omitted(given: str) -> None:
    for kind in GATES:
        assert_same(recurrent(kind, 18, given, direction="bidirectional"), (5, 3))


def test_blocks_of_steps_continue_the_previous_block() -> None:
    for direction in ("forward", "reverse"):
        assert_same(recurrent("LSTM", 20, direction=direction), (600, 2), (33, 3), (32, 1))


def test_any_number_of_rows_is_tiled() -> None:
    for kind in GATES:
        assert_same(recurrent(kind, 80), *((3, rows) for rows in range(1, 14)))


def test_rows_and_directions_are_split_among_threads() -> None:
    for kind in GATES:
        assert_same(recurrent(kind, 96, direction="bidirectional"), (30, 27), (20, 16), (200, 3), threads=3)


@pytest.mark.parametrize("function", ["Relu", "Sigmoid", "HardSigmoid", "LeakyRelu", "Elu", "Softsign"])
def test_other_activations_clip_and_coupled_gates(function: str) -> None:
    both = {"direction": "bidirectional"}
    parameters: dict[str, Any] = {
        "HardSigmoid": {"activation_alpha": [0.3, 0.25]},
        "LeakyRelu": {"activation_alpha": [0.1, 0.2]},
    }.get(function, {})
    assert_same(recurrent("RNN", 9, activations=[function] * 2, clip=0.5, **both, **parameters), (4, 2))
    assert_same(recurrent("GRU", 9, activations=["Sigmoid", function] * 2, clip=0.75, **both, **parameters), (4, 2))
    lstm = recurrent(
        "LSTM", 9, "B c P", activations=["Sigmoid", function, "Tanh"] * 2, clip=0.75, input_forget=1, **both, **parameters
    )
    assert_same(lstm, (4, 2))


def test_row_without_steps_equals_onnxruntime() -> None:
    for kind in GATES:
        model = recurrent(kind, 4, "lens h c")
        feeds = feeds_of(model, 3, 2) | {"lens": np.int32([0, 3])}
        plain = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for left, right in zip(session(handed_over(model)).run(None, feeds), plain.run(None, feeds), strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("kind", list(GATES))
@pytest.mark.parametrize(("steps", "rows"), [(0, 2), (3, 0), (0, 0)])
def test_empty_inputs_do_not_crash(kind: str, steps: int, rows: int) -> None:
    model = recurrent(kind, 4, "h c")
    feeds = feeds_of(model, 3, 2)
    feeds = {name: array[:steps, :rows] if name == "X" else array[:, :rows] for name, array in feeds.items()}
    y, *states = session(handed_over(model)).run(None, feeds)
    assert y.shape == (steps, 1, rows, 4)
    for state, initial in zip(states, (feeds["h"], feeds.get("c")), strict=False):
        if (
            steps == 0
        ):  # onnxruntime's RNN and LSTM give zeros, and its GRU, which dies, is guarded by an If that gives the initial state
            np.testing.assert_array_equal(state, initial if kind == "GRU" else np.zeros_like(initial))


def test_length_beyond_the_steps_fails_the_run() -> None:
    model = recurrent("GRU", 4, "lens")
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="length 4 of row 1"):
        session(handed_over(model)).run(None, feeds_of(model, 3, 2) | {"lens": np.int32([3, 4])})


@pytest.mark.parametrize(("kind", "hidden"), [("LSTM", 100), ("LSTM", 144), ("GRU", 257), ("RNN", 257)])
def test_node_without_a_speed_up_is_kept(kind: str, hidden: int) -> None:
    report = ortscan.explain(recurrent(kind, hidden), passes=["default", "native-cell"])
    assert [reason.code for cell in report.cells for reason in cell.reasons] == ["NATIVE-COST"]


def test_sessions_use_cells_unless_disabled() -> None:
    model = recurrent("GRU", 20)
    feeds = feeds_of(model, 4, 2)
    native = ortscan.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    plain = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for left, right in zip(native.run(None, feeds), plain.run(None, feeds), strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-6, atol=2e-6)
    report = native.ortscan.report
    assert report is not None
    assert [fired.rule for cell in report.cells for fired in cell.fired] == ["native-cell"]
