"""What may come of a damaged model: one sentence, the model as it was, or one that is no worse for the checker and onnxruntime.

onnxruntime sees both models in a process of its own, since it may die of the original.
"""

import contextlib
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import onnx
import onnx_ir as ir

import ortscan
from rewrites.base.errors import InvariantBroken, OrtscanError
from tests.campaigns.fuzz.damage_kinds import graphs_in

__all__ = ["SECONDS", "TooLong", "Verdict", "outcome"]

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
