"""Why an operator in a body cannot be done for all steps at once."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "BATCHED-CONDITION",
        "A condition differs between steps, and a branch may fail where it is not wanted.",
        "Both branches would have to run in every step. That is done only where no operator in them can fail, whatever it is "
        "given: no look-ups, no division of integers, no sizes that are not known.",
    ),
    Code(
        "BATCHED-STRUCTURE",
        "Something that decides the shape of a result differs between steps.",
        "Shapes, axes, repeats and the like must be the same in every step for the steps to be done together.",
    ),
    Code(
        "BATCHED-WEIGHTS",
        "The operator is given weights that differ between steps.",
        "One operator has one set of weights (or windows, or scales), so steps with weights of their own cannot be done together, "
        "or only where the number of steps is known.",
    ),
    Code(
        "CONTROL-FLOW",
        "The body holds an If, a Loop or a Scan.",
        "Inner loops are rewritten first; this one, or a branch, is still there, and what depends on it stays in the outer loop. "
        "The report has an entry of its own for each inner loop.",
    ),
    Code(
        "DATA-DEPENDENT-SHAPE",
        "The shape of a result depends on values that differ between steps.",
        "NonZero, Unique and their like may give another number of elements in each step, so their results cannot be stacked.",
    ),
    Code(
        "EMPTY-STEPS",
        "The loop may have no step at all, and this operator cannot be done for no steps.",
        "With no steps a size in its result could not be told from the rest, and onnxruntime would refuse or guess.",
    ),
    Code(
        "MALFORMED",
        "A node in the body lacks an input that its operator requires, or contradicts itself.",
        "It is left as it is; onnxruntime will most likely refuse the model too.",
    ),
    Code(
        "NO-BATCHING-RULE",
        "No rule says how to do this operator, in this form, for all steps at once.",
        "It stays in the loop. So do all operators outside the standard domain. A newer opset helps where the detail says so.",
    ),
    Code(
        "PRECISION",
        "Doing the steps at once would round differently in 16 bits.",
        "The operator would have to be taken apart, and what it keeps in higher precision inside would be rounded on the way.",
    ),
    Code(
        "RANDOM",
        "The operator gives something else each time.",
        "Random numbers are drawn in every step; drawing them at another time or in another order would give other results.",
    ),
    Code(
        "SEQUENCE",
        "The operator makes or reads a sequence or an optional.",
        "Only tensors can hold all steps at once, along one more axis. Where the sequence is a fixed list of tensors, exporting it "
        "as separate values helps.",
    ),
    Code(
        "STRING-GATHER",
        "onnxruntime gathers slices of strings wrongly.",
        "Only the first string of each slice is copied. With all steps at once there would be slices where there were single "
        "strings before.",
    ),
    Code(
        "TRAINING",
        "The operator computes statistics over its batch, as in training.",
        "With all steps at once the statistics would be taken over all of them. Export the model for inference.",
    ),
)
