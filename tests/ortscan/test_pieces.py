"""To check that onnxruntime accepts a very large model, it is loaded in pieces, which together contain every node."""

import numpy as np
import onnx
import onnx.parser
import pytest

import ortscan
from ortscan.modelio import load, sealed, to_proto
from ortscan.running import pieces
from ortscan.soundness import new_fault as soundness
from tests.campaigns.benchmarks.large_models import many_scans
from tests.support.text import parsed

HEADER = '<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]>'


def with_body(body: str, types: str = "float[N] a, float[N] b, float[N] c") -> onnx.ModelProto:
    return parsed(f"{HEADER} main (float[N] x) => (float[N] y) <{types}> {{ {body} }}")


def cut(model: onnx.ModelProto) -> list[onnx.ModelProto]:
    found = pieces.pieces_of(model)
    assert found is not None
    return list(found)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_NODES", 2)


def test_every_node_is_in_one_piece_that_onnxruntime_loads() -> None:
    model = with_body("a = Relu(x) b = Tanh(a) c = Add(a, b) y = Exp(c)")
    found = cut(model)
    assert [[node.op_type for node in piece.graph.node] for piece in found] == [["Relu", "Tanh"], ["Add", "Exp"]]
    assert [value.name for value in found[1].graph.input] == ["a", "b"]
    assert all(soundness._error_of(piece, 60.0, optimise=False) is None for piece in found)


def test_constants_stay_constants_in_every_piece_that_reads_them() -> None:
    model = with_body(
        "k = Constant <value_ints = [1, -1]> () a = Relu(x) b = Tanh(a) c = Add(a, b) d = Reshape(c, k) y = Reshape(d, m)"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "m"))
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("d", onnx.TensorProto.FLOAT, [1, None]))
    found = cut(model)
    assert [node.op_type for node in found[2].graph.node] == ["Constant", "Reshape", "Reshape"]
    assert [tensor.name for tensor in found[2].graph.initializer] == ["m"]


def test_what_bodies_read_from_outside_is_given_to_their_piece() -> None:
    model = with_body(
        """a = Relu(x) b = Tanh(x) n = Constant <value_int = 3> () t = Constant <value_int = 1> () u = Cast <to = 9> (t)
        c = Loop <body = step (int64 i, bool go, float[N] h) => (bool more, float[N] next) {
            more = Identity(go) next = Add(h, a) }> (n, u, b) y = Exp(c)""",
        "float[N] a, float[N] b, float[N] c, bool u",
    )
    loop = next(piece for piece in cut(model) if any(node.op_type == "Loop" for node in piece.graph.node))
    assert {value.name for value in loop.graph.input} >= {"a", "b"}


def test_a_model_is_not_cut_where_a_type_is_not_known() -> None:
    assert pieces.pieces_of(with_body("a = Relu(x) b = Tanh(a) c = Add(a, b) y = Exp(c)", "float[N] a")) is None


def test_a_model_is_not_cut_where_a_body_has_a_name_from_around_it() -> None:
    model = many_scans(2)
    assert pieces.pieces_of(onnx.shape_inference.infer_shapes(model)) is None


@pytest.mark.parametrize(
    "body", ["a = Relu(x) b = Nothing(a) c = Add(a, b) y = Exp(c)", "a = Relu(x) b = Tanh(a) c = Add(a, b) y = Exp(b, c)"]
)
def test_what_onnxruntime_refuses_in_a_piece_is_a_fault_in_the_words_it_has_for_the_whole(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = with_body(body)
    loaded = load(with_body("a = Relu(x) b = Tanh(a) c = Add(a, b) y = Exp(c)"))
    whole = soundness._loading_fault(loaded, model)
    monkeypatch.setattr(soundness, "_MOST_AT_ONCE", 1)
    assert whole is not None
    assert soundness._loading_fault(loaded, model) == whole


def test_a_model_loaded_in_pieces_is_rewritten_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    model = many_scans(3)
    whole = ortscan.optimize(model)
    monkeypatch.setattr(soundness, "_MOST_AT_ONCE", 1)
    assert ortscan.optimize(model) == whole


def test_a_sealed_model_is_serialised_once() -> None:
    loaded = load(many_scans(1))
    with sealed(loaded):
        once = to_proto(loaded)
        assert to_proto(loaded) is once
    assert to_proto(loaded) is not once
    assert to_proto(loaded) == once
