"""Why a state that accumulates was not computed for all steps at once."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "CUMULATIVE-COST",
        "A state that accumulates is so wide that the loop is faster than operators over all steps.",
        "The loop keeps one step in the processor's cache; operators over all steps go through memory. If the real sizes are "
        "smaller than was assumed, say so with --shape.",
    ),
    Code(
        "CUMULATIVE-OPSET",
        "The operator that accumulates over all steps came with a later opset.",
        "CumProd came with opset 26. Products in another order may overflow where the loop does not, so without it the loop stays. "
        "Convert the model, if what runs it knows that opset.",
    ),
    Code(
        "CUMULATIVE-STEPS",
        "A state that accumulates could be computed for all steps at once, if their number were known.",
        "ONNX has no operator for the largest or smallest value so far. In blocks of steps it takes a fixed number of nodes for a "
        "fixed number of steps. A mean is a sum by the number of steps, but not where float32 numbers count those: they stand "
        "still from 2 ** 24 on. Where it is not known a loop goes over blocks of steps, if it scans forwards and has no other "
        "state. --fix-shape makes it known.",
    ),
    Code(
        "CUMULATIVE-TYPE",
        "The operators that accumulate over all steps do not do to this element type what each step does.",
        "CumSum adds float32, float64, int32 and int64 in the order of the loop. Halves it adds in float32, where the loop "
        "rounds in each step; of other types onnxruntime has no kernel.",
    ),
)
