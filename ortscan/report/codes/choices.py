"""Why a rewrite that could be done was not: what it costs, and what was asked for."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "RULE-LIMIT",
        "The rules still change it after as many patches as there may be.",
        "Each patch makes a loop smaller or plainer, so an end is expected long before. That it was not reached is a defect of "
        "ortscan, please report it with the model; what was made up to there computes the same, and stays.",
    ),
    Code(
        "BLOCKS-OPSET",
        "Running the loop in blocks needs a later opset.",
        "The temporaries of all steps at once are too large, so a block of steps should be done at a time. That takes "
        "operators of opset 12. Convert the model to opset 12 or later.",
    ),
    Code(
        "COST-FEW-STEPS",
        "There are fewer steps than operators that would do them all at once.",
        "Such as the dynamic quantization of what a step reads, which takes the range of each step by itself: some fifteen "
        "operators. With more steps it would be faster.",
    ),
    Code(
        "COST-LARGE-STEPS",
        "One step is large enough by itself.",
        "The temporaries of a single step already fill the processor's cache, so doing several steps at once would be slower. "
        "If the real sizes are smaller than was assumed, say so with --shape.",
    ),
    Code(
        "COST-SEPARATE",
        "Loops of their own for states that do not need each other would gain nothing.",
        "Some states of the loop could be computed in a second loop. That pays where they alone are a recurrence that leaves, or "
        "where work between the two can then be done for all steps at once; here one loop is as fast.",
    ),
    Code(
        "FAST-MATH",
        "A rewrite that rounds differently was not asked for.",
        "The squared distance (x - y)^2 can be computed as x^2 - 2xy + y^2, with one matrix product. It is much faster, but loses "
        "digits where x and y are close. Allow it with --fast-math.",
    ),
    Code(
        "MEMORY-BUDGET",
        "Holding a value of all steps at once would take more memory than allowed.",
        "Raise the limit with --memory-budget, or give typical sizes with --shape if they are smaller than was assumed for "
        "unknown ones.",
    ),
    Code(
        "SELF-CHECK",
        "What ortscan made of the loop was found wrong, and taken back.",
        "Every result is looked at before anyone gets it: onnx's checker and its strict inference, the shapes and types of the "
        "original, loading in onnxruntime, and where asked for a comparison of the numbers. This one did not pass, so the rule "
        "that made it leaves the loop as it is. That is a defect of ortscan's. Please report it, with the model.",
    ),
    Code(
        "RUNTIME",
        "The onnxruntime that the result is for does not have what it would take.",
        "With --runtime, a result has only operators and element types for which that release has kernels on the CPU. What this "
        "rule made needs one that came later, so the loop is left to the other rules.",
    ),
)
