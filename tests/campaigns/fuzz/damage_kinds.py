"""Kinds of damage: each changes a serialised model in one place, drawn by a generator of random numbers."""

import random
from collections.abc import Callable, Iterator

import onnx

__all__ = ["DAMAGES", "damaged", "graphs_in"]

_A = onnx.AttributeProto
_NUMBERS = (-(1 << 63), -(1 << 31), -3, -2, -1, 0, 1, 2, 3, 5, 7, 1 << 16, 1 << 31, 1 << 40, (1 << 63) - 1)
_ODD_NAMES = ("", "x", "y", "a\nb", "\0", "é\u202e", "n" * 5000, "a/b:0", " ", "__proto__", "0")
_OPERATORS = ("Add", "Identity", "Scan", "Loop", "If", "LSTM", "GRU", "Reshape", "Gather", "Concat", "Slice", "Split", "MatMul",
              "Cast", "Constant", "Squeeze", "Where", "SequenceInsert", "TopK", "Nothing", "Shape", "Pad")  # fmt: skip


def damaged(base: bytes, draw: random.Random) -> bytes:
    """Return ``base`` damaged in one to four places; most results can be parsed."""
    if draw.random() < 0.08:
        return _bytes_changed(base, draw)
    proto = onnx.ModelProto.FromString(base)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        draw.choice(DAMAGES)(proto, draw)
    return bytes(proto.SerializeToString())


def _bytes_changed(base: bytes, draw: random.Random) -> bytes:
    content = bytearray(base)
    if draw.random() < 0.3:
        del content[draw.randrange(len(content)) :]
    for _ in range(draw.choice((0, 1, 1, 2, 5))):
        if content:
            content[draw.randrange(len(content))] = draw.choice((0, 255, draw.randrange(256)))
    return bytes(content)


def graphs_in(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and those nested in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.type == _A.GRAPH else attribute.graphs:
                yield from graphs_in(inner)


def _graph(proto: onnx.ModelProto, draw: random.Random) -> onnx.GraphProto | onnx.FunctionProto:
    found: list[onnx.GraphProto | onnx.FunctionProto] = [*graphs_in(proto.graph)] * 2 + [*proto.functions]
    return draw.choice(found)


def _node(proto: onnx.ModelProto, draw: random.Random) -> onnx.NodeProto:
    nodes = [node for graph in graphs_in(proto.graph) for node in graph.node]
    nodes += [node for function in proto.functions for node in function.node]
    loops = [node for node in nodes if node.op_type in ("Scan", "Loop", "If", "LSTM", "GRU", "RNN")]
    return draw.choice(loops if loops and draw.random() < 0.4 else nodes) if nodes else onnx.NodeProto()


def _attribute(proto: onnx.ModelProto, draw: random.Random) -> onnx.AttributeProto:
    node = next((node for _ in range(8) if (node := _node(proto, draw)).attribute), None)
    return draw.choice(node.attribute) if node is not None else onnx.AttributeProto()


def _tensor(proto: onnx.ModelProto, draw: random.Random) -> onnx.TensorProto:
    found = [tensor for graph in graphs_in(proto.graph) for tensor in graph.initializer]
    nodes = [node for graph in graphs_in(proto.graph) for node in graph.node]
    found += [attribute.t for node in nodes for attribute in node.attribute if attribute.type == _A.TENSOR]
    return draw.choice(found) if found else onnx.TensorProto()


def _info(proto: onnx.ModelProto, draw: random.Random) -> onnx.ValueInfoProto:
    found = [info for graph in graphs_in(proto.graph) for infos in (graph.input, graph.output, graph.value_info) for info in infos]
    return draw.choice(found) if found else onnx.ValueInfoProto()


def _kind_of_attribute(proto: onnx.ModelProto, draw: random.Random) -> None:
    attribute = _attribute(proto, draw)
    name = attribute.name
    attribute.Clear()
    attribute.CopyFrom(
        draw.choice(
            (
                onnx.helper.make_attribute(name, draw.choice(_NUMBERS)),
                onnx.helper.make_attribute(name, 0.5),
                onnx.helper.make_attribute(name, "text"),
                onnx.helper.make_attribute(name, [1, 2]),
                onnx.helper.make_attribute(name, [0.5]),
                onnx.helper.make_attribute(name, ["a", "b"]),
                onnx.helper.make_tensor_value_info(name, 1, [1]) and onnx.AttributeProto(name=name, type=_A.GRAPH),
                onnx.AttributeProto(name=name, type=_A.TENSOR),
                onnx.AttributeProto(name=name, type=_A.INTS),
                onnx.AttributeProto(name=name, type=_A.TYPE_PROTO),
                onnx.AttributeProto(name=name, type=_A.INT, ref_attr_name="alpha"),
                onnx.AttributeProto(name=name),
            )
        )
    )


def _value_of_attribute(proto: onnx.ModelProto, draw: random.Random) -> None:
    attribute = _attribute(proto, draw)
    if attribute.type == _A.INT:
        attribute.i = draw.choice(_NUMBERS)
    elif attribute.type == _A.INTS:
        change = draw.randrange(3)
        if change == 0:
            attribute.ints.append(draw.choice(_NUMBERS))
        elif attribute.ints:
            place = draw.randrange(len(attribute.ints))
            if change == 1:
                del attribute.ints[place]
            else:
                attribute.ints[place] = draw.choice(_NUMBERS)
    elif attribute.type == _A.FLOAT:
        attribute.f = draw.choice((float("nan"), float("inf"), -1.0, 0.0, 1e38))
    elif attribute.type == _A.STRING:
        attribute.s = draw.choice((b"", b"\xff\xfe", b"nothing", b"reverse", b"n" * 3000))
    elif attribute.type == _A.STRINGS:
        attribute.strings.append(draw.choice((b"", b"\xff", b"Tanh", b"Nothing")))


def _attribute_gone(proto: onnx.ModelProto, draw: random.Random) -> None:
    node = _node(proto, draw)
    if node.attribute:
        del node.attribute[draw.randrange(len(node.attribute))]


def _attribute_more(proto: onnx.ModelProto, draw: random.Random) -> None:
    node, other = _node(proto, draw), _attribute(proto, draw)
    if other.name:
        node.attribute.append(onnx.AttributeProto.FromString(other.SerializeToString()))


def _operand(proto: onnx.ModelProto, draw: random.Random) -> None:
    node = _node(proto, draw)
    names = draw.choice((node.input, node.output))
    change = draw.randrange(5)
    if change == 0:
        names.append(draw.choice([*_ODD_NAMES, *names]))
    elif names:
        place = draw.randrange(len(names))
        if change == 1:
            del names[place]
        elif change == 2:
            names[place] = draw.choice(_ODD_NAMES)
        elif change == 3:
            other = _node(proto, draw)
            names[place] = draw.choice([*other.input, *other.output, ""])
        else:
            names.append(names[place])


def _inputs_and_outputs(proto: onnx.ModelProto, draw: random.Random) -> None:
    graph = _graph(proto, draw)
    infos = draw.choice((graph.input, graph.output))
    change = draw.randrange(4)
    if not infos:
        return
    place = draw.randrange(len(infos))
    if change == 0:
        del infos[place]
    elif change == 1:
        infos.append(infos[place])
    elif isinstance(graph, onnx.FunctionProto):
        infos[place] = draw.choice(_ODD_NAMES)
    elif change == 2:
        infos[place].name = draw.choice(_ODD_NAMES)
    else:
        one, other = infos[place], infos[draw.randrange(len(infos))]
        one.name, other.name = other.name, one.name


def _type(proto: onnx.ModelProto, draw: random.Random) -> None:
    info = _info(proto, draw)
    change = draw.randrange(7)
    if change == 0:
        info.type.tensor_type.elem_type = draw.choice((0, 2, 7, 8, 9, 10, 11, 14, 16, 17, 22, 28, 77, 2**31 - 1, -1))
    elif change == 1:
        info.ClearField("type")
    elif change == 2:
        info.type.tensor_type.shape.dim.add(dim_value=draw.choice(_NUMBERS))
    elif change == 3 and info.type.tensor_type.shape.dim:
        dims = info.type.tensor_type.shape.dim
        dims[draw.randrange(len(dims))].dim_value = draw.choice(_NUMBERS)
    elif change == 4 and info.type.tensor_type.shape.dim:
        dims = info.type.tensor_type.shape.dim
        if draw.random() < 0.5:
            del dims[draw.randrange(len(dims))]
        else:
            dims[draw.randrange(len(dims))].dim_param = draw.choice(_ODD_NAMES)
    elif change == 5:
        kind = info.type
        for _ in range(draw.choice((1, 2, 10, 20))):
            inner = onnx.TypeProto()
            inner.sequence_type.elem_type.CopyFrom(kind)
            kind = inner
        info.type.CopyFrom(kind)
    else:
        inner = onnx.TypeProto()
        inner.CopyFrom(info.type)
        draw.choice((info.type.optional_type.elem_type, info.type.map_type.value_type)).CopyFrom(inner)


def _data(proto: onnx.ModelProto, draw: random.Random) -> None:
    tensor = _tensor(proto, draw)
    change = draw.randrange(7)
    if change == 0:
        tensor.raw_data = tensor.raw_data[: draw.randrange(len(tensor.raw_data) + 1)]
    elif change == 1:
        tensor.dims.append(draw.choice(_NUMBERS))
    elif change == 2 and tensor.dims:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(_NUMBERS)
    elif change == 3:
        tensor.data_type = draw.choice((0, 1, 2, 6, 7, 8, 9, 10, 11, 16, 21, 22, 23, 27, 77, 2**31 - 1))
    elif change == 4:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (
            ("location", draw.choice(("w", "../w", "/etc/passwd", "", "\0"))),
            ("offset", "-1"),
            ("length", "9" * 25),
        ):
            if draw.random() < 0.6:
                tensor.external_data.add(key=key, value=value)
    elif change == 5:
        tensor.name = draw.choice(_ODD_NAMES)
    elif tensor.raw_data:
        content = bytearray(tensor.raw_data)
        content[draw.randrange(len(content))] = draw.choice((0, 255, 128, 127))
        tensor.raw_data = bytes(content)
    elif tensor.int64_data:
        tensor.int64_data[draw.randrange(len(tensor.int64_data))] = draw.choice(_NUMBERS)


def _graphs_swapped(proto: onnx.ModelProto, draw: random.Random) -> None:
    found = list(graphs_in(proto.graph))
    one, other = draw.choice(found[-3:]), draw.choice(found)
    one.CopyFrom(onnx.GraphProto.FromString(other.SerializeToString()))


def _imports(proto: onnx.ModelProto, draw: random.Random) -> None:
    entries = [*proto.opset_import, *(entry for function in proto.functions for entry in function.opset_import)]
    if not entries:
        return
    entry = draw.choice(entries)
    change = draw.randrange(4)
    if change == 0:
        entry.version = draw.choice((*range(1, 30), *_NUMBERS))
    elif change == 1:
        entry.domain = draw.choice(("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "nowhere"))
    elif change == 2:
        proto.ir_version = draw.choice((*range(1, 16), 1 << 40))
    elif proto.opset_import:
        del proto.opset_import[draw.randrange(len(proto.opset_import))]


def _nodes(proto: onnx.ModelProto, draw: random.Random) -> None:
    graph = _graph(proto, draw)
    if not graph.node:
        return
    place, change = draw.randrange(len(graph.node)), draw.randrange(6)
    if change == 0:
        graph.node.append(onnx.NodeProto.FromString(graph.node[place].SerializeToString()))
    elif change == 1:
        del graph.node[place]
    elif change == 2:
        graph.node[place].op_type = draw.choice(_OPERATORS)
    elif change == 3:
        graph.node[place].domain = draw.choice(("com.microsoft", "local", "ai.onnx", "nowhere", "ai.onnx.ml"))
    elif change == 4:
        node = graph.node[place]
        if node.input and node.output:
            node.input[draw.randrange(len(node.input))] = draw.choice([*graph.node[-1].output, *node.output])
    else:
        graph.node[place].name = draw.choice(_ODD_NAMES)
        graph.name = draw.choice(_ODD_NAMES)


def _functions(proto: onnx.ModelProto, draw: random.Random) -> None:
    if not proto.functions:
        return
    function, change = draw.choice(proto.functions), draw.randrange(4)
    if change == 0:
        function.node.add(op_type=function.name, domain=function.domain, input=list(function.input), output=["again"])
    elif change == 1:
        proto.functions.append(onnx.FunctionProto.FromString(function.SerializeToString()))
    elif change == 2:
        function.name = draw.choice((*_ODD_NAMES, "Scan", "Add"))
    else:
        del function.opset_import[:]


def _extras(proto: onnx.ModelProto, draw: random.Random) -> None:
    change = draw.randrange(4)
    if change == 0:
        proto.graph.sparse_initializer.add().values.name = "s"
    elif change == 1:
        proto.training_info.add()
    elif change == 2:
        proto.metadata_props.add(
            key=draw.choice((*_ODD_NAMES, "ortscan.python_ops", "onnxruntime.x")), value=draw.choice(_ODD_NAMES)
        )
    else:
        proto.graph.quantization_annotation.add(tensor_name=draw.choice(_ODD_NAMES))


DAMAGES: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    _kind_of_attribute,
    _value_of_attribute,
    _value_of_attribute,
    _attribute_gone,
    _attribute_more,
    _operand,
    _operand,
    _inputs_and_outputs,
    _type,
    _type,
    _data,
    _data,
    _graphs_swapped,
    _imports,
    _nodes,
    _nodes,
    _functions,
    _extras,
)
