"""An output that declares another size than it has, as exporters write it: onnxruntime warns and returns it as it is."""

from onnx import ModelProto

from tests.campaigns.fuzz.world import World

__all__ = ["MISDECLARED", "misdeclare"]

MISDECLARED = "output with a wrong size"
"""The feature of such a model."""


def misdeclare(model: ModelProto, world: World) -> None:
    dims = [
        dim for info in model.graph.output for dim in info.type.tensor_type.shape.dim if dim.HasField("dim_value") or dim.dim_param
    ]
    if dims:
        world.choose(dims).dim_value = world.choose([1, 2, 5, 7])
        world.feature(MISDECLARED)
