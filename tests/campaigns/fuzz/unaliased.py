"""A model whose Scans onnxruntime computes right: each body output is made by a node of its own.

Works around ORT-SCAN-SHARED-OUTPUT.
"""

from onnx import GraphProto, ModelProto, helper

__all__ = ["unaliased"]


def unaliased(model: ModelProto) -> ModelProto | None:
    """A copy with an Identity for each aliased output of a Scan's body; None where there is none."""
    copy = ModelProto()
    copy.CopyFrom(model)
    changed = [_repaired(graph_of) for graph_of in [copy.graph, *copy.functions]]
    return copy if any(changed) else None


def _repaired(graph: GraphProto) -> bool:
    changed = False
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                changed |= _repaired(attribute.g)
                if node.op_type == "Scan":
                    changed |= _give_own_nodes(attribute.g)
    return changed


def _give_own_nodes(body: GraphProto) -> bool:
    given = {info.name for info in body.input}
    seen: set[str] = set()
    changed = False
    for k, info in enumerate(body.output):
        if info.name in given or info.name in seen:
            name = f"{info.name}~own{k}"
            body.node.append(helper.make_node("Identity", [info.name], [name]))
            info.name = name
            changed = True
        seen.add(info.name)
    return changed
