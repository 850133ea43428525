"""What a model declares, twisted: constants listed among a body's inputs, a wrong size of an output, constants that inputs override."""

from onnx import ModelProto, helper, numpy_helper

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.world import World

__all__ = ["MISDECLARED", "list_constants", "make_overridable", "misdeclare"]


def list_constants(model: ModelProto, world: World) -> None:
    for graph in graphs_of(model):
        for node in graph.node:
            if node.op_type not in ("Scan", "Loop"):
                continue
            body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
            listed = {info.name for info in body.input}
            infos = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in body.initializer if t.name not in listed]
            body.input.extend(infos)
            if infos:
                world.feature("constants among a body's inputs")


MISDECLARED = "output with a wrong size"
"""The feature of such a model."""


def misdeclare(model: ModelProto, world: World) -> None:
    dims = [
        dim for info in model.graph.output for dim in info.type.tensor_type.shape.dim if dim.HasField("dim_value") or dim.dim_param
    ]
    if dims:
        world.choose(dims).dim_value = world.choose([1, 2, 5, 7])
        world.feature(MISDECLARED)


def make_overridable(case: Case, world: World) -> None:
    graph = case.model.graph
    if case.model.ir_version < 4:
        return
    listed = {info.name for info in graph.input}
    fitting = [tensor for tensor in graph.initializer if tensor.name not in listed and tensor.data_type in (1, 6, 7, 9, 10, 11)]
    for tensor in world.dice.sample(fitting, min(len(fitting), world.between(1, 3))):
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        world.feature("overridable initializer")
        if tensor.data_type not in (1, 10, 11) or not world.chance(0.6):
            continue
        array = numpy_helper.to_array(tensor)
        case.feeds = [
            {**feeds, tensor.name: (array * 0.5 + 0.25).astype(array.dtype)} if k % 2 else feeds
            for k, feeds in enumerate(case.feeds)
        ]
