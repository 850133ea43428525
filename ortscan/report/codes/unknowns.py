"""Why something was not rewritten that might be, if more were known. Declared shapes help; sizes may be symbolic."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "DEFAULT-INPUT",
        "The loop reads initializers that are listed as inputs, which each run may replace.",
        "From IR version 4 on an initializer that is listed as an input is a default and no constant: no rule may build on its "
        "value, and onnxruntime does not either. freeze=True (--freeze all) makes such initializers constants, which most of them "
        "are meant to be.",
    ),
    Code(
        "DYNAMIC-STRUCTURE",
        "The axes that an operator works on are computed, not constant.",
        "Which axes they become with the steps in front cannot be told. Exporters usually can give axes as constants.",
    ),
    Code(
        "RANK-UNKNOWN",
        "The number of axes of a tensor in the body is not known.",
        "Declaring the shapes of the model's inputs may help; symbolic sizes will do, as only their number matters.",
    ),
    Code(
        "SHAPE-MISMATCH",
        "The body declares another shape than its operators compute.",
        "Either the declaration is wrong, or the shapes change from step to step. Removing the declared shapes of inner values, "
        "or correcting them, may help.",
    ),
    Code(
        "SHAPE-UNKNOWN",
        "The size of an axis in the body is not known, and it matters.",
        "Declaring the shapes of the model's inputs with their sizes may help.",
    ),
    Code(
        "TYPE-MISMATCH",
        "The body declares another element type than its operators compute.",
        "The declaration is wrong. Removing or correcting it may help.",
    ),
    Code(
        "TYPE-UNKNOWN",
        "The element type of a tensor in the body is not known.",
        "Declaring the types of the body's inputs may help.",
    ),
)
