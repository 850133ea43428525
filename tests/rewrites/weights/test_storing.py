"""A stored weight is close to its float32 numbers, and the model has only the form that its readers read."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.graph.names import Names
from rewrites.weights.finding import find_weights
from rewrites.weights.storing import StoredWeight
from tests.support.text import ort_run, parsed

X = np.eye(40, dtype=np.float32)
W = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32) * np.logspace(-3, 3, 40, dtype=np.float32)
TEXT = "g (float[40, 40] x) => (float[40, 40] y) { y = MatMul (x, w) }"


def stored(stored_as: str, weight: np.ndarray = W, *, keep: bool = True) -> tuple[StoredWeight, onnx.ModelProto]:
    model = ir.from_proto(parsed(TEXT, weights={"w": weight}))
    (found,) = find_weights(model.graph)
    entry = StoredWeight(found, stored_as, model.graph, Names(model))
    entry.use(stored=keep)
    entry.remove_unread()
    return entry, ir.to_proto(model)


@pytest.mark.parametrize(("stored_as", "error"), [("int8", 0.5 / 127), ("float16", 2**-11), ("bfloat16", 2**-8)])
def test_a_stored_weight_is_close_to_its_float32_numbers(stored_as: str, error: float) -> None:
    _, proto = stored(stored_as)
    onnx.checker.check_model(proto, full_check=True)
    (wide,) = ort_run(proto, {"x": X})
    unit = np.abs(W) if stored_as != "int8" else np.abs(W).max(axis=0)
    assert (np.abs(wide - W) <= 1.001 * error * unit + 1e-7).all()


@pytest.mark.parametrize(("stored_as", "names"), [("int8", ["w_int8", "w_scale"]), ("float16", ["w_float16"])])
def test_only_the_form_that_is_read_is_kept(stored_as: str, names: list[str]) -> None:
    entry, small = stored(stored_as)
    assert [tensor.name for tensor in small.graph.initializer] == names
    assert entry.stored_bytes == sum(len(tensor.raw_data) for tensor in small.graph.initializer)
    _, large = stored(stored_as, keep=False)
    assert [tensor.name for tensor in large.graph.initializer] == ["w"]
    assert [node.op_type for node in large.graph.node] == ["MatMul"]


def test_a_channel_of_zeros_stays_zero() -> None:
    _, proto = stored("int8", np.zeros((40, 40), np.float32))
    assert not ort_run(proto, {"x": X})[0].any()


@pytest.mark.parametrize(("stored_as", "number"), [("int8", np.inf), ("int8", np.nan), ("float16", 1e5)])
def test_a_number_that_the_format_lacks_is_noticed(stored_as: str, number: float) -> None:
    weight = W.copy()
    weight[3, 4] = number
    assert stored(stored_as, weight)[0].lacking
    assert not stored("bfloat16")[0].lacking
