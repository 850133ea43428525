"""Has a translator for each operator type.

A translator is a function that adds the steps of a node to the body, and returns the views of the node's outputs. A translation is
exact. If an operator has no translator, or if the translator refuses the node, the loop has no plan.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.native.body import Body
from rewrites.native.operator_views import Translator, TranslatorCall
from rewrites.native.translators.casts import CASTS
from rewrites.native.translators.indexing import INDEXING
from rewrites.native.translators.movement import MOVEMENT, SHAPES
from rewrites.native.translators.pointwise import POINTWISE
from rewrites.native.translators.products import PRODUCTS
from rewrites.native.translators.quantization import QUANTIZATION
from rewrites.native.translators.recurrence import RECURRENCE
from rewrites.native.translators.reductions import REDUCTIONS
from rewrites.native.views import View

__all__ = ["TRANSLATORS", "translate"]

TRANSLATORS: dict[str, Translator] = {
    **MOVEMENT,
    **CASTS,
    **INDEXING,
    **POINTWISE,
    **PRODUCTS,
    **QUANTIZATION,
    **RECURRENCE,
    **REDUCTIONS,
    **SHAPES,
}


def translate(node: ir.Node, body: Body) -> Sequence[View]:
    """Add the steps of ``node`` to ``body``, and return the views of its outputs.

    Raise PlanRefused if ``node`` has no translation.
    """
    call = TranslatorCall(node, body)
    translator = TRANSLATORS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if translator is None:
        domain = f"{node.domain}." if node.domain else ""
        raise call.refuse("NATIVE-OPERATOR", f"{domain}{node.op_type} is not supported by loop plans")
    return translator(call)
