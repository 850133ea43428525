"""Writes the attributes of a node in the form that onnxruntime accepts.

    LSTM <output_sequence = 1, clip = 0.0> (x, W, R)    ->    LSTM <hidden_size = 8> (x, W, R)
    RNN <activations = ["tanh"]> (x, W, R)              ->    RNN <activations = ["Tanh"]> (x, W, R)

* ``hidden_size`` is optional in the definition of the operator, but not in onnxruntime. The rule sets it to the size in the shapes
  of weights and states.
* ``output_sequence`` was removed from the operator in opset 7. It never changed a number, so the rule drops it.
* A clip of 0 or less means no clip in exporters and other runtimes, so the rule drops it. Such a clip stays in an RNN on float32,
  because onnxruntime runs this node.
* The rule writes the names of activations as in the operator's definition.

Works around ORT-RECURRENT-HIDDEN-SIZE, ORT-RECURRENT-ACTIVATION-NAMES and ORT-RECURRENT-CLIP.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, _: Context) -> Patch | NotApplicable:
    """Return a patch if the node has attributes in a form that onnxruntime refuses."""
    attributes = view.node.attributes
    changes: dict[str, tuple[ir.Attr | None, str]] = {}
    if not attributes.get_int("hidden_size", 0):
        changes["hidden_size"] = (ir.AttrInt64("hidden_size", view.hidden), f"set hidden_size to {view.hidden}")
    if "output_sequence" in attributes:
        changes["output_sequence"] = (None, "dropped output_sequence, which left the operator with opset 7")
    if "clip" in attributes and view.clip is None and (view.kind != "RNN" or WAS_REFUSED.on(view.node)):
        changes["clip"] = (None, f"dropped a clip of {attributes.get_float('clip', 0.0):g}, which means none")
    names = list(attributes.get_strings("activations", ()))
    spelt = [function.name for functions in view.functions for function in functions]
    if names and view.kind == "RNN" and names[: len(spelt)] != spelt:
        changes["activations"] = (ir.AttrStrings("activations", spelt), "spelt activations as the operator's text does")
    if not changes:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for name, (attribute, _) in changes.items():
            if attribute is None:
                del attributes[name]
            else:
                attributes[name] = attribute
        return [view.node]

    return Patch("; ".join(what for _, what in changes.values()), edit)


RULE = Rule("recurrent-attributes", "rnn_nodes", "recurrent node", check)
