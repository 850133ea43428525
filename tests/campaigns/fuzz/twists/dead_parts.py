"""Parts that nothing reads: nodes, initializers, whole copies of a loop, and stale notes of types."""

from onnx import ModelProto, NodeProto, helper

from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.world import World

__all__ = ["add_dead_parts"]


def add_dead_parts(model: ModelProto, world: World) -> None:
    kind = world.choose(["nodes", "nodes", "loop", "initializer", "notes"])
    world.feature(f"dead {kind}")
    if kind == "loop":
        _copy_a_loop(model, world)
    elif kind == "initializer":
        model.graph.initializer.append(helper.make_tensor(world.name("unread"), 1, [2], [1.0, 2.0]))
        if model.ir_version < 4:
            model.graph.input.append(helper.make_tensor_value_info(model.graph.initializer[-1].name, 1, [2]))
    elif kind == "notes":
        for graph in graphs_of(model):
            graph.doc_string = "drawn"
            for node in graph.node:
                node.doc_string, node.name = "a node", world.name("node/")
    else:
        for graph in graphs_of(model):
            names = [info.name for info in graph.input] + [name for node in graph.node for name in node.output if name]
            for _ in range(world.between(0, 2) if names else 0):
                graph.node.append(helper.make_node("Identity", [world.choose(names)], [world.name("dead")]))


def _copy_a_loop(model: ModelProto, world: World) -> None:
    loops = [node for node in model.graph.node if node.op_type in ("Scan", "Loop")]
    if not loops:
        return
    copy = NodeProto.FromString(world.choose(loops).SerializeToString())
    copy.output[:] = [world.name("dead") for _ in copy.output]
    model.graph.node.append(copy)
