"""Why a Scan is left: what it is, not what one operator in it is."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "GROWING-OPSET",
        "A Scan with a growing state needs a later opset to become a Loop.",
        "onnxruntime's Scan refuses a state that changes its shape. A Loop may have one, but turning a stacked result around takes "
        "a Slice with steps, of opset 10.",
    ),
    Code(
        "GROWING-STRINGS",
        "A Scan over strings with a growing state cannot become a Loop.",
        "onnxruntime's Scan refuses a state that changes its shape. A Loop may have one, but would read its rows by Gather, which "
        "onnxruntime does wrongly for strings.",
    ),
    Code(
        "ELEMENT-TYPE",
        "The loop carries, scans or stacks elements that no Slice, Gather or Concat takes.",
        "The operators that take a loop apart along its steps know no float8 and no types of four bits. A Cast before the loop and "
        "one after it may help.",
    ),
    Code(
        "EMPTY-SHAPE",
        "The size of an empty result is not known before the loop.",
        "Without a step nothing in the body tells how large a step's result would be. Declaring the shapes of the model's inputs, "
        "with the same names for the same sizes, may help.",
    ),
    Code(
        "NO-RULE",
        "None of the rules in use has anything to do with the loop.",
        "Which rules are used is chosen with --passes and --skip; without them all are that pay on the target.",
    ),
    Code(
        "RECURRENCE",
        "Each step needs the state of the step before.",
        "What is left of the loop is its recurrence, of no family that is recognised. All work that does not depend on the "
        "state has already left, if there was any worth moving.",
    ),
    Code(
        "SCAN-8",
        "A Scan of opset 8 has a batch axis, which rewrites of later Scans do not handle.",
        "onnxruntime runs its body for every row of the batch. Lift the model to opset 9 or later first. Beware of converters "
        "that only change the number of the opset: the Scan of opset 8 is another operator.",
    ),
    Code(
        "SCAN-8-STATE",
        "The body of a Scan of opset 8 sees its states one row of the batch at a time.",
        "Nothing outside the loop gives a body the same row, so the state stays. Lift the model to opset 9 or later first.",
    ),
    Code(
        "SCAN-BLOCKS",
        "The loop already does many steps at once, block by block.",
        "ortscan made this loop from one of single steps whose temporaries would not have fitted in memory or cache all at "
        "once. It is meant to stay.",
    ),
    Code(
        "SCAN-DIRECTIONS",
        "Some inputs or results run forwards and others backwards, in an old opset.",
        "Turning a tensor round takes a Slice with negative steps, which came with opset 10. Convert the model to opset 10 or "
        "later.",
    ),
    Code(
        "SCAN-RANK-UNKNOWN",
        "A tensor is scanned along an axis other than 0, and its rank is not known.",
        "The axis cannot be moved to the front without knowing how many there are. Declaring the shapes of the model's inputs "
        "(symbolic sizes will do) may help.",
    ),
)
