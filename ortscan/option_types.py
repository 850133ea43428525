"""The options of the verbs as types, for whoever checks types: what each may be, and what comes back."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

import onnx

__all__ = [
    "Differing",
    "ExplainOptions",
    "Level",
    "MigrateOptions",
    "OpsetName",
    "OpsetTarget",
    "OptimizeOptions",
    "ProtoLike",
    "TargetName",
]

ProtoLike = str | os.PathLike[str] | bytes | onnx.ModelProto
"""A model for which a ModelProto comes back."""

TargetName = Literal["onnx", "cpu", "cuda", "tensorrt", "directml", "webgpu", "coreml", "nnapi", "qnn", "openvino"]
OpsetName = Literal["auto", "keep"]
OpsetTarget = Literal["auto", "latest"]
Level = Literal["quick", "full"]
Differing = Literal["raise", "keep"]


class _Rewriting(TypedDict, total=False):
    target: TargetName
    opset: int | OpsetName
    shapes: Mapping[str, Sequence[int | None]] | None
    dims: Mapping[str, int] | None
    fix_shapes: Mapping[str, Sequence[int | None]] | None
    fix_dims: Mapping[str, int] | None
    fix_inputs: Mapping[str, Any] | None
    freeze: bool | Iterable[str]
    max_unroll: int | None
    memory_budget: int
    costs: str | os.PathLike[str] | Mapping[str, float] | None
    fast_math: bool
    custom_ops: bool
    native: bool
    runtime: str | None
    passes: Iterable[str] | None
    skip: Iterable[str]


class OptimizeOptions(_Rewriting, total=False):
    """The options of ``optimize``."""

    verify: bool | Level
    on_difference: Differing
    time_limit: float | None
    memory_limit: int | None
    output: str | os.PathLike[str] | None


class ExplainOptions(_Rewriting, total=False):
    """The options of ``explain`` beside its own: those of ``optimize``, of which some mean nothing here, and ``progress``."""

    verify: bool | Level
    on_difference: Differing
    output: str | os.PathLike[str] | None
    debug: bool
    progress: Callable[[int, int], None] | None
    stop_after: int | None


class MigrateOptions(TypedDict, total=False):
    """The options of ``migrate``."""

    runtime: str | None
    verify: bool | Level
    time_limit: float | None
    memory_limit: int | None
    output: str | os.PathLike[str] | None
