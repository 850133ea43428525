"""Einsum of two operands as one product: letters of both and the result are batches, letters of both alone are summed over.

bij,bkj->bik   [b, i, j] @ [b, j, k]
"""

from collections.abc import Callable, Sequence

from rewrites.native.call import Call
from rewrites.native.translators.products import product
from rewrites.native.translators.rows import in_order, merged
from rewrites.native.views import View, dense

__all__ = ["EINSUM"]


def _einsum(call: Call) -> Sequence[View]:
    one, other, result = _letters(call)
    a, b = call.views
    sizes = dict(zip(one + other, a.shape + b.shape, strict=True))
    if [sizes[letter] for letter in one + other] != [*a.shape, *b.shape]:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {a.shape} and {b.shape} do not fit its equation")
    batch = [letter for letter in result if letter in one and letter in other]
    left = [letter for letter in result if letter in one and letter not in other]
    right = [letter for letter in result if letter in other and letter not in one]
    inner = [letter for letter in one if letter in other and letter not in result]
    matrix = merged(call.body, in_order(a, [one.index(letter) for letter in (*batch, *left, *inner)]), len(batch), len(left))
    weights = merged(call.body, in_order(b, [other.index(letter) for letter in (*batch, *inner, *right)]), len(batch), len(inner))
    made = product(call, matrix, weights)
    order = [*batch, *left, *right]
    whole = View(made.buffer, tuple(sizes[letter] for letter in order), dense([sizes[letter] for letter in order]))
    return [in_order(whole, [order.index(letter) for letter in result])]


def _letters(call: Call) -> tuple[str, str, str]:
    """Return the letters of both operands and of the result; refuses what is no single product."""
    equation = call.node.attributes.get_string("equation", "") or ""
    operands, arrow, result = equation.replace(" ", "").partition("->")
    parts = operands.split(",")
    if not arrow or len(parts) != 2 or "." in equation or len(call.node.inputs) != 2:
        raise call.refuse("NATIVE-FORM", f"'{equation}' is no sum over two operands, written out")
    one, other = parts
    plain = all(len(set(part)) == len(part) == len(view.shape) for part, view in zip(parts, call.views, strict=True))
    alone = (set(one) ^ set(other)) - set(result)
    if not plain or len(set(result)) < len(result) or not set(result) <= set(operands) or alone:
        raise call.refuse("NATIVE-FORM", f"'{equation}' repeats a letter, or sums over one of a single operand")
    return one, other, result


EINSUM: dict[str, Callable[[Call], Sequence[View]]] = {"Einsum": _einsum}
