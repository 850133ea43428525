"""Find the features of a rewritten model that an older onnxruntime does not have."""

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from ortscan.ort.runtimes import Runtime
from rewrites.base.vetoes import Lacking
from rewrites.graph.walk import all_nodes
from rewrites.loops.parts import label

__all__ = ["fit_versions", "lacking"]

_ML = "ai.onnx.ml"
_OVERLOADS = 10
"""The IR version that introduced overloads of functions."""

_WITHOUT = {("Constant", ""), ("Constant", "ai.onnx")}
"""Operators that need no kernel, because onnxruntime turns a Constant into an initializer."""
_CHECKED = ("", "ai.onnx", _ML, "com.microsoft")


def lacking(model: ir.Model, runtime: Runtime, before: ir.Model) -> Lacking | None:
    """Return the first feature that ``model`` needs and ``runtime`` does not have, or None.

    A missing kernel does not count if ``before``, the original model, needs it too.
    """
    if model.opset_imports.get("", 1) > runtime.opset:
        return Lacking(f"{runtime} runs opset {runtime.opset} at most, not {model.opset_imports['']}")
    if model.opset_imports.get(_ML, 1) > runtime.ml:
        return Lacking(f"{runtime} knows {_ML} up to version {runtime.ml}, not {model.opset_imports[_ML]}")
    if runtime.ir_version < _OVERLOADS and any(overload for _, _, overload in model.functions):
        return Lacking(f"{runtime} knows no overloads of functions")
    old = {what for what, _ in _missing(before, runtime)}
    return next(
        (Lacking(f"{runtime} has no kernel for {where}: {what}") for what, where in _missing(model, runtime) if what not in old),
        None,
    )


def _missing(model: ir.Model, runtime: Runtime) -> Iterator[tuple[str, str]]:
    """Yield (operator with its types, location) for each node for which ``runtime`` has no kernel."""
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        imports = graph.opset_imports if isinstance(graph, ir.Function) else model.opset_imports
        for node in all_nodes(graph):
            is_kernel = node.domain in _CHECKED and node.op_identifier() not in model.functions
            if is_kernel and (node.op_type, node.domain) not in _WITHOUT:
                domain = "" if node.domain == "ai.onnx" else node.domain
                what = _missing_kernel(node, domain, imports.get(domain, 1), runtime)
                if what is not None:
                    yield what, f"{node.op_type} {label(node)}"


def _missing_kernel(node: ir.Node, domain: str, version: int, runtime: Runtime) -> str | None:
    try:
        schema = onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        first = next((_type(value) for value in node.inputs if value is not None), None)
        types = {"T": first} if first is not None else {}
        return None if runtime.has_kernel(domain, node.op_type, 1, types) else _operator_text(domain, node.op_type, types)
    if schema.has_function or schema.has_context_dependent_function:  # type: ignore[attr-defined]
        return None  # onnxruntime can replace the node by the nodes of the operator's function
    types = _types(node, schema)
    return (
        None
        if runtime.has_kernel(domain, node.op_type, schema.since_version, types)
        else _operator_text(domain, node.op_type, types)
    )


def _types(node: ir.Node, schema: onnx.defs.OpSchema) -> dict[str, str]:
    """Return the type of each type variable of ``schema`` for this node, as far as types are known.

    For an Add of floats, the result is ``{"T": "tensor(float)"}``. Variadic inputs and outputs that may have different types are
    skipped.
    """
    types: dict[str, str] = {}
    for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        for position, value in enumerate(values):
            formal = formals[min(position, len(formals) - 1)]
            is_mixed = formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic and not formal.is_homogeneous
            known = _type(value) if value is not None and not is_mixed else None
            if known is not None:
                types.setdefault(formal.type_str, known)
    return types


def _type(value: ir.Value) -> str | None:
    if value.type is None:
        return None
    declared = onnx.TypeProto()
    ir.serde.serialize_type_into(declared, value.type)
    return _type_text(declared)


def _type_text(declared: onnx.TypeProto) -> str | None:
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({onnx.helper.tensor_dtype_to_string(declared.tensor_type.elem_type).removeprefix('TensorProto.').lower()})"
    if kind in ("sequence_type", "optional_type"):
        inner = _type_text(getattr(declared, kind).elem_type)
        return None if inner is None else f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    return None


def _operator_text(domain: str, op_type: str, types: dict[str, str]) -> str:
    return f"{f'{domain}::' if domain else ''}{op_type} of {', '.join(sorted(set(types.values()))) or 'any type'}"


def fit_versions(model: ir.Model, runtime: Runtime) -> list[str]:
    """Lower the IR version of ``model`` if it is too new for ``runtime``. Return messages on the changes.

    The imported version of the domain ai.onnx.ml is lowered too, if it is too new and the model has no node of this domain.
    """
    messages = []
    if model.ir_version > runtime.ir_version:
        messages.append(f"lowered from IR version {model.ir_version} to {runtime.ir_version}, the newest of {runtime}")
        model.ir_version = runtime.ir_version
    version = model.opset_imports.get(_ML, 1)
    if version > runtime.ml and all(node.domain != _ML for node in all_nodes(model.graph)):
        messages.append(f"lowered the unused {_ML} from version {version} to {runtime.ml}")
        model.opset_imports[_ML] = runtime.ml
    return messages
