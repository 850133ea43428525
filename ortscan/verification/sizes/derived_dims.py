"""Free dimensions that are computed from others, as exporters write them: ``2*T``, ``s0 + 1``, ``(L - 1)//2``.

A name counts as arithmetic only where every name in it is itself the whole name of a dimension; ``batch-size`` beside neither
``batch`` nor ``size`` is just a name.
"""

import ast
from collections.abc import Iterable, Mapping

__all__ = ["derived_dims", "derived_size"]

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


def derived_dims(names: Iterable[str]) -> set[str]:
    """Those of ``names`` that are arithmetic over others of ``names``."""
    names = set(names)
    return {name for name in names if _is_derived(name, names)}


def derived_size(name: str, sizes: Mapping[str, int]) -> int:
    """The size of a derived dimension; never less than 0."""
    tree = _parsed(name)
    return 0 if tree is None else max(0, _value(tree, sizes))


def _is_derived(name: str, names: set[str]) -> bool:
    tree = _parsed(name)
    if tree is None or isinstance(tree, ast.Name | ast.Constant):
        return False
    inner = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return bool(inner) and inner <= names and _is_arithmetic(tree)


def _parsed(name: str) -> ast.expr | None:
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_arithmetic(tree: ast.expr) -> bool:
    match tree:
        case ast.Name():
            return True
        case ast.Constant(value=int()):
            return True
        case ast.BinOp(left=left, op=op, right=right):
            divides = isinstance(op, ast.FloorDiv) and not (isinstance(right, ast.Constant) and right.value)
            return isinstance(op, _OPERATORS) and not divides and _is_arithmetic(left) and _is_arithmetic(right)
    return False


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    match tree:
        case ast.Name(id=name):
            return sizes[name]
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _value(left, sizes), _value(right, sizes)
            match op:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult():
                    return one * other
            return one // other
    raise AssertionError(f"not arithmetic: {ast.dump(tree)}")
