"""RNN, GRU and LSTM cells as exporters write them, whole or with one thing off."""

from collections.abc import Sequence

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import concat, elementwise, linear, slice_, split
from tests.campaigns.fuzz.values import Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["elman", "gru", "lstm", "masked_cell", "packed_lstm", "two_layers"]


def _start(world: World) -> str | float:
    return world.choose(["source", "source", "zeros"])


def _sigmoid(s: Scope, x: Val) -> Val:
    if s.world.chance(0.1):
        one = s.real(1.0, x.dtype)
        return elementwise(s, "Div", one, elementwise(s, "Add", one, elementwise(s, "Exp", elementwise(s, "Neg", x))))
    return elementwise(s, "HardSigmoid" if s.world.chance(0.05) and s.runs("HardSigmoid", x.dtype) else "Sigmoid", x)


def _squash(s: Scope, x: Val) -> Val:
    op = s.world.choose(["Tanh", "Tanh", "Tanh", "Relu", "Sigmoid", "Softsign", "LeakyRelu", "Elu"])
    return elementwise(s, op if s.runs(op, x.dtype) else "Tanh", x)


def _gates(s: Scope, x: Val, h: Val, count: int) -> list[Val]:
    """The pre-activations of ``count`` gates: two products or one, split or apart."""
    width = int(h.shape[-1])
    if s.world.chance(0.25):
        return [elementwise(s, "Add", linear(s, x, width), linear(s, h, width, s.world.chance(0.5))) for _ in range(count)]
    if s.world.chance(0.3):
        whole = linear(s, concat(s, [x, h], -1), count * width)
    else:
        whole = elementwise(s, "Add", linear(s, x, count * width), linear(s, h, count * width, s.world.chance(0.5)))
    return split(s, whole, [width] * count, -1)


def _elman_step(s: Scope, x: Val, h: Val) -> Val:
    return _squash(s, _gates(s, x, h, 1)[0])


def _gru_step(s: Scope, x: Val, h: Val) -> Val:
    width, world = int(h.shape[-1]), s.world
    if world.chance(0.5):
        z, r = (_sigmoid(s, gate) for gate in _gates(s, x, h, 2))
        inner = linear(s, elementwise(s, "Mul", r, h), width)
        n = elementwise(s, "Tanh", elementwise(s, "Add", linear(s, x, width), inner))
    else:
        xs, hs = split(s, linear(s, x, 3 * width), [width] * 3, -1), split(s, linear(s, h, 3 * width), [width] * 3, -1)
        r = _sigmoid(s, elementwise(s, "Add", xs[0], hs[0]))
        z = _sigmoid(s, elementwise(s, "Add", xs[1], hs[1]))
        n = elementwise(s, "Tanh", elementwise(s, "Add", xs[2], elementwise(s, "Mul", r, hs[2])))
    if world.chance(0.4):
        return elementwise(s, "Add", n, elementwise(s, "Mul", z, elementwise(s, "Sub", h, n)))
    rest = elementwise(s, "Sub", s.real(1.0, h.dtype), z)
    parts = [elementwise(s, "Mul", rest, n), elementwise(s, "Mul", z, h)]
    return elementwise(s, "Add", *(parts if world.chance(0.5) else parts[::-1]))


def _lstm_step(s: Scope, x: Val, h: Val, c: Val) -> tuple[Val, Val]:
    i, f, g, o = _gates(s, x, h, 4)
    if s.world.chance(0.15):
        f = elementwise(s, "Add", f, s.real(1.0, f.dtype))
    kept = elementwise(s, "Mul", _sigmoid(s, f), c)
    new = elementwise(s, "Add", kept, elementwise(s, "Mul", _sigmoid(s, i), _squash(s, g)))
    if s.world.chance(0.1):
        return elementwise(s, "Mul", _sigmoid(s, o), _squash(s, elementwise(s, "Mul", new, new))), new
    return elementwise(s, "Mul", _sigmoid(s, o), elementwise(s, "Tanh", new)), new


def elman(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    hidden, wide = world.width(), world.width()
    state, stream = State(world.real, (*lead, hidden), _start(world)), Stream(world.real, (*lead, wide))

    def step(s: Scope, states: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        h = _elman_step(s, slices[0], states[0])
        return [h], [h]

    return Recurrence("elman", [state], [stream], step)


def gru(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    hidden, wide = world.width(), world.width()
    state, stream = State(world.real, (*lead, hidden), _start(world)), Stream(world.real, (*lead, wide))

    def step(s: Scope, states: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        h = _gru_step(s, slices[0], states[0])
        return [h], [h]

    return Recurrence("gru", [state], [stream], step)


def lstm(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    hidden, wide = world.width(), world.width()
    states = [State(world.real, (*lead, hidden), _start(world)) for _ in range(2)]

    def step(s: Scope, states: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        h, c = _lstm_step(s, slices[0], *states)
        return [h, c], [h, c] if s.world.chance(0.2) else [h]

    return Recurrence("lstm", states, [Stream(world.real, (*lead, wide))], step)


def packed_lstm(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """Both states of an LSTM in one."""
    hidden, wide = world.width(), world.width()

    def step(s: Scope, states: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        parts = [slice_(s, states[0], 0, hidden, -1), slice_(s, states[0], hidden, 2 * hidden, -1)]
        h, c = _lstm_step(s, slices[0], *parts)
        return [concat(s, [h, c], -1)], [h]

    state = State(world.real, (*lead, 2 * hidden), _start(world))
    return Recurrence("packed lstm", [state], [Stream(world.real, (*lead, wide))], step)


def two_layers(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    hidden = world.width()
    states = [State(world.real, (*lead, hidden), _start(world)) for _ in range(2)]

    def step(s: Scope, states: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        cells = [s.world.choose([_elman_step, _gru_step]) for _ in range(2)]
        first = cells[0](s, slices[0], states[0])
        second = cells[1](s, first if s.world.chance(0.8) else slices[0], states[1])
        return [first, second], [second]

    return Recurrence("two layers", states, [Stream(world.real, (*lead, world.width()))], step)


def masked_cell(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A cell whose rows keep their states where a mask says so."""
    hidden = world.width()
    spelling = world.choose(["where", "where", "product"])
    mask = Stream("bool", (*lead, 1) if lead or world.chance(0.5) else (1,), "mask")

    def step(s: Scope, states: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        x, m = slices
        h = s.world.choose([_elman_step, _gru_step])(s, x, states[0])
        if spelling == "where" and s.runs("Where", h.dtype):
            kept = elementwise(s, "Where", m, h, states[0], dtype=h.dtype)
            out = elementwise(s, "Where", m, h, s.real(0.0, h.dtype), dtype=h.dtype) if s.world.chance(0.4) else kept
            return [kept], [out]
        from tests.campaigns.fuzz.spelt import cast

        number = cast(s, m, h.dtype)
        rest = elementwise(s, "Sub", s.real(1.0, h.dtype), number)
        kept = elementwise(s, "Add", elementwise(s, "Mul", number, h), elementwise(s, "Mul", rest, states[0]))
        return [kept], [kept]

    return Recurrence(
        "masked cell", [State(world.real, (*lead, hidden), _start(world))], [Stream(world.real, (*lead, world.width())), mask], step
    )
