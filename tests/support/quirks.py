"""Tests that show defects of onnxruntime and onnx. Each test fails as soon as its defect is fixed."""

import ast
import functools
import multiprocessing
import re
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from rewrites.ops.quirks import QUIRKS, Quirk
from tests.campaigns.fuzz.unwritten import unwritten_outputs
from tests.support.runtime import ort_run, ort_session, run_session
from tests.support.text import parsed

__all__ = [
    "ID",
    "Fate",
    "dies",
    "fate_of",
    "gives",
    "model",
    "ones",
    "refuses",
    "run",
    "shown",
    "shows",
    "unwritten",
    "workarounds",
]

Feeds = Mapping[str, Any]
_SECONDS = 60.0
ROOT = Path(__file__).parents[2]
ID = re.compile(r"\b(?:ORT|ONNX)-[A-Z0-9]+(?:-[A-Z0-9]+)*\b")


def shows(name: str) -> Callable[[Callable[..., bool]], Callable[..., None]]:
    """Turn a function that returns whether the defect ``name`` exists into a test."""
    quirk = QUIRKS[name]

    def decorated(is_there: Callable[..., bool]) -> Callable[..., None]:
        @functools.wraps(is_there)
        def test(*arguments: Any, **named: Any) -> None:
            there = is_there(*arguments, **named)
            assert isinstance(there, bool | np.bool_)
            assert there, _gone(quirk)

        test.__annotations__["return"] = None
        test.quirk = name  # type: ignore[attr-defined]
        return test

    return decorated


def shown(module: Any) -> set[str]:
    """Return the ids of the defects that the tests of a module show."""
    return {test.quirk for test in vars(module).values() if hasattr(test, "quirk")}


def _gone(quirk: Quirk) -> str:
    library = ort if quirk.id.startswith("ORT-") else onnx
    modules = ", ".join(workarounds().get(quirk.id, ()))
    return f"{quirk.id} is gone in {library.__name__} {library.__version__}: remove what works around it: {modules}"


@functools.cache
def workarounds() -> Mapping[str, list[str]]:
    """Return the modules whose docstrings name each defect."""
    modules: dict[str, list[str]] = {}
    for file in (file for package in ("rewrites", "ortscan", "tests") for file in sorted((ROOT / package).rglob("*.py"))):
        text = file.read_text(encoding="utf-8")
        words = (ast.get_docstring(ast.parse(text)) or "") if ID.search(text) else ""
        for name in dict.fromkeys(ID.findall(words)):
            modules.setdefault(name, []).append(".".join(file.relative_to(ROOT).with_suffix("").parts))
    return modules


def model(text: str, opset: int = 22, domains: str = "") -> onnx.ModelProto:
    """Return the model of a graph in ONNX text without checking it, because some are not sound."""
    return parsed(text, opset, ir_version=10 if opset > 20 else 8, domains=domains)


def ones(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def gives(proto: onnx.ModelProto, feeds: Feeds, *, optimised: bool = True) -> list[Any]:
    """Return what onnxruntime computes in this process."""
    return ort_run(proto, feeds, optimised=optimised)


def refuses(proto: onnx.ModelProto, feeds: Feeds, saying: str, *, optimised: bool = True) -> bool:
    """Return True if onnxruntime does not load or run the model, with these words in its message."""
    try:
        gives(proto, feeds, optimised=optimised)
    except Exception as error:
        if saying not in str(error):
            raise
        return True
    return False


def unwritten(proto: onnx.ModelProto, feeds: Feeds) -> set[int]:
    """Return which results are unwritten memory. This is reliable only for results of at least 2 KiB."""
    session = ort_session(proto)
    with np.errstate(invalid="ignore"):
        return unwritten_outputs(proto.SerializeToString(), session, feeds, run_session(session, feeds), 0.0)


@dataclass(frozen=True)
class Fate:
    """How work in a subprocess ended: by itself, by a signal, or not at all."""

    result: Any = None
    died: bool = False
    hangs: bool = False


def dies(proto: onnx.ModelProto, feeds: Feeds) -> bool:
    """Return True if the process that loads and runs the model on onnxruntime crashes."""
    return fate_of(run, proto.SerializeToString(), dict(feeds)).died


def run(data: bytes, feeds: Feeds) -> list[Any] | str:
    """Return the results, or the reason why there are none."""
    try:
        return ort_run(data, feeds)
    except Exception as error:
        return str(error)


def fate_of(work: Callable[..., Any], *arguments: Any, seconds: float = _SECONDS) -> Fate:
    """Run ``work``, a function of a module, in a process forked from one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.campaigns.fuzz.preloaded", "pytest", __name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, work, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            return Fate(hangs=True)
        return Fate(ours.recv())
    except EOFError:
        process.join()
        assert process.exitcode is not None
        assert process.exitcode < 0, f"the process ended with {process.exitcode}"
        return Fate(died=True)
    finally:
        process.kill()
        process.join()
        ours.close()


def _work(pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send(work(*arguments))
    pipe.close()
