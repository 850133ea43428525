"""A nonsensical value for any parameter of a public function raises an OrtscanError of one printable sentence, or is harmless."""

import argparse
import functools
import inspect
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.session.settings import OPTIONS
from rewrites.base.errors import InvariantBroken, OrtscanError
from tests.support.small_models import MAP
from tests.support.text import parsed


class NoPath:
    def __fspath__(self) -> Any:
        return 3


class NoWords:
    def __repr__(self) -> str:
        raise ZeroDivisionError


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

NONSENSE: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "negative": -5,
    "above 32 bits": 2**31 - 1,
    "above 64 bits": 2**70,
    "no float": 10**400,
    "too long to print": 10**5000,
    "fraction": 0.5,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "decimal": Decimal("NaN"),
    "complex": 1j,
    "a word": "nonsense",
    "no text": "",
    "null character": "a\0b",
    "lone surrogate": "a\ud800",
    "line end": "no\nfile",
    "long": "n" * 100_000,
    "bytes": b"\xff\0",
    "view": memoryview(b"abc"),
    "array": np.ones((2, 3)),
    "vector": np.array([1, 2]),
    "scalar array": np.array(3),
    "numbers": [1, 2],
    "words": ["a", "b\n"],
    "circle": CIRCLE,
    "no items": (),
    "dict of numbers": {1: 2},
    "shapes of nothing": {"x": None},
    "shapes of words": {"x": ["a"]},
    "shapes of arrays": {"x": np.ones((2, 2))},
    "shapes beyond 64 bits": {"x": [2**70, 4]},
    "shapes too long to print": {"x": [10**5000, 4]},
    "shapes with a negative": {"x": [-3, 4]},
    "shapes of nobody": {None: [3, 4]},
    "shapes of a long name": {"n" * 100_000: [1]},
    "object": object(),
    "no words": NoWords(),
    "function": len,
    "generator": (i for i in range(3)),
    "class": int,
    "no path": NoPath(),
    "folder": Path(__file__).parent,
    "device": "/dev/null",
    "no file": Path("/nowhere/at/all"),
    "empty model": onnx.ModelProto(),
    "message": onnx.NodeProto(),
}
MODEL = parsed(MAP)


def calls() -> dict[str, Callable[[Any], object]]:
    """Return a call for each parameter, which takes the value to pass."""
    results: dict[str, Callable[[Any], object]] = {
        "optimize model": ortscan.optimize,
        "explain model": ortscan.explain,
        "migrate model": lambda value: ortscan.migrate(value, 18),
        "migrate opset": lambda value: ortscan.migrate(MODEL, value),
        "verify before": lambda value: ortscan.verify(value, MODEL),
        "verify after": lambda value: ortscan.verify(MODEL, value),
        "register options": ortscan.register,
        "register model": lambda value: ortscan.register(ort.SessionOptions(), value),
    }
    for verb, arguments in ((ortscan.optimize, (MODEL,)), (ortscan.migrate, (MODEL, 18)), (ortscan.verify, (MODEL, MODEL))):
        usual = {"verify": False} if "verify" in inspect.signature(verb).parameters else {}
        for name in list(inspect.signature(verb).parameters)[len(arguments) :]:
            results[f"{verb.__name__} {name}"] = functools.partial(_called, verb, arguments, usual, name)
    for name in ("target", "opset", "shapes", "passes", "nothing_of_the_kind"):
        results[f"explain {name}"] = functools.partial(_called, ortscan.explain, (MODEL,), {}, name)
    return results


def _called(verb: Callable[..., object], arguments: tuple[Any, ...], usual: dict[str, Any], name: str, given: Any) -> object:
    return verb(*arguments, **{**usual, name: given})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", calls())
def test_nonsense_is_one_sentence(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verb = calls()[call]
    assert not [bad for what, given in NONSENSE.items() if (bad := complaint(what, lambda given=given: verb(given)))]


def complaint(what: str, call: Callable[[], object]) -> str | None:
    """Return what is wrong with the error of ``call``, or None."""
    try:
        call()
    except OrtscanError as error:
        message = str(error)
        fine = message.isprintable() and 10 < len(message) <= 3000 and not isinstance(error, InvariantBroken)
        return None if fine else f"{what}: {message}"
    return None


@pytest.mark.parametrize("name", [*OPTIONS, "enable", "strict", "cache", "cache_dir", "cache_size"])
def test_nonsense_in_session_options_is_one_sentence(name: str) -> None:
    for text in ("nonsense", "-5", "1e999", "x:;:", "a\nb", "n" * 1000, "x:" + "9" * 5000, str(2**31 - 1), "é\u202e", ":,;"):
        options = ort.SessionOptions()
        options.add_session_config_entry("ortscan.cache", "0")
        options.add_session_config_entry("ortscan.strict", "1")
        options.add_session_config_entry(f"ortscan.{name}", text)
        model = MODEL.SerializeToString()
        session = functools.partial(ortscan.InferenceSession, model, options, providers=["CPUExecutionProvider"])
        assert complaint(text, session) is None


@pytest.mark.parametrize("name", [*OPTIONS, "enable", "strict", "cache", "cache_dir", "cache_size"])
def test_nonsense_for_the_options_of_patched_is_one_sentence(name: str) -> None:
    def enter(value: Any) -> None:
        with ortscan.patched(**{name: value}):
            pass

    values: list[Any] = [{"x": None}, {None: 3}, [None], NoWords(), 10**5000, CIRCLE, b"\xff", "a\0b", object()]
    assert not [bad for value in values if (bad := complaint(name, lambda value=value: enter(value)))]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ortscan.optimize(MODEL, time_limt=3),  # type: ignore[call-arg]
        lambda: ortscan.verify(MODEL, MODEL, sed=1),  # type: ignore[call-arg]
        lambda: ortscan.verify(MODEL),  # type: ignore[call-arg]
        lambda: ortscan.migrate(MODEL, opst=18),  # type: ignore[call-arg]
    ],
)
def test_a_parameter_that_there_is_not_or_that_lacks_is_what_python_says(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="argument"):
        call()


def test_a_limit_of_ages_ends_no_thread(capfd: pytest.CaptureFixture[str]) -> None:
    assert ortscan.verify(MODEL, MODEL, time_limit=1e15).ok
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["optimize", "a\0b", "out.onnx"],
        ["optimize", "a\nb", "out.onnx"],
        ["optimize", "n" * 5000, "out.onnx"],
        ["optimize", "{model}", "a\0b"],
        ["optimize", "{model}", "out.onnx", "--opset", "9" * 5000],
        ["optimize", "{model}", "out.onnx", "--opset", str(2**31 - 1)],
        ["optimize", "{model}", "out.onnx", "--shape", "x:" + "9" * 5000],
        ["optimize", "{model}", "out.onnx", "--memory-budget", "nan"],
        ["optimize", "{model}", "out.onnx", "--passes", "a\nb"],
        ["migrate", "{model}", "out.onnx", "--opset", "-1"],
        ["explain", "/dev/null"],
        ["n" * 100_000],
        ["explain", "{model}", "n" * 100_000 + "\x1b[31m"],
        ["explain", "{model}", "--" + "n" * 100_000],
        ["verify", "{model}", "{model}", "--inputs", "a\0b"],
        ["verify", "{model}", "{model}", "--seed", "-1"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40].encode("unicode_escape").decode(),
)
def test_nonsense_on_the_command_line_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(MODEL.SerializeToString())
    try:
        code = main([argument.replace("{model}", "model.onnx") for argument in arguments])
    except (SystemExit, argparse.ArgumentError) as stop:
        code = getattr(stop, "code", 2)
    output = capfd.readouterr().err
    assert code
    assert "Traceback" not in output
    assert "internal error" not in output
    assert "defect" not in output
    assert len(output.splitlines()[-1]) < 4000
