"""Reads RNN, GRU and LSTM nodes (opset 7 to 26), fills in defaults, and replaces such nodes.

onnxruntime requires more than the specification: ``hidden_size``, its own spelling of activations, and a clip above 0. If a node
violates the specification, ``read`` returns a reason, so no rule handles the node.

Works around ORT-RECURRENT-HIDDEN-SIZE, ORT-RECURRENT-ACTIVATION-NAMES, ORT-RECURRENT-CLIP and ORT-RECURRENT-DEFAULTS.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import carry
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import dim_of
from rewrites.ops.rnn.functions import DEFAULTS, PARAMETERS, Function, functions_with_parameters, spelling_of

__all__ = ["GATES", "LISTS", "RecurrentNode", "defaulted_to_zero", "is_recurrent", "read", "replace_by_copy", "replace_by_nodes"]


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_REVERSE = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


@dataclass(frozen=True)
class RecurrentNode:
    """The attributes of an RNN, GRU or LSTM node, with defaults filled in.

    Args:
        kind: The operator: "RNN", "GRU" or "LSTM".
        reverse: For each direction, True if it runs backwards.
        hidden: The hidden size.
        functions: For each direction, its activations.
        clip: The bound on the arguments of activations, or None.
        batch_first: True if ``layout`` is 1.
    """

    node: ir.Node
    kind: str
    reverse: tuple[bool, ...]
    hidden: int
    functions: tuple[tuple[Function, ...], ...]
    clip: float | None
    batch_first: bool
    input_forget: bool
    linear_before_reset: bool
    dtype: ir.DataType | None

    def input(self, name: str) -> ir.Value | None:
        """Return the input that the specification calls ``name``, or None if it is absent."""
        return _input_named(self.node, name)

    @property
    def x(self) -> ir.Value:
        """Return the input sequences."""
        value = self.node.inputs[0]
        assert value is not None
        return value

    @property
    def directions(self) -> int:
        """Return the number of directions: 1, or 2 for a bidirectional node."""
        return len(self.reverse)

    @property
    def axes(self) -> tuple[int, int]:
        """Return the axis of the steps and the axis of the batch in ``x``."""
        return (1, 0) if self.batch_first else (0, 1)

    @property
    def states(self) -> list[ir.Value | None]:
        """Return the initial states: one state, or two for an LSTM. An absent state is None."""
        return [self.input("initial_h"), *([self.input("initial_c")] if self.kind == "LSTM" else [])]

    @property
    def label(self) -> str:
        """Return the name of the node for messages."""
        return f"{self.kind} '{self.node.name or self.node.outputs[0].name}'"


def is_recurrent(node: ir.Node) -> bool:
    """Return True if ``node`` is an RNN, GRU or LSTM of the standard operator set."""
    return node.op_type in GATES and node.domain == ""


def read(node: ir.Node) -> RecurrentNode | NotApplicable:
    """Return the view of a recurrent node, or a reason if it is invalid or its hidden size is unknown."""
    try:
        return _read(node)
    except TypeError as error:
        return NotApplicable("RNN-ATTRIBUTE", f"an attribute has the wrong kind: {error}")


def _read(node: ir.Node) -> RecurrentNode | NotApplicable:
    kind, attributes = node.op_type, node.attributes
    reference = next((name for name, attribute in attributes.items() if attribute.is_ref()), None)
    if reference is not None:
        return NotApplicable("RNN-ATTRIBUTE", f"its attribute '{reference}' refers to an attribute of the function around it")
    if len(node.inputs) < 3 or any(value is None for value in node.inputs[:3]):
        return NotApplicable("RNN-INPUT", "X, W or R is missing")
    direction = attributes.get_string("direction", "forward") or ""
    if direction not in _REVERSE:
        return NotApplicable("RNN-ATTRIBUTE", f"direction is '{direction}', but must be forward, reverse or bidirectional")
    layout = attributes.get_int("layout", 0)
    if layout not in (0, 1):
        return NotApplicable("RNN-ATTRIBUTE", f"layout is {layout}, but must be 0 or 1")
    clip = attributes.get_float("clip", 0.0) or 0.0
    reverse = _REVERSE[direction]
    functions = _read_functions(node, len(reverse))
    if isinstance(functions, NotApplicable):
        return functions
    hidden = _hidden_size(node)
    if hidden is None:
        return NotApplicable("RNN-HIDDEN-SIZE", "hidden_size is missing, and no shape of a weight or state determines it")
    if hidden < 1:
        return NotApplicable("RNN-HIDDEN-SIZE", f"its hidden size is {hidden}, but must be 1 or more")
    return RecurrentNode(
        node,
        kind,
        reverse,
        hidden,
        functions,
        clip if clip > 0 else None,
        layout == 1,
        bool(attributes.get_int("input_forget", 0)),
        bool(attributes.get_int("linear_before_reset", 0)),
        _element_type(node),
    )


def _input_named(node: ir.Node, name: str) -> ir.Value | None:
    index = _INPUTS.index(name)
    return node.inputs[index] if index < len(node.inputs) else None


def _read_functions(node: ir.Node, directions: int) -> tuple[tuple[Function, ...], ...] | NotApplicable:
    """Return the activations of each direction, or a reason if they are invalid."""
    default = DEFAULTS[node.op_type]
    count = len(default)
    names = list(node.attributes.get_strings("activations", ()) or default * directions)
    if node.op_type == "RNN" and directions == 1:
        names = names[:1]
    spelt = [spelling_of(name) for name in names]
    if None in spelt:
        unknown = names[spelt.index(None)]
        return NotApplicable("RNN-ACTIVATION", f"'{unknown}' is not an activation of the operator")
    if len(names) != count * directions:
        detail = f"{len(names)} activations are named, but {count * directions} are needed"
        return NotApplicable("RNN-ACTIVATION", detail)
    lists = (list(node.attributes.get_floats(f"activation_{which}", ())) for which in ("alpha", "beta"))
    functions = functions_with_parameters([name for name in spelt if name is not None], *lists)
    return tuple(tuple(functions[i : i + count]) for i in range(0, len(functions), count))


def _hidden_size(node: ir.Node) -> int | None:
    """Return the attribute ``hidden_size`` or, if it is absent, a size that the inputs or outputs imply."""
    declared = node.attributes.get_int("hidden_size", None)
    if declared:
        return declared
    gates = GATES[node.op_type]
    candidates = [("R", 2, 1), ("R", 1, gates), ("W", 1, gates), ("B", 1, 2 * gates), ("P", 1, 3)]
    candidates += [("initial_h", 2, 1), ("initial_c", 2, 1)]
    for name, axis, factor in candidates:
        value = _input_named(node, name)
        dim = None if value is None else dim_of(value, axis)
        if isinstance(dim, int):
            return dim // factor
    dims = (dim_of(value, -1) for value in node.outputs)
    return next((dim for dim in dims if isinstance(dim, int)), None)


def _element_type(node: ir.Node) -> ir.DataType | None:
    """Return the element type of the inputs and outputs, or None if unknown."""
    values = [_input_named(node, name) for name in _INPUTS if name != "sequence_lens"]
    return next((value.dtype for value in [*values, *node.outputs] if value is not None and value.dtype is not None), None)


LISTS = ("activation_alpha", "activation_beta")
"""The attributes that contain parameters of activations."""

_TAKEN_AS_0 = frozenset({"Affine", "ScaledTanh", "ThresholdedRelu"})


def defaulted_to_zero(view: RecurrentNode) -> list[str]:
    """Return the names of the activations whose omitted parameters onnxruntime takes as 0.

    The specification asks for the activation's default instead. A name occurs once for each omitted parameter.
    """
    functions = [function for activations in view.functions for function in activations]
    zero_defaults: list[str] = []
    for which, name in enumerate(LISTS):
        with_parameter = [function.name for function in functions if PARAMETERS[function.name][which] is not None]
        parameters = view.node.attributes.get_floats(name, ())
        zero_defaults += [activation for activation in with_parameter[len(parameters) :] if activation in _TAKEN_AS_0]
    return zero_defaults


def replace_by_copy(
    ctx: Context,
    b: Builder,
    node: ir.Node,
    inputs: Sequence[ir.Value | None],
    replacement: Callable[[int, ir.Value], ir.Value],
    **attributes: Any,
) -> ir.Node:
    """Replace ``node`` by a new node of the same operator, and return the new node.

    Args:
        inputs: The inputs of the new node.
        replacement: Called with the index of an output and with this output of the new node. Returns the value that replaces the
            old output. It is not called for absent outputs.
        attributes: The attributes that differ from those of ``node``. None removes an attribute.
    """
    outputs = b.like(node, inputs, **attributes)
    new = outputs[0].producer()
    assert new is not None
    results: list[ir.Value | None] = []
    for i, (old, value) in enumerate(zip(node.outputs, outputs, strict=True)):
        results.append(replacement(i, value) if old.name else None)
        if not old.name:
            value.name = ""
    new.doc_string = node.doc_string
    new.metadata_props.update(node.metadata_props)
    carry(node, new)
    name = node.name
    replace_by_nodes(ctx, b, node, results)
    new.name = name
    return new


def replace_by_nodes(ctx: Context, b: Builder, node: ir.Node, results: Sequence[ir.Value | None]) -> None:
    """Replace ``node`` by the nodes of the builder ``b``.

    ``results``: for each output of ``node``, the value that replaces the output and gets its name. None for an output that needs no
    replacement.
    """
    b.insert_before(node)
    for old, value in zip(node.outputs, results, strict=False):
        if value is not None:
            take_over(old, value, ctx.names)
    remove_nodes([node])
