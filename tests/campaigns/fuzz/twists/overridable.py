"""Initializers that may be fed: listed among the inputs too. Some are fed, with numbers of their own."""

from onnx import helper, numpy_helper

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.world import World

__all__ = ["make_overridable"]


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
