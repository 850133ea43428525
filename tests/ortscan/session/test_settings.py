from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import ortscan
from ortscan.errors import OptionError
from ortscan.session.provider_target import target_of
from ortscan.session.settings import OPTIONS, Settings, entry_texts, read_settings
from ortscan.targets import TARGETS
from tests.support.small_models import MAP, X, expected_of_map
from tests.support.text import parsed


def read(**entries: str) -> Settings:
    options = ort.SessionOptions()
    for name, text in entries.items():
        options.add_session_config_entry(f"ortscan.{name}", text)
    return read_settings(options)


def test_nothing_said_means_the_defaults():
    assert read() == read_settings(None) == Settings()


def test_every_option_is_read_as_what_it_is():
    read_all = read(
        target="cuda",
        opset="21",
        shapes="x:4,2;y:1",
        memory_budget="64M",
        fast_math="true",
        passes="a,b",
        skip="c",
        verify="0",
        strict="yes",
        cache="off",
        cache_size="1K",
    )
    assert (read_all.strict, read_all.cache, read_all.cache_size) == (True, False, 1024)
    assert read_all.options == {
        "target": "cuda",
        "opset": 21,
        "shapes": {"x": (4, 2), "y": (1,)},
        "memory_budget": 64 << 20,
        "fast_math": True,
        "passes": ["a", "b"],
        "skip": ["c"],
        "verify": False,
    }
    assert read(opset="keep").options == {"opset": "keep"}


def test_what_is_spelled_is_read_back_the_same():
    given = {"target": "cpu", "shapes": {"x:0": (4, 2)}, "max_unroll": 8, "fast_math": True, "skip": ["a", "b"], "strict": False}
    options = ort.SessionOptions()
    for name, text in entry_texts(given).items():
        options.add_session_config_entry(f"ortscan.{name}", text)
    found = read_settings(options)
    assert {**found.options, "strict": found.strict} == given


@pytest.mark.parametrize(
    ("name", "text"), [("max_unroll", "x"), ("shapes", "x=4"), ("cache", "2"), ("skip", ","), ("cache_size", "-1")]
)
def test_what_cannot_be_read_is_named(name: str, text: str):
    with pytest.raises(OptionError, match=rf"the session option ortscan\.{name} cannot be '{text}': "):
        read(**{name: text})


@pytest.mark.parametrize(
    ("name", "why"), [("max_unroll", "a whole number of 0 or more"), ("verify", "quick, full, 1 or 0"), ("strict", "1 or 0")]
)
def test_the_message_says_what_the_option_can_be(name: str, why: str) -> None:
    with pytest.raises(OptionError, match=rf"the session option ortscan\.{name} cannot be 'x': it is not {why}\.$"):
        read(**{name: "x"})


NOT_GIVEN = {"model", "output", "time_limit", "memory_limit", "runtime", "report", "weights", "max_error"}
"""The runtime of a session is the one it is made in. A session gives the results of the original, so it stores no smaller weights."""


def test_all_options_of_optimize_can_be_given_but_for_limits_and_where_to_write():
    import inspect

    from ortscan import optimize

    assert set(inspect.signature(optimize).parameters) - NOT_GIVEN <= OPTIONS.keys()


CPU, CUDA, AZURE = ("CPUExecutionProvider", "CUDAExecutionProvider", "AzureExecutionProvider")
THERE = (CUDA, "QNNExecutionProvider", "SomeExecutionProvider", AZURE, CPU)


@pytest.mark.parametrize(
    ("providers", "available", "target"),
    [
        (None, THERE, "cpu"),
        ([], THERE, "cpu"),
        ([CPU, CUDA], THERE, "cpu"),
        ([CUDA, CPU], THERE, "cuda"),
        ([CUDA, CPU], [CPU], "cpu"),
        ([CUDA], [CPU], "cpu"),
        (["TensorrtExecutionProvider", (CUDA, {"device_id": 1}), CPU], THERE, "cuda"),
        ([("QNNExecutionProvider", {"backend": "htp"})], THERE, "qnn"),
        (["SomeExecutionProvider"], THERE, "onnx"),
        (["SomeExecutionProvider"], [CPU], "cpu"),
        ([AZURE, CPU], THERE, "cpu"),
        ("CUDAExecutionProvider", THERE, "cpu"),
        (5, THERE, "cpu"),
        ([None, ["a"], (), ([],), CUDA], THERE, "cuda"),
    ],
)
def test_the_first_provider_that_is_there_decides_the_target(providers: Any, available: list[str], target: str):
    assert target_of(providers, available) == target
    assert target in TARGETS


def test_devices_chosen_on_the_session_options_get_standard_operators():
    assert target_of(None, THERE, chosen_elsewhere=True) == "onnx"


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_is_there_and_cannot_be_loaded_is_not_optimised_for(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def noted(providers: Any, *given: Any) -> str:
        asked.append(list(providers))
        return target_of(providers, *given)

    monkeypatch.setattr(ort, "get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr("ortscan.session.inference_session.target_of", noted)
    session = ortscan.InferenceSession(parsed(MAP), providers=[CUDA, CPU])
    assert asked == [[CUDA, CPU], [CPU]]
    assert (session.ortscan.source, session.ortscan.target) == ("optimized", "cpu")
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)
