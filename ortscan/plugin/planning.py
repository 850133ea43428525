"""From the model of one loop to what stands for it: a plan, or a model with plans in it."""

import base64
import hashlib
import logging
from collections import OrderedDict

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.base.fork_safe import ForkSafeLock
from ortscan.base.quiet import quietly
from ortscan.errors import OrtscanError
from ortscan.modelio.loaded import to_proto
from ortscan.pipeline.rewriting import Outcome, Rewriting
from ortscan.plugin.answers import Answer, label_of
from ortscan.running.subgraphs import all_nodes
from rewrites.graph.values import const_array
from rewrites.native.functions import DOMAIN, LOOP_OPERATOR, OPERATOR
from rewrites.native.operations import NARROW, NUMPY
from rewrites.registry import RULES

__all__ = ["answer_for", "has_loop", "planned"]

_MOST_KEPT = 256
_MOST_BYTES = 1 << 16
"""Of a model whose answer is kept."""
_SCAN_9 = 9
"""The operator set with the Scan that has no batch."""
_PLAN = ("native-loop",)
_FORMS = tuple(dict.fromkeys(rule.name for rule in RULES if rule.phase in ("cleanup", "loop_form", "scan_form"))) + _PLAN
"""What a loop is written as does not matter to these, and they keep what it computes to the bit."""

_lock = ForkSafeLock()
_kept: OrderedDict[bytes, bytes | None] = OrderedDict()
_log = logging.getLogger(__name__)


def planned(model: bytes, title: str = "a loop") -> bytes | None:
    """Return the answer for the loop that is the model's only node, or None. The last answers for small models are kept.

    ``title``: what the log calls the loop.
    """
    if len(model) > _MOST_BYTES:
        return _encoded(model, title)
    digest = hashlib.sha256(model).digest()
    with _lock:
        if digest in _kept:
            _kept.move_to_end(digest)
            return _kept[digest]
    found = _encoded(model, title)
    with _lock:
        _kept[digest] = found
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return found


def _encoded(model: bytes, title: str) -> bytes | None:
    answer = answer_for(model, title)
    return None if answer is None else answer.encoded()


@quietly
def answer_for(model: bytes, title: str) -> Answer | None:
    """Return a plan of the loop as it is, or in another form, or else a model without loops, or None."""
    proto = onnx.load_from_string(model)
    why = ""
    opset = "auto" if any(each.domain in ("", "ai.onnx") and each.version < _SCAN_9 for each in proto.opset_import) else "keep"
    try:
        for passes in (_PLAN, _FORMS):
            outcome = Rewriting(proto, passes=passes, opset=opset).once()
            if (answer := _plan_alone(proto, outcome)) is not None:
                if any(node.op_type == "MatMulInteger" for node, _ in all_nodes(proto)):
                    _log.info("%s multiplies bytes exactly, which onnxruntime does not without VNNI: ORT-SATURATED-PRODUCTS", title)
                return answer
            why = why or _reason(outcome)
        made = to_proto(outcome.loaded)
        if not has_loop(made.graph):
            return Answer(made.SerializeToString(), is_plan=False)
    except OrtscanError as error:
        why = why or str(error)
    _log.info("%s is left to onnxruntime: %s", title, why or "there is no plan")
    return None


def _reason(outcome: Outcome) -> str:
    reasons = [reason for loop in outcome.report.loops for reason in loop.reasons if reason.rule == _PLAN[0]]
    return f"{reasons[0].code}: {reasons[0].detail}" if reasons else ""


def _plan_alone(proto: onnx.ModelProto, outcome: Outcome) -> Answer | None:
    """Return the answer where a call of a plan is all that is left, beside results that are values that the loop reads."""
    graph = outcome.loaded.model.graph
    calls = [node for node in graph if node.op_type != "Identity"]
    if len(calls) != 1 or calls[0].domain != DOMAIN or calls[0].op_type not in (OPERATOR, LOOP_OPERATOR):
        return None
    known = {value.name for value in (*proto.graph.input, *proto.graph.initializer)}
    copies: list[tuple[int, int]] = []
    for node in graph:
        if node is not calls[0]:
            target, source = label_of(node.outputs[0].name), _label(node.inputs[0], known)
            if target is None or source is None or not node.outputs[0].is_graph_output() or node.outputs[0].uses():
                return None
            copies.append((target, source))
    inputs = [_input(value, known) for value in calls[0].inputs]
    outputs = [label_of(value.name) if value.is_graph_output() else None for value in calls[0].outputs]
    given = [each for each in outputs if each is not None] + [target for target, _ in copies]
    wanted = [label_of(value.name) for value in proto.graph.output]
    if len(given) != len(set(given)) or set(given) != set(wanted):
        return None
    read = [each for each in inputs if each is not None]
    if len(read) != len(inputs):
        return None
    plan = base64.b64decode(calls[0].attributes["plan"].as_string())
    return Answer(plan, True, read, outputs, copies)


def _label(value: ir.Value | None, known: set[str]) -> int | None:
    return label_of(value.name) if value is not None and value.name in known and value.producer() is None else None


def _input(value: ir.Value | None, known: set[str]) -> int | np.ndarray | None:
    if (label := _label(value, known)) is not None:
        return label
    array = const_array(value)
    return array if array is not None and array.dtype in {*NUMPY.values(), *NARROW.values()} else None


def has_loop(graph: onnx.GraphProto) -> bool:
    """Whether a loop is left in the graph or a branch of it."""
    return any(
        node.op_type in ("Scan", "Loop") or any(has_loop(attribute.g) for attribute in node.attribute if attribute.HasField("g"))
        for node in graph.node
    )
