"""An exception of a signal handler, or a lack of memory, is not taken for an answer of onnxruntime or onnx, and is never cached."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession

import ortscan
from ortscan.custom_ops.bodies import prepared_body
from ortscan.ort.sessions import evaluate, has_kernel
from ortscan.session.optimizing import known_outputs
from rewrites.base.errors import is_from_elsewhere, is_raised_by
from rewrites.python_ops import reference
from tests.support.small_models import MAP, X, expected_of_map
from tests.support.text import parsed

PLAIN = parsed('<ir_version: 8, opset_import: ["": 18]> g () => (float[2] y) <float[2] c = {1, 2}> { y = Neg (c) }')
TOP = parsed(
    '<ir_version: 8, opset_import: ["": 18]> g (float[T, 3] x, int64[1] k) => (float[T, N] v, int64[T, N] i) { v, i = TopK (x, k) }'
)


class Alarm(Exception):
    pass


def raising(error: BaseException) -> Callable[..., Any]:
    def handler(*_: Any, **__: Any) -> Any:
        raise error

    return handler


@pytest.mark.parametrize(
    "error", [TimeoutError(), MemoryError(), RecursionError(), ValueError(), RuntimeError(), Alarm()], ids=repr
)
@pytest.mark.parametrize("ask", [has_kernel, evaluate, known_outputs, prepared_body])
def test_what_others_raise_while_onnxruntime_is_asked_goes_through_and_is_forgotten(
    ask: Callable[[onnx.ModelProto], object], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(TOP if ask is prepared_body else PLAIN)
    model.doc_string = f"{error!r}"
    with monkeypatch.context() as patch:
        patch.setattr(InferenceSession, "_create_inference_session", raising(error))
        with pytest.raises(type(error)):
            ask(model)
    assert ask(model)


def test_what_others_raise_while_the_reference_is_asked_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "reference_evaluator", raising(TimeoutError()))
    with pytest.raises(TimeoutError):
        reference.reference_runs(PLAIN)


def test_the_end_of_memory_is_no_fault_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnx-ir wraps every exception that is raised while it reads or writes."""
    monkeypatch.setattr(ir.serde, "deserialize_value_info_proto", raising(MemoryError()))
    with pytest.raises(MemoryError):
        ortscan.optimize(TOP)


@pytest.mark.parametrize(
    ("ask", "library"),
    [
        (lambda: InferenceSession(b"no model"), "onnxruntime"),
        (lambda: InferenceSession(PLAIN.SerializeToString()).run("y", 3), "onnxruntime"),
        (lambda: onnx.checker.check_model(onnx.ModelProto()), "onnx"),
    ],
)
def test_what_onnxruntime_and_onnx_say_is_theirs(ask: Callable[[], object], library: str) -> None:
    with pytest.raises(Exception, match=r".") as found:
        ask()
    assert is_raised_by(found.value, library)
    assert not is_raised_by(found.value, "numpy")
    assert not is_from_elsewhere(found.value)


@pytest.mark.parametrize("error", [TimeoutError("alarm"), Alarm("alarm")], ids=repr)
def test_an_alarm_while_a_session_optimises_arrives_and_the_next_start_optimises(
    error: Exception, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("ortscan.session.optimizing.known_outputs", raising(error))
        with pytest.raises(type(error), match="alarm"):
            ortscan.InferenceSession(parsed(MAP))
    session = ortscan.InferenceSession(parsed(MAP))
    assert session.ortscan.source == "optimized"
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)
