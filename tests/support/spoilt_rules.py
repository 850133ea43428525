"""Make rules and functions fail on purpose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.rule import Patch

__all__ = ["Spoil", "constant", "failing", "put_after", "spoil"]


Spoil = Callable[[ir.Model], object]


def spoil(monkeypatch: pytest.MonkeyPatch, rule: Any, defect: Spoil) -> None:
    """Let each patch of `rule` also run `defect`."""
    real = rule.check

    def check(loop: Any, ctx: Any) -> Any:
        outcome = real(loop, ctx)
        if not isinstance(outcome, Patch):
            return outcome

        def edit() -> Any:
            made = outcome.edit()
            defect(ctx.model)
            return made

        return Patch(outcome.what, edit, outcome.notes)

    monkeypatch.setattr(rule.RULE, "check", check)


def put_after(model: ir.Model, name: str, *operators: tuple[Any, ...]) -> None:
    """Pass the output `name` through operators: each is a type, further inputs, and optionally a dict of attributes."""
    old = next(value for value in model.graph.outputs if value.name == name)
    place, value = list(model.graph.outputs).index(old), old
    for kind, *more in operators:
        attributes = more.pop() if more and isinstance(more[-1], dict) else {}
        node = ir.node(kind, [value, *more], attributes=attributes)
        model.graph.append(node)
        value = node.outputs[0]
    old.name, value.name = f"{name}_spoilt_{len(model.graph)}", name
    model.graph.outputs[place] = value


def constant(model: ir.Model, array: Any) -> ir.Value:
    """Add an initializer."""
    name = f"spoilt_{len(model.graph.initializers)}"
    value = ir.Value(name=name, const_value=ir.tensor(np.asarray(array), name=name))
    value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(np.asarray(array).shape)
    model.graph.register_initializer(value)
    return value


def failing(defect: BaseException | type[BaseException]) -> Callable[..., Any]:
    """Return a function that raises ``defect`` as if it were in a module of ortscan."""
    names: dict[str, Any] = {"__name__": "ortscan.broken", "defect": defect}
    exec("def fails(*_, **__):\n    raise defect", names)
    return names["fails"]
