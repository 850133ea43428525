"""Accept the programs that ``torch.onnx.export`` returns wherever a model is accepted.

    program = ortscan.optimize(torch.onnx.export(module, inputs, dynamo=True))

A program holds an onnx_ir Model in ``model``. This module does not import torch, so it recognises a program by its attributes.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import onnx_ir as ir

__all__ = ["ExportedProgram", "accepting_programs"]

_W = TypeVar("_W", bound=Callable[..., Any])


class ExportedProgram(Protocol):
    """What ortscan needs of ``torch.onnx.ONNXProgram``.

    Attributes:
        model: the exported model.
        exported_program: the traced torch program.
    """

    model: ir.Model
    exported_program: Any


def accepting_programs(work: _W) -> _W:
    """Make ``work(model, …)`` accept programs as models.

    If the first argument is a program and ``work`` returns an onnx_ir Model, alone or first in a tuple, a new program with this
    model takes its place. No program is changed.
    """

    @functools.wraps(work)
    def unwrapping(*positional: Any, **options: Any) -> Any:
        first = positional[0] if positional else options.get("model")
        models = [argument.model if _is_program(argument) else argument for argument in positional]
        named = {name: value.model if _is_program(value) else value for name, value in options.items()}
        result = work(*models, **named)
        return _wrapped(result, first) if _is_program(first) else result

    return unwrapping  # type: ignore[return-value]


def _is_program(argument: Any) -> bool:
    return hasattr(argument, "exported_program") and isinstance(getattr(argument, "model", None), ir.Model)


def _wrapped(result: Any, program: Any) -> Any:
    if isinstance(result, ir.Model):
        return type(program)(result, program.exported_program)
    if isinstance(result, tuple):
        return (_wrapped(result[0], program), *result[1:])
    return result
