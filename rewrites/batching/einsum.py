"""Einsum: the axis of the steps gets a new letter in the equation.

``ij,jk->ik`` -> ``aij,jk->aik`` if only the first operand is batched. ``a`` is the new letter.

Works around ORT-EINSUM-OF-NOTHING.
"""

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters

import onnx_ir as ir

from rewrites.batching.call import Call, Result
from rewrites.batching.dims import static_steps
from rewrites.batching.table import rule
from rewrites.ops.versions import count_up, gather

__all__ = ["einsum"]


@rule("Einsum")
def einsum(call: Call) -> Sequence[Result]:
    """Emit the Einsum with a new letter for the steps in its equation.

    The letter is inserted at the start of the result's term, and of the term of each batched operand.
    """
    call.require_steps("onnxruntime's Einsum crashes on an empty operand")
    equation = call.node.attributes.get_string("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    letter = next((letter for letter in ascii_letters if letter not in equation), None)
    if letter is None:
        raise call.refuse("NO-BATCHING-RULE", "the equation uses all letters")
    terms = left.split(",")
    if len(terms) != len(call.operands):
        raise call.refuse("MALFORMED", f"the equation {equation!r} does not match {len(call.operands)} operands")
    result = right if arrow else _implied_result(left)
    marked = [letter + term if call.batched(index) else term for index, term in enumerate(terms)]
    values = call.values
    batched = [index for index in range(len(terms)) if call.batched(index)]
    if len(batched) > 1 and not static_steps(call):
        values[batched[0]] = _failing_without_steps(call, batched[0])
    return call.emit(values, equation=f"{','.join(marked)}->{letter}{result}")


def _failing_without_steps(call: Call, index: int) -> ir.Value:
    """Return operand ``index``, passed through a Gather that fails if there are no steps.

    An Einsum of no steps would crash onnxruntime. If the Gather fails, onnxruntime reports an error instead.
    """
    b, value = call.build, call.operand(index).value
    nothing = gather(b, count_up(b, call.steps), b.const([0]), 0)
    checked = b.op("Reshape", value, b.op("Add", b.op("Shape", value), nothing))
    checked.shape = value.shape
    return checked


def _implied_result(left: str) -> str:
    counts = Counter(character for character in left if character.isalpha())
    return ("..." if "..." in left else "") + "".join(sorted(character for character, count in counts.items() if count == 1))
