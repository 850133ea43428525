"""Judge what comes of a damaged model: one sentence, the model as it was, or one that is no worse for the checker and onnxruntime.

onnxruntime sees both models in a process of its own, because the original may crash it. Works around ORT-RECURRENT-NAN.
"""

import contextlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

import ortscan
from rewrites.base.errors import InvariantBroken, OrtscanError
from tests.campaigns.fuzz.damage_kinds import graphs_in

__all__ = ["SECONDS", "TooLong", "Verdict", "compared", "outcome"]


SECONDS = 5.0
"""Time that one call may take, of the processor."""


class TooLong(Exception):
    """A call was still at work after its time."""


@dataclass(frozen=True)
class Verdict:
    """``how``: refused, unchanged, changed, or what is bad: foreign, defect, slow, memory, message. ``result``: where changed."""

    how: str
    detail: str = ""
    result: bytes | None = None


def outcome(content: bytes, draw: random.Random) -> tuple[str, Verdict]:
    """Do one thing with a damaged model and say what, and what came of it."""
    verb = draw.choice(("optimize", "optimize", "optimize", "migrate", "explain"))
    opset = draw.choice((9, 11, 13, 16, 18, 21, "auto", "latest"))
    target = draw.choice(("cpu", "cpu", "onnx", "coreml", "tensorrt"))
    work: Callable[[Any], Any] = {
        "optimize": lambda model: ortscan.optimize(model, target=target, verify=False),
        "migrate": lambda model: ortscan.migrate(model, opset, verify=False),
        "explain": lambda model: ortscan.explain(model, target=target),
    }[verb]
    what = f"{verb} {opset if verb == 'migrate' else target}"
    given: Any = content
    if draw.random() < 0.5:
        try:
            given = onnx.ModelProto.FromString(content)
        except Exception:  # what is given as bytes then
            given = content
    return what, _of(work, given, content)


def _of(work: Callable[[Any], Any], given: Any, content: bytes) -> Verdict:
    signal.signal(signal.SIGPROF, _over)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        result = work(given)
    except TooLong:
        return Verdict("slow", f"over {SECONDS:g} s")
    except InvariantBroken as error:
        return Verdict("defect", str(error))
    except OrtscanError as error:
        said = str(error)
        return Verdict("refused", said) if said.isprintable() and 0 < len(said) < 4000 else Verdict("message", repr(said)[:500])
    except MemoryError:
        return Verdict("memory")
    except Exception as error:
        return Verdict("foreign", f"{type(error).__name__}: {error}"[:500])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if not isinstance(result, onnx.ModelProto):
        return Verdict("unchanged", "explained")
    before = onnx.ModelProto.FromString(content)
    return (
        Verdict("unchanged")
        if _bare(result) in _spellings(before)
        else Verdict("changed", result=bytes(result.SerializeToString()))
    )


def _spellings(proto: onnx.ModelProto) -> Iterator[bytes]:
    """Yield a model as protobuf writes it, and as the IR does, which leaves out what is empty."""
    yield _bare(proto)
    with contextlib.suppress(ir.serde.SerdeError):
        yield _bare(ir.to_proto(ir.from_proto(proto)))


def _bare(proto: onnx.ModelProto) -> bytes:
    """Return all that a model computes, without what is noted of its values."""
    bare = onnx.ModelProto(graph=proto.graph, functions=proto.functions)
    for graph in graphs_in(bare.graph):
        del graph.value_info[:]
    return bytes(bare.SerializeToString(deterministic=True))


def _over(_signal: int, _frame: FrameType | None) -> None:
    raise TooLong


_LONGEST = 10.0
"""Seconds after which a run is ended: damaged trip counts go up to 2^63."""


def compared(before: bytes, after: bytes, tell: Callable[[str], object]) -> str | None:
    """Say what is worse with ``after``, or None; ``tell`` is told which of the two is being worked on."""
    tell("before")
    was_valid, original = _checker_says(before) is None, _session(before)
    first = _run(original, _feed(original)) if not isinstance(original, str) else None
    again = _run(original, _feed(original)) if isinstance(first, list) and not isinstance(original, str) else None
    tell("after")
    fault, result = _checker_says(after), _session(after)
    if fault is not None and was_valid:
        return f"a valid model became an invalid one: {fault}"
    if isinstance(original, str):
        is_none = fault is not None and isinstance(result, str) and "is not a registered function/op" not in result
        return f"an invalid model became another one: {fault}" if is_none else None
    if isinstance(result, str) and not isinstance(_session(before, optimised=True), str):
        return f"onnxruntime loads the original, but not the result: {result}"
    if isinstance(result, str) or not isinstance(first, list) or not isinstance(again, list) or not _same(first, again, 0.0):
        return None
    if not all(_is_finite(value) for value in first):
        return None  # kernels of onnxruntime for recurrent nodes do not hand NaN on
    second = _run(result, _feed(original))
    if not isinstance(second, list):
        return f"the original runs, the result does not: {second}"
    return None if _same(first, second, 1e-3) else f"the numbers differ: {_short(first)} and {_short(second)}"


def _checker_says(content: bytes) -> str | None:
    try:
        onnx.checker.check_model(content, full_check=True)
    except Exception as error:
        return " ".join(str(error).split())[:300]
    return None


def _session(content: bytes, optimised: bool = False) -> ort.InferenceSession | str:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return " ".join(str(error).split())[:300]


def _feed(session: ort.InferenceSession) -> dict[str, Any] | None:
    feed: dict[str, Any] = {}
    names: dict[str, int] = {}
    draw = np.random.default_rng(0)
    for value in session.get_inputs():
        dims = [dim if isinstance(dim, int) else names.setdefault(dim or "", 2 + len(names) % 3) for dim in value.shape]
        if not value.type.startswith("tensor(") or any(dim < 0 or dim > 64 for dim in dims) or np.prod(dims, dtype=float) > 1e5:
            return None
        kind = value.type[len("tensor(") : -1].replace("float16", "half")
        dtype = {"float": "f4", "double": "f8", "half": "f2", "bool": "?"}.get(kind, kind)
        try:
            feed[value.name] = (draw.uniform(-1, 1, dims) if np.dtype(dtype).kind == "f" else draw.integers(0, 2, dims)).astype(
                dtype
            )
        except TypeError:
            return None
    return feed


def _run(session: ort.InferenceSession, feed: dict[str, Any] | None) -> list[Any] | str:
    if feed is None:
        return "nothing to feed"
    options = ort.RunOptions()
    options.log_severity_level = 4
    end = threading.Timer(_LONGEST, setattr, (options, "terminate", True))
    end.start()
    try:
        return list(session.run(None, feed, options))
    except Exception as error:
        return " ".join(str(error).split())[:300]
    finally:
        end.cancel()


def _same(one: list[Any], other: list[Any], tolerance: float) -> bool:
    return len(one) == len(other) and all(_alike(a, b, tolerance) for a, b in zip(one, other, strict=True))


def _alike(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return _same(one, other, tolerance)
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, tolerance, tolerance, equal_nan=True))


def _is_finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_finite(one) for one in value)
    return not isinstance(value, np.ndarray) or value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


def _short(values: list[Any]) -> str:
    return " ".join(str(getattr(value, "shape", "")) + " ".join(str(value).split())[:80] for value in values)[:200]
