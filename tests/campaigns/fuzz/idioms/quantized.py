"""Cells whose products are quantized: dynamically, by constant scales, or in their weights alone."""

from collections.abc import Sequence

import numpy as np

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, elementwise, matmul
from tests.campaigns.fuzz.values import Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["quantized_cell"]

Vals = Sequence[Val]


def quantized_cell(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """An Elman cell with quantized products; opsets without the operators have float products."""
    width = world.width()
    dims = (*lead, width)
    way = world.choose(["dynamic", "static", "weights"])

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        products = [_product(s, way, x, width) for x in (slices[0], states[0])]
        new = elementwise(s, "Tanh", elementwise(s, "Add", *products))
        return [new], [new]

    return Recurrence(f"cell quantized: {way}", [State("float32", dims)], [Stream("float32", dims)], step)


def _product(s: Scope, way: str, x: Val, width: int) -> Val:
    world = s.world
    signed = "int8" if way == "dynamic" or world.chance(0.5) else "uint8"
    levels = np.random.default_rng(world.dice.getrandbits(32)).integers(-60, 60, (width, width))
    zero = 0 if signed == "int8" else 128
    if world.opset < (11 if way == "dynamic" else 10):
        return matmul(s, x, s.const(levels * 0.02, "float32"))
    weight, scale, zero_point = s.const(levels + zero, signed), s.const(0.02, "float32"), s.const(zero, signed)
    if way == "dynamic":
        parts = [x.of(dtype="uint8"), x.of((), "float32"), x.of((), "uint8")]
        whole, step_size, shift = s.ops("DynamicQuantizeLinear", [x], parts)
        total = s.op("MatMulInteger", [whole, weight, shift, zero_point], (*x.shape[:-1], width), "int32")
        return elementwise(s, "Mul", cast(s, total, "float32"), elementwise(s, "Mul", step_size, scale))
    if way == "static":
        input_scale, input_zero = s.const(0.03, "float32"), s.const(128, "uint8")
        levels_of_x = s.op("QuantizeLinear", [x, input_scale, input_zero], x.dims, "uint8")
        x = s.op("DequantizeLinear", [levels_of_x, input_scale, input_zero], x.dims, "float32")
    return matmul(s, x, s.op("DequantizeLinear", [weight, scale, zero_point], weight.dims, "float32"))
