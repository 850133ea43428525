"""How a Loop's body reads the element of its step.

Works around ORT-GATHER-STRINGS.
"""

from collections.abc import Callable

from tests.campaigns.fuzz.recurrence import Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spellings.counting import size_scalar
from tests.campaigns.fuzz.spelt import cast, gather, slice_, squeeze, unsqueeze
from tests.campaigns.fuzz.values import NARROW, Dim, Val

__all__ = ["Reader", "drawn_reader"]

Reader = Callable[[Scope, Val, Callable[[Val], Val], list[Val]], Val]
"""Given the body, the count of steps, and the means to carry a state more, read an element."""


def drawn_reader(outer: Scope, stream: Stream, time: Dim) -> Reader:
    world = outer.world
    kinds = ["gather", "gather", "gather", "gather", "slice", "vector", "clamped", "turned", "carried", "ahead", "second axis"]
    if world.opset >= 11:
        kinds += ["sequence", "nd"]
    kind = world.choose(kinds)
    plain = stream.dtype not in (*NARROW, "string")
    if not plain or (kind in ("slice", "clamped") and world.opset < 10):
        kind = "slice" if stream.dtype == "string" and world.opset >= 10 else "gather"
    if kind in ("ahead", "clamped") and world.opset < 12:
        kind = "gather"
    if kind == "nd" and not outer.runs("GatherND", stream.dtype):
        kind = "gather"
    at = 1 if kind == "second axis" and stream.dims else 0
    dims = (*stream.dims[:at], time, *stream.dims[at:])
    whole = outer.main.feed(stream.dtype, dims, stream.kind) if stream.kind != "any" else outer.source(stream.dtype, dims)
    if kind == "sequence":
        return _from_sequence(outer, whole, stream)
    last = outer.op("Sub", [size_scalar(outer, time), outer.int(1)], ()) if kind in ("turned", "ahead", "clamped") else None

    def read(body: Scope, count: Val, carry: Callable[[Val], Val], extra: list[Val]) -> Val:
        x = whole
        if kind == "carried":
            x = carry(whole)
            extra.append(body.op("Identity", [x], x.dims))
        index = _index(body, kind, cast(body, count, "int64"), last)
        if kind in ("slice", "clamped"):
            start = unsqueeze(body, index, 0)
            end = body.op("Add", [start, body.ints(1)], (1,))
            return squeeze(body, slice_(body, x, start, end, 0, length=1), 0)
        if kind == "vector":
            return squeeze(body, gather(body, x, unsqueeze(body, index, 0)), 0)
        if kind == "nd":
            return body.op("GatherND", [x, unsqueeze(body, index, 0)], stream.dims)
        return gather(body, x, index, at)

    return read


def _index(body: Scope, kind: str, count: Val, last: Val | None) -> Val:
    if kind == "turned":
        return body.op("Sub", [last, count], (), "int64")
    if kind == "ahead":
        return body.op("Min", [body.op("Add", [count, body.int(1)], ()), last], ())
    if kind == "clamped":
        negative = body.op("Less", [count, body.int(0)], (), "bool")
        other = body.op("Add", [count, body.op("Add", [last, body.int(1)], ())], (), "int64")
        count = body.op("Where", [negative, other, count], (), "int64")
        return body.op("Min", [body.op("Max", [count, body.int(0)], ()), last], ())
    return count


def _from_sequence(outer: Scope, whole: Val, stream: Stream) -> Reader:
    steps = outer.op("SplitToSequence", [whole], None, axis=0, keepdims=0)

    def read(body: Scope, count: Val, carry: Callable[[Val], Val], extra: list[Val]) -> Val:
        return body.op("SequenceAt", [steps, count], stream.dims)

    return read
