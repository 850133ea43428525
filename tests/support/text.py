"""Models as ONNX text, for tests that compare texts.

`normalised` prints the computation of a model without arbitrary names and order. So two models have the same text if they are
equal except for the names of inner values, the order of independent nodes, and derived facts. Its output is ONNX text again. To
correct an expectation, paste the printed text.
"""

import difflib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import onnx
import onnx_ir as ir
from onnx import GraphProto, ModelProto, NodeProto

from tests.support.numbers import assert_same_numbers
from tests.support.order import bodies_of, order_nodes
from tests.support.runtime import ort_run

__all__ = ["assert_same_numbers", "assert_text_equal", "model_from_text", "normalised", "ort_run", "parsed"]


def parsed(
    text: str, opset: int = 18, *, ir_version: int = 10, domains: str = "", weights: Mapping[str, np.ndarray] | None = None
) -> ModelProto:
    """Return the model in ``text``, unchecked, with ``weights`` as its initializers.

    A text without a header is a graph, optionally followed by functions, in this opset and IR version. ``domains`` adds other
    domains: ``, "my": 1``.
    """
    header = "" if text.lstrip().startswith("<") else f'<ir_version: {ir_version}, opset_import: ["": {opset}{domains}]>\n'
    model = onnx.parser.parse_model(header + text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items())
    return model


def model_from_text(
    text: str, opset: int = 18, *, ir_version: int = 10, check: bool = True, weights: Mapping[str, np.ndarray] | None = None
) -> ModelProto:
    """Return the model in ``text``, checked (`onnx.checker`, full) unless `check` is false."""
    model = parsed(text, opset, ir_version=ir_version, weights=weights)
    if check:
        onnx.checker.check_model(model, full_check=True)
    return model


def assert_text_equal(actual: ModelProto | ir.Model, expected_text: str, *, body_types: bool = False) -> None:
    """Assert that both have the same normalised text. If `expected_text` has no header, it gets that of `actual`."""
    printed = normalised(actual, body_types=body_types)
    if not expected_text.lstrip().startswith("<"):
        expected_text = printed[: printed.index(">\n") + 2] + expected_text
    expected = normalised(model_from_text(expected_text, check=False), body_types=body_types)
    diff = difflib.unified_diff(expected.splitlines(), printed.splitlines(), "expected", "actual", lineterm="", n=99)
    assert printed == expected, "\n".join(["the models differ:", *diff])


def normalised(model: ModelProto | ir.Model, *, body_types: bool = False) -> str:
    """Return ONNX text that shows only the computation and the interface of the model.

    Names of the main graph's inputs and outputs stay; other values, initializers and bodies are named by position. Nodes are in
    an order that the outputs determine, attributes in alphabetical order. Omitted are value_info, node names, documentation,
    metadata, producer, and the declared types of body inputs and outputs unless `body_types` is set.
    """
    proto = ir.to_proto(model) if isinstance(model, ir.Model) else model
    slim = ModelProto(ir_version=proto.ir_version)
    slim.opset_import.extend(sorted(proto.opset_import, key=lambda o: o.domain))
    slim.graph.CopyFrom(proto.graph)
    slim.graph.name = "main"
    _Renaming(slim.graph, body_types)
    for function in sorted(proto.functions, key=lambda f: (f.domain, f.name)):
        slim.functions.append(_normalised_function(function, body_types))
    return onnx.printer.to_text(slim) + "\n"


def _normalised_function(function: onnx.FunctionProto, body_types: bool) -> onnx.FunctionProto:
    graph = GraphProto(node=function.node)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    _Renaming(graph, body_types)
    slim = onnx.FunctionProto(name=function.name, domain=function.domain, input=function.input, output=function.output)
    slim.attribute.extend(function.attribute)
    slim.attribute_proto.extend(function.attribute_proto)
    slim.opset_import.extend(function.opset_import)
    slim.node.extend(graph.node)
    return slim


@dataclass
class _Scope:
    constants: set[str]
    names: dict[str, str] = field(default_factory=dict)


class _Renaming:
    """Name every value that is not public by its first occurrence, and remove derived facts."""

    def __init__(self, main: GraphProto, body_types: bool):
        self.body_types = body_types
        public = {info.name: info.name for info in [*main.input, *main.output]}
        self.fresh = {stem: _numbered(stem, public) for stem in ("v", "c", "body")}
        self.scopes: list[_Scope] = []
        self.rename_graph(main, public)

    def rename_graph(self, graph: GraphProto, known: dict[str, str]) -> None:
        order_nodes(graph)
        for derived in ("value_info", "doc_string", "metadata_props", "quantization_annotation"):
            graph.ClearField(derived)
        self.scopes.append(_Scope({t.name for t in graph.initializer} - set(known), known))
        for info in graph.input:
            info.name = self.defined(info.name)
        for node in graph.node:
            self.rename_node(node)
        for info in graph.output:
            info.name = self.used(info.name)
        for tensor in graph.initializer:
            tensor.name = self.used(tensor.name)
            tensor.doc_string = ""
        graph.initializer.sort(key=lambda t: (len(t.name), t.name))
        self.scopes.pop()

    def rename_node(self, node: NodeProto) -> None:
        for derived in ("name", "doc_string", "metadata_props"):
            node.ClearField(derived)
        node.attribute.sort(key=lambda a: a.name)
        node.input[:] = [self.used(name) for name in node.input]
        for attribute in node.attribute:
            attribute.doc_string = ""
            if attribute.HasField("t"):
                attribute.t.name = ""
        for body in bodies_of(node):
            body.name = next(self.fresh["body"])
            for info in [] if self.body_types else [*body.input, *body.output]:
                info.ClearField("type")
            self.rename_graph(body, {})
        node.output[:] = [self.defined(name) for name in node.output]

    def used(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.constants and name not in scope.names:
                scope.names[name] = next(self.fresh["c"])
            if name in scope.names:
                return scope.names[name]
        return name

    def defined(self, name: str) -> str:
        names = self.scopes[-1].names
        if name and name not in names:
            names[name] = next(self.fresh["v"])
        return names.get(name, "")


def _numbered(stem: str, taken: Container[str]) -> Iterator[str]:
    return (name for name in (f"{stem}{number}" for number in count()) if name not in taken)
