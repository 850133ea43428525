"""Where a node comes from in the program that was exported, out of what the exporter noted beside it.

torch notes the names and the classes of the modules that a node is in: ``encoder.rnn (GRUCell)``.
"""

import ast
from collections.abc import Mapping

import onnx_ir as ir

from rewrites.base.plain_text import cut, plain

__all__ = ["scope_of"]

_NAMES, _CLASSES, _SPACE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "namespace"
_LONGEST, _LONGEST_SHOWN = 10_000, 120


def scope_of(node: ir.Node) -> str:
    """Return where ``node`` comes from, or nothing."""
    noted = node.metadata_props
    names, classes = _listed(noted, _NAMES)[:-1], _listed(noted, _CLASSES)[:-1]
    if not names and not classes:
        names, classes = _of_space(noted.get(_SPACE, ""))
    module = next((name for name in reversed(names) if name), "")
    kind = classes[-1].rpartition(".")[2] if classes else ""
    return plain(cut(f"{module} ({kind})" if module and kind else module or kind, _LONGEST_SHOWN))


def _listed(noted: Mapping[str, str], key: str) -> list[str]:
    """Read a list of texts, as Python writes it; the last is the operator itself."""
    text = noted.get(key, "")
    try:
        found = ast.literal_eval(text) if text and len(text) <= _LONGEST else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [str(one) for one in found] if isinstance(found, list) else []


def _of_space(space: str) -> tuple[list[str], list[str]]:
    """Read ``: Model/encoder.rnn: GRUCell/scan: torch.ops...``."""
    parts = [part.partition(": ") for part in space[:_LONGEST].split("/")[:-1] if ": " in part]
    return [name for name, _, _ in parts], [kind for _, _, kind in parts]
