"""A recurrence as a Scan: batched in opset 8, with axes and directions from 9 on.

Works around ORT-SCAN-SHARED-OUTPUT.
"""

from collections.abc import Sequence
from typing import Any

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import filled
from tests.campaigns.fuzz.values import Dim, Val

__all__ = ["as_scan", "begun", "body_input"]


def begun(outer: Scope, state: State, dims: tuple[Dim, ...]) -> Val:
    """What a state begins with."""
    if state.start == "source":
        return outer.source(state.dtype, dims)
    number = 0.0 if state.start == "zeros" else float(state.start)
    return filled(outer, state.dtype, dims, number)


def body_input(body: Scope, dtype: str, dims: tuple[Dim, ...] | None, stem: str) -> Val:
    value = Val(body.world.name(stem), dtype, dims)
    body.pool.append(value)
    return value


def as_scan(outer: Scope, made: Recurrence, time: Dim, batch: Dim | None) -> list[Val]:
    """Final states and stacked results. ``batch`` is given for a Scan of opset 8, whose rows run on their own."""
    world = outer.world
    axes, directions = world.chance(0.25) and batch is None, world.chance(0.3)
    rows = () if batch is None else (batch,)
    starts = [begun(outer, state, (*rows, *state.dims)) for state in made.states]
    in_axes = [world.between(0, len(stream.dims)) if axes else 0 for stream in made.streams]
    scanned = [_scanned(outer, stream, time, rows, axis) for stream, axis in zip(made.streams, in_axes, strict=True)]
    body = outer.inner()
    own = [body_input(body, state.dtype, state.dims, "s") for state in made.states]
    slices = [body_input(body, stream.dtype, stream.dims, "e") for stream in made.streams]
    new, out = made.step(body, own, slices)
    outputs = own_nodes(body, [*new, *out])
    graph = body.graph(world.name("body"), [*own, *slices], outputs)
    attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": len(slices)}
    ways = [world.between(0, 1) if directions else 0 for _ in slices]
    finals = [value.of((*rows, *state.dims)) for value, state in zip(outputs, made.states, strict=False)]
    stacked = outputs[len(made.states) :]
    if batch is not None:
        attributes["directions"] = ways
        lengths = outer.main.feed("int64", (batch,), "lengths", time) if world.chance(0.4) else None
        world.feature("lengths" if lengths else "batched Scan")
        tall = [value.of((batch, time, *value.shape)) for value in stacked]
        results = outer.ops("Scan", [lengths, *starts, *scanned], [*finals, *tall], **attributes)
        return results
    out_axes = [world.between(0, value.rank) if axes else 0 for value in stacked]
    tall = [v.of((*v.shape[:a], time, *v.shape[a:])) for v, a in zip(stacked, out_axes, strict=True)]
    below = world.opset >= 11 and world.chance(0.3)
    attributes["scan_input_axes"] = [a - len(e.dims) - 1 if below else a for a, e in zip(in_axes, made.streams, strict=True)]
    attributes["scan_output_axes"] = [a - v.rank - 1 if below else a for a, v in zip(out_axes, stacked, strict=True)]
    attributes["scan_input_directions"] = ways
    same = world.choose([0, 1]) if directions else 0
    attributes["scan_output_directions"] = [world.choose([same, same, 1 - same]) if directions else 0 for _ in stacked]
    for name in [name for name, numbers in attributes.items() if isinstance(numbers, list)]:
        if not attributes[name] or (not any(attributes[name]) and world.chance(0.6)):
            del attributes[name]
    return outer.ops("Scan", [*starts, *scanned], [*finals, *tall], **attributes)


def _scanned(outer: Scope, stream: Stream, time: Dim, rows: tuple[Dim, ...], axis: int) -> Val:
    if rows:
        dims = (*rows, time, *stream.dims)
    else:
        dims = (*stream.dims[:axis], time, *stream.dims[axis:])
    return outer.main.feed(stream.dtype, dims, stream.kind) if stream.kind != "any" else outer.source(stream.dtype, dims)


def own_nodes(body: Scope, values: Sequence[Val]) -> list[Val]:
    """The values as body outputs that a Scan of onnxruntime computes right: each from a node of this body, none twice.

    Now and then they stay as they are, which is repaired for the comparison.
    """
    careless = body.world.chance(0.12)
    outputs: list[Val] = []
    local = {value.name for value in body.pool} | {node.output[0] for node in body.nodes}
    for given in values:
        value = given
        fine = value.name in body.produced and value.name not in [made.name for made in outputs]
        if not fine and careless and value.name in local:
            body.world.feature("aliased body output")
        elif not fine:
            value = body.op("Identity", [value], value.dims)
        outputs.append(value)
    return outputs
