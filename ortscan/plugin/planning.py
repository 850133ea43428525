"""Answer the native library's request for a plan of a loop (see loop-plans.md).

The request has a model with the loop as its only node. The answer is a plan, or a model that does the same without a loop.

planned(model)      uses only rules that keep the results bit by bit; takes milliseconds
rewritten(model)    uses all rules, and compares the result with the loop; takes seconds. Only used to store answers in a model
"""

import base64
import hashlib
import logging
import struct
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.base.forks import ForkSafeLock
from ortscan.base.messages import quietly
from ortscan.errors import OrtscanError
from ortscan.modelio.loaded import to_proto
from ortscan.pipeline.compare_with_original import compare
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.self_check import self_checked
from ortscan.running.graph_index import all_nodes
from rewrites.graph.values import const_array
from rewrites.native.operations import NARROW, NUMPY
from rewrites.native.operator_names import DOMAIN, LOOP_OPERATOR, OPERATOR
from rewrites.registry import RULES

__all__ = ["Answer", "answer_for", "planned", "rewritten"]

_MAGIC = 0x31414C50
_A_PLAN, _A_MODEL = 0, 1
_NONE = -1
_MOST_KEPT = 256
_MOST_BYTES = 1 << 16
"""The most bytes of a model whose answer is cached."""
_SCAN_9 = 9
"""The first operator set whose Scan has no batch axis."""
_PLAN = ("native-loop",)
_FORMS = tuple(dict.fromkeys(rule.name for rule in RULES if rule.phase in ("cleanup", "loop_form", "scan_form"))) + _PLAN
"""Rules that change the form of a loop and keep its results bit by bit."""

_lock = ForkSafeLock()
_kept: OrderedDict[bytes, bytes | None] = OrderedDict()
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """An answer to the library: a plan with its inputs and outputs, or a model without the loop.

    The values of the model in the request are called ``v0``, ``v1`` and so on. The number in such a name is the label of the value.

    Attributes:
        content: the plan or the model.
        is_plan: True for a plan.
        inputs: for each input of the plan, the label of the value that it reads, or a constant.
        outputs: for each output of the plan, the label of the value that it computes, or None if the output is not used.
        copies: pairs (label of an output of the loop, label of another value), for outputs that only copy another value.
    """

    content: bytes
    is_plan: bool
    inputs: Sequence[int | np.ndarray] = ()
    outputs: Sequence[int | None] = ()
    copies: Sequence[tuple[int, int]] = ()

    def encoded(self) -> bytes:
        """Return the answer in the binary format that the library reads."""
        kind = _A_PLAN if self.is_plan else _A_MODEL
        parts = [_words(_MAGIC, kind, len(self.inputs), len(self.outputs), len(self.copies), len(self.content))]
        parts += [_words(each) if isinstance(each, int) else _constant(each) for each in self.inputs]
        parts += [_words(_NONE if each is None else each) for each in self.outputs]
        parts += [_words(*each) for each in self.copies]
        return b"".join([*parts, self.content])


def _label_of(name: str | None) -> int | None:
    """Return the label of the value called ``name``, such as 3 for ``v3``. Return None for another name."""
    digits = (name or "")[1:]
    return int(digits) if name and name[0] == "v" and digits.isascii() and digits.isdigit() else None


def _words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def _constant(array: np.ndarray) -> bytes:
    dtype, held = next((dtype, kind) for dtype, kind in (*NUMPY.items(), *NARROW.items()) if kind == array.dtype)
    content = np.ascontiguousarray(array, held).tobytes()
    return _words(_NONE, dtype, array.ndim, *array.shape) + content + bytes(-len(content) % 4)


def planned(model: bytes, title: str = "a loop") -> bytes | None:
    """Return the encoded answer to a request for a plan, or None if there is no plan.

    The latest answers for small models are cached.

    Args:
        model: a model with the loop as its only node.
        title: the name of the loop in the log.
    """
    digest = hashlib.sha256(model).digest()
    with _lock:
        if digest in _kept:
            _kept.move_to_end(digest)
            return _kept[digest]
    answer = answer_for(model, title)
    content = None if answer is None else answer.encoded()
    if len(model) <= _MOST_BYTES:
        with _lock:
            _kept[digest] = content
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    return content


@quietly
def answer_for(model: bytes, title: str) -> Answer | None:
    """Return the first of these answers that is possible, or None if none is possible.

    * a plan of the loop as it is
    * a plan of the loop after rules have changed its form
    * the model of the request without a loop, if these rules have removed it

    Args:
        model: a model with the loop as its only node.
        title: the name of the loop in the log.
    """
    proto = onnx.load_from_string(model)
    why = ""
    is_old = any(entry.domain in ("", "ai.onnx") and entry.version < _SCAN_9 for entry in proto.opset_import)
    try:
        for passes in (_PLAN, _FORMS):
            outcome = Rewriting(proto, passes=passes, opset="auto" if is_old else "keep").once()
            if (answer := _plan_alone(proto, outcome)) is not None:
                if any(node.op_type == "MatMulInteger" for node, _ in all_nodes(proto)):
                    _log.info("%s multiplies bytes exactly; without VNNI, onnxruntime does not: ORT-SATURATED-PRODUCTS", title)
                return answer
            why = why or _reason(outcome)
        result = to_proto(outcome.loaded)
        if not _has_loop(result.graph):
            return Answer(result.SerializeToString(), is_plan=False)
    except OrtscanError as error:
        why = why or str(error)
    _log.info("%s runs on onnxruntime: %s", title, why or "there is no plan")
    return None


def _reason(outcome: Rewritten) -> str:
    reasons = [reason for loop in outcome.report.loops for reason in loop.reasons if reason.rule == _PLAN[0]]
    return f"{reasons[0].code}: {reasons[0].detail}" if reasons else ""


def _plan_alone(proto: onnx.ModelProto, outcome: Rewritten) -> Answer | None:
    """Return the plan in a rewritten model as an answer, or None if the plan cannot replace the loop.

    The plan can replace the loop if the rewritten model has only one call of a plan, and Identity nodes that copy an input of the
    loop to an output.

    Args:
        proto: the model of the request.
        outcome: the rewritten model.
    """
    graph = outcome.loaded.model.graph
    calls = [node for node in graph if node.op_type != "Identity"]
    if len(calls) != 1 or calls[0].domain != DOMAIN or calls[0].op_type not in (OPERATOR, LOOP_OPERATOR):
        return None
    known = {value.name for value in (*proto.graph.input, *proto.graph.initializer)}
    copies: list[tuple[int, int]] = []
    for node in graph:
        if node is not calls[0]:
            target, source = _label_of(node.outputs[0].name), _label(node.inputs[0], known)
            if target is None or source is None or not node.outputs[0].is_graph_output() or node.outputs[0].uses():
                return None
            copies.append((target, source))
    inputs = [_input(value, known) for value in calls[0].inputs]
    outputs = [_label_of(value.name) if value.is_graph_output() else None for value in calls[0].outputs]
    bound = [label for label in outputs if label is not None] + [target for target, _ in copies]
    wanted = [_label_of(value.name) for value in proto.graph.output]
    if len(bound) != len(set(bound)) or set(bound) != set(wanted):
        return None
    known_inputs = [item for item in inputs if item is not None]
    if len(known_inputs) != len(inputs):
        return None
    plan = base64.b64decode(calls[0].attributes["plan"].as_string())
    return Answer(plan, True, known_inputs, outputs, copies)


def _label(value: ir.Value | None, known: set[str]) -> int | None:
    return _label_of(value.name) if value is not None and value.name in known and value.producer() is None else None


def _input(value: ir.Value | None, known: set[str]) -> int | np.ndarray | None:
    if (label := _label(value, known)) is not None:
        return label
    array = const_array(value)
    return array if array is not None and array.dtype in {*NUMPY.values(), *NARROW.values()} else None


def _has_loop(graph: onnx.GraphProto) -> bool:
    """Return True if the graph, or a branch in it, contains a loop."""
    return any(
        node.op_type in ("Scan", "Loop") or any(_has_loop(attribute.g) for attribute in node.attribute if attribute.HasField("g"))
        for node in graph.node
    )


def rewritten(model: bytes) -> bytes | None:
    """Rewrite the model of a request with all rules, and return the result as an encoded answer.

    Return None if the result still has a loop, or if it is not confirmed on generated inputs that the result equals the loop.
    """
    try:
        started = time.monotonic()
        rewriting = Rewriting(onnx.load_from_string(model), native=True)
        outcome = self_checked(rewriting)
        result = to_proto(outcome.loaded)
        if _has_loop(result.graph):
            return None
        verification = compare(rewriting.model, outcome.loaded, "quick", time.monotonic() - started)
        is_equal = verification.ok and not verification.inconclusive
        return Answer(result.SerializeToString(), is_plan=False).encoded() if is_equal else None
    except OrtscanError:
        return None
