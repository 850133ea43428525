"""Why states that are linear in what they were before stay in their loop."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "COST-LINEAR",
        "The loop is as fast as the steps of a linear recurrence done block by block.",
        "Work on all steps at once saves what a loop costs in each step, and moves more memory. For wide states, or few steps, "
        "that gains nothing. If the real sizes are smaller than was assumed, say so with --shape.",
    ),
    Code(
        "LINEAR-CORNERS",
        "Infinite states or zeros would come to something else in blocks than step by step.",
        "The state only decays and takes something up, so its steps could be done block by block. But the body is written so "
        "that an infinite state, or a zero of one sign, comes to another value than sums in another order give: such as -(x - "
        "a * s), or a decay of 0 or less. Write the step as a * s + x, or allow it with --fast-math. States that read each other "
        "need an If that keeps the loop for such numbers; where the target has none, they stay.",
    ),
    Code(
        "LINEAR-DECAY",
        "What a state is multiplied by in each step is not constant.",
        "The state only decays and takes something up. With a constant decay its steps could be done block by block; powers of one "
        "that is known only when the model runs may overflow, or come to 0 too early.",
    ),
    Code(
        "LINEAR-GROWTH",
        "A state is multiplied by more than 1 in each step, or states that read each other grow too much.",
        "The steps of a state that decays could be done block by block. Powers of what makes it grow may overflow where the states "
        "themselves do not.",
    ),
    Code(
        "LINEAR-SHAPE",
        "What is added to a state in each step may have another shape.",
        "The steps of the state could be done block by block, if what is added were known to be of its shape. Declare the shapes "
        "of the model's inputs, or expand it.",
    ),
    Code(
        "LINEAR-STEPS",
        "The number of steps of a linear recurrence is not known.",
        "With a known number of steps the loop would become a few operators on all steps at once. As it is it runs in blocks of "
        "steps where that pays, and scans forwards. Say how many there are with --fix-shape, or how many are usual with --dim.",
    ),
    Code(
        "PRODUCTS-CORNERS",
        "One product for two would differ where something is infinite or cancels.",
        "Nothing else reads what is between two products by constants, so one product by both matrices would do. But an infinite "
        "number gives NaN in the one and infinity in the other, and nothing shows that there is none, such as a Tanh before or a "
        "Softmax behind. Or the product of the matrices is far smaller than what is summed in it. Multiply them in the model, "
        "or allow it with --fast-math.",
    ),
)
