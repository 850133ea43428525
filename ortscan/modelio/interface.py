"""The public interface of a model as originally declared: its inputs, outputs and header.

Works around ONNX-NEGATIVE-SIZE.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import has_negative_sizes, write_negative_sizes_as_free
from ortscan.modelio.protos import holds_map
from rewrites.base.errors import InvariantBroken
from rewrites.graph.dims import forgotten

__all__ = ["Interface", "contradicts", "lacks_declared_sizes", "without_negative_sizes"]

_HEADER = ("producer_name", "producer_version", "domain", "model_version", "doc_string")


@dataclass(frozen=True)
class Interface:
    """A snapshot of the interface of a model. It shares no objects with the model.

    An initializer that is also a graph input is in ``inputs``, and its tensor is in ``defaults``.
    """

    inputs: tuple[onnx.ValueInfoProto, ...]
    outputs: tuple[onnx.ValueInfoProto, ...]
    header: onnx.ModelProto = field(repr=False)
    defaults: Mapping[str, ir.TensorProtocol | None] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, model: ir.Model, proto: onnx.ModelProto | None = None) -> "Interface":
        """Return the interface of ``model``.

        If ``model`` was read from ``proto``, the declarations of ``proto`` are used.
        """
        declared = proto if proto is not None else _interface_proto(model)
        listed = {value.name for value in model.graph.inputs}
        header = onnx.ModelProto(**{key: getattr(declared, key) for key in _HEADER if declared.HasField(key)})
        header.metadata_props.extend(declared.metadata_props)
        header.graph.name, header.graph.doc_string = declared.graph.name, declared.graph.doc_string
        header.graph.metadata_props.extend(declared.graph.metadata_props)
        return cls(
            tuple(_copy(info) for info in declared.graph.input if info.name in listed),
            tuple(_copy(info) for info in declared.graph.output),
            header,
            {name: value.const_value for name, value in model.graph.initializers.items() if value.is_graph_input()},
        )

    def without(self, names: Collection[str]) -> "Interface":
        """Return the interface without some inputs."""
        inputs = tuple(info for info in self.inputs if info.name not in names)
        defaults = {name: tensor for name, tensor in self.defaults.items() if name not in names}
        return Interface(inputs, self.outputs, self.header, defaults)

    def with_current_types(self, model: ir.Model) -> "Interface":
        """Return an interface whose inputs and outputs have the current types and shapes in ``model``."""
        now = _interface_proto(model).graph
        return Interface(_redeclared(self.inputs, now.input), _redeclared(self.outputs, now.output), self.header, self.defaults)

    def with_outputs(self, infos: Mapping[str, onnx.ValueInfoProto]) -> "Interface":
        """Return the interface in which outputs have the types and shapes in ``infos``, by name."""
        return Interface(self.inputs, _redeclared(self.outputs, infos.values()), self.header, self.defaults)

    def with_negative_sizes_free(self) -> "Interface":
        """Return the interface with free sizes instead of negative sizes.

        onnxruntime reads negative sizes as free sizes.
        """
        if not any(has_negative_sizes(info.type) for info in (*self.inputs, *self.outputs)):
            return self
        inputs, outputs = (tuple(map(_copy, infos)) for infos in (self.inputs, self.outputs))
        for info in (*inputs, *outputs):
            write_negative_sizes_as_free(info.type)
        return Interface(inputs, outputs, self.header, self.defaults)

    @property
    def output_shapes(self) -> dict[str, ir.Shape]:
        """The declared shapes of the outputs by name. A negative size is free."""
        shapes = {info.name: ir.serde.deserialize_type_proto_for_shape(info.type) for info in self.outputs}
        return {name: shape for name in shapes if (shape := without_negative_sizes(shapes[name])) is not None}

    def restore(self, model: ir.Model) -> None:
        """Restore declared types, shapes, doc strings, defaults and the header.

        Raises:
            InvariantBroken: the names or the order of inputs or outputs differ from the snapshot.
        """
        graph = model.graph
        public = {info.name for info in self.inputs}
        inputs = [value for value in graph.inputs if value.name in public or not value.is_initializer()]
        for what, values, infos in (("outputs", graph.outputs, self.outputs), ("inputs", inputs, self.inputs)):
            names, declared = [value.name for value in values], [info.name for info in infos]
            if names != declared:
                raise InvariantBroken(f"The {what} of the model were {declared} and have become {names}.")
            for value, info in zip(values, infos, strict=True):
                _declare(value, info)
        for value in inputs:
            default = self.defaults.get(value.name or "")
            if default is not None and not value.is_initializer():
                value.const_value = default
                graph.register_initializer(value)
        _put_header(model, self.header)

    def with_metadata(self, key: str, text: str) -> "Interface":
        """Return the interface with an entry in the model's metadata.

        The entry replaces an older entry with the same key.
        """
        header = onnx.ModelProto()
        header.CopyFrom(self.header)
        kept = [entry for entry in header.metadata_props if entry.key != key]
        del header.metadata_props[:]
        header.metadata_props.extend(kept)
        header.metadata_props.add(key=key, value=text)
        return Interface(self.inputs, self.outputs, header, self.defaults)

    def write_into(self, proto: onnx.ModelProto) -> None:
        """Replace inputs, outputs and header of the serialised model by the original declarations."""
        for infos, mine in ((proto.graph.input, self.inputs), (proto.graph.output, self.outputs)):
            declared = {info.name: info for info in mine}
            for info in infos:
                if info.name in declared:
                    info.CopyFrom(declared[info.name])
        for key in _HEADER:
            if self.header.HasField(key):
                setattr(proto, key, getattr(self.header, key))
        for now, then in ((proto, self.header), (proto.graph, self.header.graph)):
            del now.metadata_props[:]
            now.metadata_props.extend(then.metadata_props)


def _interface_proto(model: ir.Model) -> onnx.ModelProto:
    proto = onnx.ModelProto(ir_version=model.ir_version)
    for key in _HEADER:
        if getattr(model, key):
            setattr(proto, key, getattr(model, key))
    proto.graph.name, proto.graph.doc_string = model.graph.name or "", model.graph.doc_string or ""
    for entries, props in (
        (proto.metadata_props, model.metadata_props),
        (proto.graph.metadata_props, model.graph.metadata_props),
    ):
        for key, text in props.items():
            entries.add(key=key, value=text)
    proto.graph.input.extend(ir.serde.serialize_value(value) for value in model.graph.inputs)
    proto.graph.output.extend(ir.serde.serialize_value(value) for value in model.graph.outputs)
    return proto


def _copy(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    return copy


def _redeclared(infos: tuple[onnx.ValueInfoProto, ...], now: Iterable[onnx.ValueInfoProto]) -> tuple[onnx.ValueInfoProto, ...]:
    declared = {info.name: info for info in now}
    result = tuple(_copy(info) for info in infos)
    for info in result:
        if info.name in declared and declared[info.name].HasField("type"):
            info.type.CopyFrom(declared[info.name].type)
    return result


def contradicts(declared: onnx.ValueInfoProto, actual: onnx.ValueInfoProto | None) -> bool:
    """Return True if the shapes in ``declared`` and ``actual`` differ in rank or in a known size.

    A size is known if both shapes have a number for it. Return False if one of the shapes is unknown.
    """
    if actual is None or not all(info.type.tensor_type.HasField("shape") for info in (declared, actual)):
        return False
    was, now = declared.type.tensor_type.shape.dim, actual.type.tensor_type.shape.dim
    known = ((old, new) for old, new in zip(was, now, strict=False) if old.HasField("dim_value") and new.HasField("dim_value"))
    return len(was) != len(now) or any(old.dim_value != new.dim_value for old, new in known)


def lacks_declared_sizes(declared: onnx.ValueInfoProto, actual: onnx.ValueInfoProto) -> bool:
    """Return True if the size of an axis is a number in ``declared`` but not in ``actual``."""
    pairs = zip(declared.type.tensor_type.shape.dim, actual.type.tensor_type.shape.dim, strict=False)
    return any(was.HasField("dim_value") and not dim.HasField("dim_value") for was, dim in pairs)


def _declare(value: ir.Value, info: onnx.ValueInfoProto) -> None:
    value.doc_string = info.doc_string or None
    value.metadata_props.clear()
    value.metadata_props.update({entry.key: entry.value for entry in info.metadata_props})
    if holds_map(info.type):
        value.type = value.shape = None
    else:
        value.type = ir.serde.deserialize_type_proto_for_type(info.type)
        value.shape = without_negative_sizes(ir.serde.deserialize_type_proto_for_shape(info.type))


def without_negative_sizes(shape: ir.Shape | None) -> ir.Shape | None:
    """Return ``shape`` with unknown sizes instead of negative sizes.

    Some exporters write negative sizes for free dimensions.
    """
    return forgotten(shape, lambda dim: isinstance(dim, int) and dim < 0)


def _put_header(model: ir.Model, header: onnx.ModelProto) -> None:
    for key in _HEADER:
        setattr(model, key, getattr(header, key) if header.HasField(key) else None)
    model.graph.name = header.graph.name or None
    model.graph.doc_string = header.graph.doc_string or None
    for owner, entries in ((model, header.metadata_props), (model.graph, header.graph.metadata_props)):
        owner.metadata_props.clear()
        owner.metadata_props.update({entry.key: entry.value for entry in entries})
