"""The Python interface apart from results: types, logs, errors and lists of names."""

import logging
import pickle
import warnings
from typing import Any

import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.edge.limited import _received, _reply
from ortscan.errors import OrtscanWarning
from ortscan.model_options import TargetName
from ortscan.report.codes import CODES
from ortscan.rule_choice import rule_names
from ortscan.targets import TARGETS
from ortscan.verb_options import OptimizeOptions
from rewrites.base.errors import OptionError
from tests.support.text import parsed

MAP = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (float[T, 4] y) {
  y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { yi = Tanh (xi) }> (x)
}"""


@pytest.fixture
def model() -> onnx.ModelProto:
    return parsed(MAP)


def test_types_name_all_options_and_targets() -> None:
    import inspect
    import typing

    assert set(typing.get_args(TargetName)) == TARGETS.keys()
    parameters = inspect.signature(ortscan.optimize).parameters.keys()
    assert OptimizeOptions.__annotations__.keys() == parameters - {"model", "report"}


def test_model_and_report_come_together(model: onnx.ModelProto) -> None:
    made, report = ortscan.optimize(model, report=True)
    assert isinstance(made, onnx.ModelProto)
    assert [loop.fate for loop in report.loops] == ["removed"]
    assert " · 1 of 1 loop gone · equal on " in report.summary().splitlines()[0]
    own, again = _received(pickle.loads(pickle.dumps(_reply(lambda: (ir.from_proto(made), report), None))), True)
    assert isinstance(own, ir.Model)
    assert again == report
    with pytest.raises(OptionError, match="report must be True or False"):
        ortscan.optimize(model, report="x.html")  # type: ignore[call-overload]


def test_errors_of_a_call_name_nothing_private(model: onnx.ModelProto) -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ((), {}, r"optimize\(\) missing a required argument: 'model'"),
        (
            (model,),
            {"fast_maths": True},
            r"optimize\(\) got an unexpected keyword argument 'fast_maths', perhaps 'fast_math' was meant",
        ),
        ((model, 1), {}, r"optimize\(\) too many positional arguments"),
    ]
    for given, options, said in wrong:
        with pytest.raises(TypeError, match=rf"^{said}$"):
            ortscan.optimize(*given, **options)


def test_names_that_are_nearly_right_are_told(model: onnx.ModelProto) -> None:
    for options, said in (
        ({"target": "tensort"}, "perhaps 'tensorrt' was meant"),
        ({"skip": ["loop-fision"]}, "perhaps 'loop-fission' was meant"),
        ({"fix_inputs": {"xx": 1}}, "perhaps 'x' was meant"),
    ):
        with pytest.raises(OptionError, match=said):
            ortscan.optimize(model, **options)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match=r"perhaps 'fast_math' was meant"), ortscan.patched(fastmath=True):
        pass


def test_what_is_done_is_logged_under_ortscan(model: onnx.ModelProto, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ortscan"):
        ortscan.optimize(model)
    said = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert ("ortscan.rewriting", "INFO", "1 loop: 1 removed.") in said
    assert any(
        name == "ortscan.rewriting" and level == "DEBUG" and "loop-fission on main/Scan" in text for name, level, text in said
    )
    assert any(name == "ortscan.verification" and text.startswith("equal on ") for name, _, text in said)


@pytest.mark.parametrize("name", ["fastmath", "fast-math", "maxunroll", "max_unrol", "shape", "trget", "fastMath"])
def test_session_entries_that_nothing_reads_are_warned_about(model: onnx.ModelProto, name: str) -> None:
    options = ort.SessionOptions()
    for entry, value in ((name, "1"), ("cache", "0"), ("verify", "0")):
        options.add_session_config_entry(f"ortscan.{entry}", value)
    with pytest.warns(OrtscanWarning, match=rf"the session option ortscan\.{name} is unknown; did you mean ortscan\.\w+\?"):
        ortscan.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_of_entries_that_are_right_nothing_is_said(model: onnx.ModelProto) -> None:
    options = ort.SessionOptions()
    for entry, value in (("fast_math", "1"), ("cache", "0"), ("verify", "0"), ("shapes", "x:3,4"), ("target", "cpu")):
        options.add_session_config_entry(f"ortscan.{entry}", value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ortscan.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_passes_and_codes_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "--list-passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == rule_names()
    assert all(len(line.split()) > 3 for line in lines)
    assert main(["explain", "--list-codes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(CODES)
    assert all(len(line.split()) > 3 for line in lines)


def test_a_misspelled_keyword_is_told_what_was_meant() -> None:
    for call in (ortscan.bench, ortscan.optimize):
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'shape', perhaps 'shapes' was meant"):
            call("m.onnx", shape={"x": (1, 2)})  # type: ignore[call-overload,operator]


def test_printing_a_result_prints_its_summary(model: onnx.ModelProto) -> None:
    after, report = ortscan.optimize(model, report=True)
    for result in (report, ortscan.verify(model, after), ortscan.bench(model, after, rounds=1, seconds=0.1)):
        assert str(result) == result.summary()
        assert result.summary() not in repr(result)


def test_the_errors_that_callers_catch_are_public(model: onnx.ModelProto) -> None:
    with pytest.raises(ortscan.OptionError):
        ortscan.optimize(model, target="gpus")  # type: ignore[call-overload]
    with pytest.raises(ortscan.LimitExceeded):
        ortscan.optimize(model, time_limit=1e-3)
    assert issubclass(ortscan.VerificationFailed, ortscan.OrtscanError)
