"""Translates casts. A Cast to float16 or bfloat16 becomes an operation that rounds floats."""

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from rewrites.graph.type_names import type_name
from rewrites.native.operations import BOOL, FLOAT, NUMPY, Op
from rewrites.native.operator_views import Translator, TranslatorCall
from rewrites.native.views import View

__all__ = ["CASTS"]


def _cast(call: TranslatorCall) -> Sequence[View]:
    return _as_type(call, call.node.attributes.get_int("to", 0))


_ROUNDED = {int(ir.DataType.FLOAT16): Op.TO_FLOAT16, int(ir.DataType.BFLOAT16): Op.TO_BFLOAT16}
"""Operations that round floats. Only a Cast back to float reads the result."""


def _cast_like(call: TranslatorCall) -> Sequence[View]:
    return _as_type(call, call.view(1).dtype)


def _as_type(call: TranslatorCall, to: int) -> Sequence[View]:
    x = call.view(0)
    if to in _ROUNDED:
        rounded = call.body.elementwise(_ROUNDED[to], replace(call.body.as_type(x, FLOAT), truth=False))
        return [replace(rounded, narrow=to)]
    if to not in NUMPY:
        raise call.refuse("NATIVE-TYPE", f"it casts to {type_name(to)}")
    if to != BOOL:
        return [replace(call.body.as_type(x, to), truth=False)]
    if x.truth:
        return [x]
    none = call.body.elementwise(Op.EQUAL, x, call.body.number(0, x.dtype), truth=True)
    return [call.body.elementwise(Op.NOT, none, truth=True)]


CASTS: dict[str, Translator] = {"Cast": _cast, "CastLike": _cast_like}
