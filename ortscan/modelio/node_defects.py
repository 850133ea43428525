"""What is wrong with a node for its operator's schema: attributes of another kind, too few or too many operands, no such operator.

Operators of domains that onnx does not know but the model imports, and calls of the model's own functions, may be anything. An
operator that only onnxruntime knows is taken as it is.

Works round ONNX-SPLIT-OUTPUTS.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from rewrites.base.plain_text import quoted
from rewrites.loops.checks import label

__all__ = ["defect_of_node"]

_DOMAINS = ("", "ai.onnx.ml")
_KINDS = {getattr(onnx.defs.OpSchema.AttrType, kind.name): kind for kind in ir.AttributeType if kind.value}


@dataclass(frozen=True)
class _Form:
    """What a schema asks of a node: ``kinds`` by attribute, and ``given``: which inputs and outputs cannot be left out."""

    kinds: Mapping[str, ir.AttributeType]
    required: tuple[str, ...]
    inputs: range
    outputs: range
    given: tuple[tuple[int, ...], tuple[int, ...]]


def defect_of_node(node: ir.Node, opsets: Mapping[str, int], *, in_function: bool) -> str | None:
    """Say what is wrong with ``node``, in a sentence without an end, or None. ``opsets``: the imports of the model or function."""
    form = _form(node.op_type, node.domain, opsets.get(node.domain, -1))
    if form is None:
        if node.domain in opsets or _since_in_onnxruntime(node.op_type, node.domain) is not None:
            return None
        return f"{node.op_type} {label(node)} is of the domain {quoted(node.domain)}, which is not imported"
    if isinstance(form, str):
        return f"{node.op_type} {label(node)} {form}"
    for what, have, allowed in (("inputs", len(node.inputs), form.inputs), ("outputs", len(node.outputs), form.outputs)):
        if have not in allowed:
            return f"{node.op_type} {label(node)} has {have} {what}, but takes {_span(allowed)}"
    if any(place < len(node.inputs) and node.inputs[place] is None for place in form.given[0]):
        return f"{node.op_type} {label(node)} leaves an input out that it cannot do without"
    if any(place < len(node.outputs) and not node.outputs[place].name for place in form.given[1]):
        return f"{node.op_type} {label(node)} leaves an output without a name"
    for name, attribute in node.attributes.items():
        kind = form.kinds.get(name)
        if kind is None:
            return f"{node.op_type} {label(node)} has an attribute {name!r}, which its operator does not know"
        if attribute.type != kind:
            return f"{node.op_type} {label(node)}: {name} is of the kind {attribute.type.name}, but must be {kind.name}"
        if not in_function and attribute.is_ref():
            return f"{node.op_type} {label(node)}: {name} refers to an attribute of a function, but is in none"
    missing = next((name for name in form.required if name not in node.attributes), None)
    if missing is not None:
        return f"{node.op_type} {label(node)}: {missing} is missing"
    parts = node.attributes.get("num_outputs")
    if node.op_type == "Split" and parts is not None and not parts.is_ref() and parts.as_int() != len(node.outputs):
        # onnx's inference ends the process over fewer, and takes all memory for many more
        return f"Split {label(node)} has {len(node.outputs)} outputs, but num_outputs is {parts.as_int()}"
    return None


def _span(allowed: range) -> str:
    least, most = allowed.start, allowed.stop - 1
    if least == most:
        return str(least)
    return f"at least {least}" if most >= (1 << 31) - 1 else f"{least} to {most}"


@functools.lru_cache(4096)
def _form(op_type: str, domain: str, version: int) -> _Form | str | None:
    """Return what the operator asks of its nodes; words where there is no such operator; None where that is not known."""
    if domain not in _DOMAINS:
        return None
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        since = _since_in_onnxruntime(op_type, domain)
        known = version > onnx.defs.onnx_opset_version() or (since is not None and since <= version)
        return None if known else f"is of no operator that opset {version} of {domain or 'onnx'} has"
    kinds = {name: _KINDS[attribute.type] for one in _with_older(schema) for name, attribute in one.attributes.items()}
    required = tuple(name for name, attribute in schema.attributes.items() if attribute.required)
    return _Form(
        kinds,
        required,
        range(schema.min_input, schema.max_input + 1),
        range(schema.min_output, schema.max_output + 1),
        (_singles(schema.inputs), _singles(schema.outputs)),
    )


def _with_older(schema: onnx.defs.OpSchema) -> list[onnx.defs.OpSchema]:
    """Return the versions of an operator up to this one, oldest first: a rule may take an attribute away that is no more."""
    found = [schema]
    while found[0].since_version > 1:
        try:
            found.insert(0, onnx.defs.get_schema(schema.name, found[0].since_version - 1, schema.domain))
        except onnx.defs.SchemaError:
            break
    return found


def _singles(parameters: Sequence[onnx.defs.OpSchema.FormalParameter]) -> tuple[int, ...]:
    option = onnx.defs.OpSchema.FormalParameterOption.Single
    return tuple(place for place, parameter in enumerate(parameters) if parameter.option == option)


@functools.cache
def _since_in_onnxruntime(op_type: str, domain: str) -> int | None:
    """Return since which version onnxruntime has an operator; not all are in onnx's own sets."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    schemas = native.get_all_operator_schema()
    return min((schema.since_version for schema in schemas if (schema.name, schema.domain) == (op_type, domain)), default=None)
