"""Element by element, with numpy's broadcasting.

``f(x, y)`` -> ``f(x', y')`` where a batched operand of fewer axes than another operand gets axes of size 1 after the steps.
"""

from collections.abc import Sequence

from rewrites.batching.alignment import aligned, expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule

__all__ = ["broadcasting", "fast_gelu", "parametric_relu", "unary"]


@rule(
    *(
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "BitwiseNot",
        "Ceil",
        "Celu",
        "Cos",
        "Cosh",
        "Det",
        "Elu",
        "Erf",
        "Exp",
    ),
    *("Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not"),
    *(
        "Reciprocal",
        "RegexFullMatch",
        "Relu",
        "Round",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Swish",
    ),
    *("Tan", "Tanh", "ThresholdedRelu"),
)
@rule("BitCast", "Cast")
@rule("Gelu", "QuickGelu", domain="com.microsoft")
def unary(call: Call) -> Sequence[Result]:
    """One operand: nothing to align, no rank needed."""
    return call.like(call.values)


@rule(
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "StringConcat", "Sub", "Sum", "Where", "Xor"),
)
def broadcasting(call: Call) -> Sequence[Result]:
    """Any number of operands that broadcast to each other."""
    return call.like(aligned(call))


@rule("PRelu")
def parametric_relu(call: Call) -> Sequence[Result]:
    """The slope broadcasts to the data and not the other way round, so the data must have the steps."""
    if not call.batched(0):
        return call.like([expanded(call, 0), aligned(call)[1]])
    return call.like(aligned(call))


@rule("BiasGelu", "FastGelu", domain="com.microsoft")
def fast_gelu(call: Call) -> Sequence[Result]:
    """The bias is a vector along the last axis, so it must be loop-invariant."""
    call.same_each_step(1)
    return call.like(call.values)
