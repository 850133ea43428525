"""Initializers of a body that are listed among its inputs, as tf2onnx writes them: the loop passes values for the first inputs alone."""

from onnx import ModelProto, helper

from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.world import World

__all__ = ["list_constants"]


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
