"""Why a Loop was not made a Scan, after which all other rewrites apply."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "LOOP-CONDITION",
        "The condition that ends the Loop is computed in its body.",
        "How many steps it takes is known only while it runs, so the steps cannot be done together. A condition that only counts "
        "steps, compared with what is known before the loop, would have become a trip count; this one depends on more, or counts "
        "in numbers too coarse for it. If it can never be false, export the model with a constant true condition.",
    ),
    Code(
        "LOOP-EMPTY",
        "The Loop has no step at all.",
        "A Scan must have at least one step on onnxruntime, so a Loop with none cannot become one. It costs next to nothing.",
    ),
    Code(
        "LOOP-OPSET",
        "The model's opset is too old to have the Scan a Loop could become.",
        "Scan without a batch axis came with opset 9. Convert the model to opset 9 or later first.",
    ),
    Code(
        "LOOP-OUT-OF-RANGE",
        "The Loop reads rows that its source does not have.",
        "A value from outside is read at the number of the step, but has fewer rows than there are steps. The Loop fails, or "
        "wraps round, at run time; that behaviour is left as it is.",
    ),
    Code(
        "LOOP-SEQUENCE",
        "The Loop carries a sequence or an optional.",
        "The states and results of a Scan are tensors. Results that are collected in a sequence can often be exported as a scan "
        "output instead.",
    ),
    Code(
        "LOOP-STATE-SHAPE",
        "A state of the Loop may change its shape from step to step.",
        "A Scan's states keep their shape. Either the shape does change (a growing tensor, say), or too little is declared to "
        "prove that it does not: declaring the shapes of the model's inputs may help.",
    ),
    Code(
        "LOOP-TRIP-COUNT",
        "The Loop has no trip count, and its condition never turns false.",
        "It would run for ever, so the model is hardly meant as it stands. A trip count, or a condition that ends the loop, makes "
        "it one that can be rewritten.",
    ),
)
