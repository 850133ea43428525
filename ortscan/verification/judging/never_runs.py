"""Says that the original ran in no case, and which loop is to blame if it fails alike in all of them.

the original itself does not run: Scan 'z' fails in all 12 cases: Subgraph must have the shape set for all outputs but y did not.
"""

import re
from collections.abc import Sequence

import onnx

from ortscan.running.graph_index import all_nodes
from ortscan.verification.result import Case

__all__ = ["why_it_never_ran"]

_FAILED_LOOP = re.compile(r"the original fails: .*running (Scan|Loop) node\. Name:'([^']*)' Status Message: ((?!.*node\. Name:).*)")
"""A loop that fails itself. If a node in its body fails, the message goes on with that node."""


def why_it_never_ran(original: onnx.ModelProto, cases: Sequence[Case]) -> str:
    """Return why the original ran in none of the cases, of which there is at least one."""
    reasons = [(case.reason or "").removeprefix("only ") for case in cases]
    failure = _FAILED_LOOP.fullmatch(reasons[0])
    if failure is None or len(set(reasons)) > 1:
        return f"the original ran in none of {len(cases)} cases: {cases[0].reason}"
    kind, name, message = failure.groups()
    number = f"all {len(cases)} cases" if len(cases) > 1 else "the only case"
    return f"the original itself does not run: {_label(original, kind, name)} fails in {number}: {message.rstrip('. ')}"


def _label(original: onnx.ModelProto, kind: str, name: str) -> str:
    """Return the name of a node or, if it has none and there is no other of its kind, the name of its first output."""
    outputs = [node.output[0] for node, _ in all_nodes(original) if node.op_type == kind and node.name == name and node.output]
    subject = name or (outputs[0] if len(outputs) == 1 else "")
    return f"{kind} '{subject}'" if subject else f"a {kind}"
