"""Errors of onnxruntime as one line, without what only its developers read."""

import pytest

from ortscan.ort.model_errors import in_short

FAILED = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Scan node. Name:'s' Status Message: "
)


@pytest.mark.parametrize(
    "location",
    [
        "/onnxruntime_src/onnxruntime/core/a.h:583 void onnxruntime::BroadcastIterator::Append(ptrdiff_t, ptrdiff_t) ",
        "D:\\a\\1\\s\\onnxruntime\\core\\a.cc:2 static Slicer<T> Slicer<T>::Create(T&, int64_t) [with T = const OrtValue; int64_t = long] ",
        "",
    ],
)
def test_source_files_and_functions_of_onnxruntime_are_left_out(location: str) -> None:
    text = in_short(RuntimeError(f"{FAILED}{location}a < b was false. Invalid offset of 0"))
    assert text == "running Scan node. Name:'s' Status Message: a < b was false. Invalid offset of 0"
