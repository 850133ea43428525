"""Find the structural defects of a loaded model.

Each defect is reported as a sentence that names the problem and its location. A model that passes these checks has three
properties. The attributes of each node and its numbers of inputs and outputs fit the schema of its operator. No two values of a
graph have the same name. The sizes that a Scan and its body declare do not contradict each other, unless the Scan is in a function.

Three kinds of nodes are not compared with a schema: unknown operators in imported domains, onnxruntime's own operators, and calls
to the model's own functions.

Works around ONNX-SPLIT-OUTPUTS.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from ortscan.modelio.mending import is_undefined
from ortscan.modelio.protos import DEEPEST
from ortscan.modelio.slots import graphs_in
from rewrites.base.errors import UnsupportedModel
from rewrites.base.plain_text import quoted
from rewrites.graph.walk import node_graphs
from rewrites.loops import refuse_contradictions
from rewrites.loops.parts import label

__all__ = ["refuse_defects", "refuse_depth", "refuse_undefined_values"]

_DOMAINS = ("", "ai.onnx.ml")
_KINDS = {getattr(onnx.defs.OpSchema.AttrType, kind.name): kind for kind in ir.AttributeType if kind.value}


def refuse_depth(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel if graphs are nested so deep that no file can hold the model."""
    pending: list[tuple[ir.Graph | ir.Function, int]] = [(model.graph, 0)]
    pending += [(function, 0) for function in model.functions.values()]
    while pending:
        graph, depth = pending.pop()
        if depth > DEEPEST:
            raise UnsupportedModel(f"The graphs of {name} are nested more than {DEEPEST} deep, which no file can hold.")
        pending.extend((inner, depth + 1) for node in graph for inner in node_graphs(node))


def refuse_undefined_values(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel if an input of a node, an output of a graph, or an initializer is undefined.

    An initializer is undefined if it has no tensor.
    """
    for graph in graphs_in(model):
        for node in graph:
            for source in node.inputs:
                if source is not None and is_undefined(source):
                    raise UnsupportedModel(f"{name}: {node.op_type} {node.name!r} reads {source.name!r}, which is not defined.")
        for value in graph.outputs:
            if is_undefined(value):
                raise UnsupportedModel(f"{name}: output {value.name!r} of graph {graph.name!r} is not defined.")
        for value in graph.initializers.values():
            if value.const_value is None:
                raise UnsupportedModel(f"{name}: initializer {value.name!r} of graph {graph.name!r} has no tensor.")


def refuse_defects(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel or MalformedLoop if ``model`` is invalid.

    ``name`` is the name of the model in messages.

    Raises:
        UnsupportedModel: the model has no outputs, a node does not fit its operator, or two values of a graph have the same name.
        MalformedLoop: a Scan outside functions is malformed, or the sizes that it and its body declare contradict each other.
    """
    if not model.graph.outputs:
        raise UnsupportedModel(f"{name} has no outputs, so nothing in it is computed.")
    functions = {(domain, op_type) for domain, op_type, _ in model.functions}
    for body, opsets, in_function in [
        (model.graph, model.opset_imports, False),
        *((function.graph, function.opset_imports, True) for function in model.functions.values()),
    ]:
        _refuse_defects_in(body, opsets, in_function, functions, name)


def _refuse_defects_in(
    graph: ir.Graph, opsets: Mapping[str, int], in_function: bool, functions: set[tuple[str, str]], name: str
) -> None:
    names = {value.name for value in graph.inputs} | graph.initializers.keys()
    for node in graph:
        for value in node.outputs:
            if value.name and value.name in names:
                raise UnsupportedModel(f"{name}: two values of the graph {quoted(graph.name)} have the name {quoted(value.name)}.")
            names.add(value.name)
        if (node.domain, node.op_type) not in functions and (defect := _defect_of_node(node, opsets, in_function)):
            raise UnsupportedModel(f"{name} is not a valid model: {defect}.")
        for inner in node_graphs(node):
            _refuse_defects_in(inner, opsets, in_function, functions, name)
        if node.op_type == "Scan" and not in_function and node.domain == "":
            refuse_contradictions(node, opsets.get("", 1))


@dataclass(frozen=True)
class _Form:
    """What the schema of an operator requires of a node.

    Args:
        kinds: the type of each attribute by name. Attributes that only older versions of the operator have are included.
        required: the required attributes.
        inputs, outputs: the allowed numbers of inputs and outputs.
        needed_inputs, needed_outputs: the positions of the inputs and outputs that must not be omitted.
    """

    kinds: Mapping[str, ir.AttributeType]
    required: tuple[str, ...]
    inputs: range
    outputs: range
    needed_inputs: tuple[int, ...]
    needed_outputs: tuple[int, ...]


def _defect_of_node(node: ir.Node, opsets: Mapping[str, int], in_function: bool) -> str | None:
    """Return the defect of ``node`` as a sentence without a full stop, or None if it has no defect.

    Args:
        node: the node.
        opsets: the versions of the imported opsets by domain, for the model or function that contains ``node``.
        in_function: True if ``node`` is in a function, where an attribute may refer to an attribute of the function.
    """
    form = _form(node.op_type, node.domain, opsets.get(node.domain, -1))
    if form is None:
        if node.domain in opsets or _since_in_onnxruntime(node.op_type, node.domain) is not None:
            return None
        return f"{node.op_type} {label(node)} has the domain {quoted(node.domain)}, which is not imported"
    if isinstance(form, str):
        return f"{node.op_type} {label(node)} {form}"
    for what, have, allowed in (("inputs", len(node.inputs), form.inputs), ("outputs", len(node.outputs), form.outputs)):
        if have not in allowed:
            return f"{node.op_type} {label(node)} has {have} {what}, but takes {_span(allowed)}"
    if any(index < len(node.inputs) and node.inputs[index] is None for index in form.needed_inputs):
        return f"{node.op_type} {label(node)} omits a required input"
    if any(index < len(node.outputs) and not node.outputs[index].name for index in form.needed_outputs):
        return f"{node.op_type} {label(node)} has a required output without a name"
    for name, attribute in node.attributes.items():
        kind = form.kinds.get(name)
        if kind is None:
            return f"{node.op_type} {label(node)} has an attribute {name!r} that its operator does not have"
        if attribute.type != kind:
            return f"{node.op_type} {label(node)}: {name} has the type {attribute.type.name}, but must be {kind.name}"
        if not in_function and attribute.is_ref():
            return f"{node.op_type} {label(node)}: {name} refers to an attribute of a function, but is in no function"
    for name in form.required:
        if name not in node.attributes:
            return f"{node.op_type} {label(node)}: {name} is missing"
    parts = node.attributes.get("num_outputs")
    if node.op_type == "Split" and parts is not None and not parts.is_ref() and parts.as_int() != len(node.outputs):
        # onnx's inference crashes if there are fewer outputs, and exhausts the memory if there are many more
        return f"Split {label(node)} has {len(node.outputs)} outputs, but num_outputs is {parts.as_int()}"
    return None


def _span(allowed: range) -> str:
    least, most = allowed.start, allowed.stop - 1
    if least == most:
        return str(least)
    return f"at least {least}" if most >= (1 << 31) - 1 else f"{least} to {most}"


@functools.lru_cache(4096)
def _form(op_type: str, domain: str, version: int) -> _Form | str | None:
    """Return what version ``version`` of an opset requires of the nodes of an operator.

    If the opset lacks the operator, return this defect as a phrase to write after the name of a node. If onnx does not know the
    operator but onnxruntime may run it, return None.
    """
    if domain not in _DOMAINS:
        return None
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        since = _since_in_onnxruntime(op_type, domain)
        known = version > onnx.defs.onnx_opset_version() or (since is not None and since <= version)
        return None if known else f"is not an operator in opset {version} of {domain or 'onnx'}"
    kinds = {name: _KINDS[attribute.type] for version in _versions_up_to(schema) for name, attribute in version.attributes.items()}
    required = tuple(name for name, attribute in schema.attributes.items() if attribute.required)
    return _Form(
        kinds,
        required,
        range(schema.min_input, schema.max_input + 1),
        range(schema.min_output, schema.max_output + 1),
        _single_parameters(schema.inputs),
        _single_parameters(schema.outputs),
    )


def _versions_up_to(schema: onnx.defs.OpSchema) -> list[onnx.defs.OpSchema]:
    """Return all versions of an operator up to ``schema``, oldest first.

    Nodes may have the attributes of all these versions, because a rule may remove obsolete attributes later.
    """
    versions = [schema]
    while versions[0].since_version > 1:
        try:
            versions.insert(0, onnx.defs.get_schema(schema.name, versions[0].since_version - 1, schema.domain))
        except onnx.defs.SchemaError:
            break
    return versions


def _single_parameters(parameters: Sequence[onnx.defs.OpSchema.FormalParameter]) -> tuple[int, ...]:
    option = onnx.defs.OpSchema.FormalParameterOption.Single
    return tuple(index for index, parameter in enumerate(parameters) if parameter.option == option)


@functools.cache
def _since_in_onnxruntime(op_type: str, domain: str) -> int | None:
    """Return the first version of an operator in onnxruntime, which has more operators than onnx.

    Return None if onnxruntime does not have the operator.
    """
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    schemas = native.get_all_operator_schema()
    return min((schema.since_version for schema in schemas if (schema.name, schema.domain) == (op_type, domain)), default=None)
