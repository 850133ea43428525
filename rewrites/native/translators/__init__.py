"""How each operator is written in steps of a plan: from its type to a function that returns the views of its outputs.

An operator is translated exactly or not at all: what has no translator, or is refused by it, refuses the loop.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.native.body import Body
from rewrites.native.operator_views import Translator, TranslatorCall
from rewrites.native.translators.indexing import INDEXING
from rewrites.native.translators.movement import MOVEMENT, SHAPES
from rewrites.native.translators.pointwise import POINTWISE
from rewrites.native.translators.products import PRODUCTS
from rewrites.native.translators.quantization import QUANTIZATION
from rewrites.native.translators.reductions import REDUCTIONS
from rewrites.native.views import View

__all__ = ["TRANSLATORS", "translate"]

TRANSLATORS: dict[str, Translator] = {**MOVEMENT, **INDEXING, **POINTWISE, **PRODUCTS, **QUANTIZATION, **REDUCTIONS, **SHAPES}


def translate(node: ir.Node, body: Body) -> Sequence[View]:
    """Add the steps of a node to the body and return the views of its outputs; raises Refused."""
    call = TranslatorCall(node, body)
    translator = TRANSLATORS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if translator is None:
        domain = f"{node.domain}." if node.domain else ""
        raise call.refuse("NATIVE-OPERATOR", f"{domain}{node.op_type} is no operator that loop plans have")
    return translator(call)
