"""A pair of models, and how their texts are put together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from tests.support.text import model_from_text

__all__ = ["Pair", "faulty", "pair", "with_weights"]


@dataclass(frozen=True)
class Pair:
    """Two models; where they differ and that is out of reach, ``untried`` is what a summary has to say of it."""

    name: str
    before: onnx.ModelProto
    after: onnx.ModelProto
    untried: str | None = None


def pair(name: str, before: str, after: str, opset: int = 18, untried: str | None = None) -> Pair:
    return Pair(name, model_from_text(before, opset), model_from_text(after, opset), untried)


def faulty(name: str, interface: str, core: str, condition: str, amount: float = 1.0, opset: int = 18) -> Pair:
    """A pair whose result ``y`` is ``y0`` of ``core``, and in the wrong one more by ``amount`` wherever ``condition`` (``c``) is so."""
    kind = "double" if "=> (double" in interface else "float16" if "=> (float16" in interface else "float"
    number = {"float": 1, "double": 11, "float16": 10}[kind]
    constant = f"k0 = Constant <value = float {{{amount}}}> () k = Cast <to = {number}> (k0)"
    fault = f"{condition} f0 = Cast <to = {number}> (c) {constant} f = Mul(f0, k) y = Add(y0, f)"
    return pair(name, f"g {interface} {{ {core} y = Identity(y0) }}", f"g {interface} {{ {core} {fault} }}", opset)


def with_weights(model: onnx.ModelProto, weights: Mapping[str, np.ndarray], overridable: bool = False) -> onnx.ModelProto:
    """The model with initializers in the place of inputs, or beside them."""
    for name, array in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    if not overridable:
        kept = [value for value in model.graph.input if value.name not in weights]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    return model
