"""Replaces a recurrent node by a call of ortscan's library. The node remains as the fallback.

    ys, hT = GRU (x, W, R, B)
    ->    ys, hT = ai.ortscan.Cell1 <plan> (x, W, R, B)
          ai.ortscan.Cell1:l0 (x, W, R, B) => (ys, hT) { ys, hT = GRU (x, W, R, B) }

The new node refers to a function that contains the recurrent node. In a session without the library, onnxruntime inlines this
function. loop-plans.md describes the attribute ``plan``. If a size is 0, the recurrent node crashes onnxruntime, but the library
returns the correct results.

If weights of a GRU or LSTM are stored in fewer bits, the call reads the stored numbers, and the function also contains the nodes
that widen them. For one or two rows, the library is then faster for any hidden size.

Conditions: the node computes in float32, and its weights are constant. The library supports its activations, and is faster than
onnxruntime for its hidden size.
"""

import base64
import math
import struct
from collections.abc import Container, Mapping, Sequence

import onnx_ir as ir

from rewrites.base.report import PatchOutcome
from rewrites.graph.context import Context
from rewrites.graph.type_names import type_name
from rewrites.graph.values import dim_of, is_constant, is_read, rank_of
from rewrites.loops import replace_node
from rewrites.native.functions import add_function, free_overload, make_function, new_parameter
from rewrites.native.operator_names import CELL_OPERATOR, DOMAIN
from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.weights.reading import NarrowWeight, narrow_weight

__all__ = ["MOST_HIDDEN_FASTER", "RULE", "check"]

INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P", "W_scale", "R_scale")
OUTPUTS = ("Y", "Y_h", "Y_c")
MOST_HIDDEN = 65536
_MAGIC = 0x314C4543
_KINDS = ("RNN", "GRU", "LSTM")
_USES = ("Tanh", "Sigmoid", "Relu", "HardSigmoid", "LeakyRelu", "Elu", "Softsign")
_DIRECTIONS = {(False,): 0, (True,): 1, (False, True): 2}
_MOST_FUNCTIONS = 3
_ONNX_INPUTS = 8
_WEIGHTS = ("W", "R", "B", "P")
MOST_HIDDEN_FASTER = {"RNN": 256, "GRU": 256, "LSTM": 128}
"""The largest hidden sizes for which the library is faster. For larger nodes, onnxruntime computes a row in several threads."""
_UNITS, _NARROW, _MOST_WASTE = 16, 64, 0.05
_MOST_NARROW_BATCH = 2
"""The largest batch for which smaller weights make the library faster. It is assumed if the batch size is unknown."""


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the library can compute the node and is faster than onnxruntime."""
    if DOMAIN not in ctx.options.domains:
        return NOTHING_HERE
    inputs = {name: value for name in INPUTS[:_ONNX_INPUTS] if (value := view.input(name)) is not None}
    outputs = {name: value for name, value in zip(OUTPUTS, view.node.outputs, strict=False) if is_read(value)}
    if not outputs:
        return NOTHING_HERE
    narrow = {name: weight for name in ("W", "R") if view.kind != "RNN" and (weight := narrow_weight(inputs[name])) is not None}
    refusal = _lacks_kernel(view) or _has_variable_weights(inputs, narrow) or _is_slower(view, narrow)
    if refusal is not None:
        return refusal

    def edit() -> Sequence[ir.Node]:
        _replace_by_call(view, inputs, narrow, outputs, ctx)
        return []

    what = f"wrote a call of {DOMAIN}.{CELL_OPERATOR} for the {view.kind}"
    return Patch(what, edit, outcome=PatchOutcome(instructions=1))


def _lacks_kernel(view: RecurrentNode) -> NotApplicable | None:
    unknown = next((each.name for functions in view.functions for each in functions if not _has_kernel(each)), None)
    lengths = view.input("sequence_lens")
    if view.dtype != ir.DataType.FLOAT:
        return NotApplicable("NATIVE-CELL", f"it computes with {type_name(view.dtype)}")
    if view.batch_first:
        return NotApplicable("NATIVE-CELL", "its batch axis comes first")
    if unknown is not None:
        return NotApplicable("NATIVE-CELL", f"the library has no kernel for {unknown}")
    if view.hidden > MOST_HIDDEN:
        return NotApplicable("NATIVE-CELL", f"its hidden size {view.hidden} is above {MOST_HIDDEN}")
    if lengths is not None and (lengths.dtype != ir.DataType.INT32 or rank_of(lengths) not in (1, None)):
        return NotApplicable("NATIVE-CELL", f"its lengths are {type_name(lengths.dtype)}, or have another rank than 1")
    return None


def _has_variable_weights(inputs: Mapping[str, ir.Value], narrow: Container[str]) -> NotApplicable | None:
    for name in _WEIGHTS:
        value = inputs.get(name)
        if value is not None and name not in narrow and not is_constant(value):
            return NotApplicable("NATIVE-WEIGHTS", f"{name} '{value.name}' is not constant")
    return None


def _is_slower(view: RecurrentNode, narrow: Container[str]) -> NotApplicable | None:
    widest, units = MOST_HIDDEN_FASTER[view.kind], -view.hidden % _UNITS
    batch = dim_of(view.x, 1)
    if "R" in narrow and (not isinstance(batch, int) or batch <= _MOST_NARROW_BATCH):
        return None
    if view.hidden > widest:
        return NotApplicable("NATIVE-COST", f"its hidden size {view.hidden} is above {widest}")
    if view.kind == "LSTM" and view.hidden > _NARROW and units > _MOST_WASTE * view.hidden:
        return NotApplicable("NATIVE-COST", f"the kernel would compute {units} units beside the {view.hidden} of its hidden size")
    return None


def _replace_by_call(
    view: RecurrentNode,
    inputs: Mapping[str, ir.Value],
    narrow: Mapping[str, NarrowWeight],
    outputs: Mapping[str, ir.Value],
    ctx: Context,
) -> None:
    """Replace the node by a call of a function with copies of the node and of those that widen weights."""
    old = view.node
    arguments = {**inputs, **{name: weight.constant for name, weight in narrow.items()}}
    arguments |= {f"{name}_scale": weight.scale for name, weight in narrow.items() if weight.scale is not None}
    parameters = {name: new_parameter(value, ctx) for name, value in arguments.items()}
    results = {name: ir.Value(name=ctx.names.fresh(value.name or name)) for name, value in outputs.items()}
    nodes: list[ir.Node] = []
    wide = {name: _widened(weight, parameters, name, nodes, ctx) for name, weight in narrow.items()}
    function_inputs = [wide.get(name, parameters.get(name)) for name in INPUTS[: len(old.inputs)]]
    function_outputs = [results.get(name) or ir.Value(name="") for name in OUTPUTS[: len(old.outputs)]]
    name, attributes = ctx.names.fresh(view.kind), list(old.attributes.values())
    nodes.append(ir.Node("", view.kind, function_inputs, attributes, outputs=function_outputs, name=name))
    overload = free_overload(ctx.model, CELL_OPERATOR)
    function = make_function(CELL_OPERATOR, overload, list(parameters.values()), list(results.values()), nodes, ctx)
    call_outputs = [ir.Value(name=ctx.names.fresh(value.name or name), type=value.type) for name, value in outputs.items()]
    plan = ir.AttrString("plan", _encode_plan(view, list(arguments), list(outputs)))
    call = ir.Node(DOMAIN, CELL_OPERATOR, list(arguments.values()), [plan], overload=overload, outputs=call_outputs, name=old.name)
    replace_node(old, call, list(zip(outputs.values(), call_outputs, strict=True)), ctx.names)
    add_function(ctx.model, function)


def _widened(weight: NarrowWeight, parameters: Mapping[str, ir.Value], name: str, nodes: list[ir.Node], ctx: Context) -> ir.Value:
    """Append copies of the nodes that widen a weight to ``nodes``. Return the float32 weight."""
    value = parameters[name]
    for node in weight.nodes:
        operands = [value] if node.op_type == "Cast" else [value, parameters[f"{name}_scale"]]
        value = ir.Value(name=ctx.names.fresh(node.outputs[0].name or name))
        label = ctx.names.fresh(node.op_type)
        nodes.append(ir.Node("", node.op_type, operands, list(node.attributes.values()), outputs=[value], name=label))
    return value


def _has_kernel(function: Function) -> bool:
    """Return True if the library has a kernel for the activation."""
    return function.name in _USES


def _encode_plan(view: RecurrentNode, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """Return the text for the attribute ``plan``, which describes the recurrent node to the library.

    ``inputs``, ``outputs``: the names, in the ONNX specification, of the inputs and outputs that the new node has.
    """
    flags = view.linear_before_reset | view.input_forget << 1
    head = (_MAGIC, _KINDS.index(view.kind), view.hidden, _DIRECTIONS[view.reverse], flags)
    ports = [sum(1 << names.index(name) for name in present) for names, present in ((INPUTS, inputs), (OUTPUTS, outputs))]
    words = struct.pack("<7if", *head, *ports, math.inf if view.clip is None else view.clip)
    for direction in range(2):
        functions = view.functions[direction] if direction < len(view.functions) else ()
        for each in (*functions, *[Function("Tanh")] * (_MOST_FUNCTIONS - len(functions))):
            words += struct.pack("<i2f", _USES.index(each.name), each.alpha, each.beta)
    return base64.b64encode(words).decode("ascii")


RULE = Rule("native-cell", "native", "recurrent node", check, use="asked")
