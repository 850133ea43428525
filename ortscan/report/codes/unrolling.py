"""Why a loop was not unrolled."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "IF-BRANCHES",
        "The target has no If, and not both branches may run.",
        "Both branches of an If can run, and its condition choose between what they give, only where neither can fail on what it "
        "is given, both give tensors of the same known sizes, and both run on zeros. The If falls back to onnxruntime's CPU.",
    ),
    Code(
        "EARLY-EXIT",
        "The target has no Loop, and not all the steps that it may take can be taken.",
        "A Loop that is stopped by what it computes can take all the steps of its trip count, its states standing still from where "
        "it was to stop, only where that trip count is a constant, no step can fail on what it is given, nothing is stacked, and "
        "all states keep known sizes. Give the Loop a constant trip count when it is exported; otherwise it runs on the CPU.",
    ),
    Code(
        "COST-UNROLL",
        "Written out, the steps are not sure to run faster.",
        "onnxruntime's Scan costs about a microsecond a step. Reading rows and stacking results by nodes of their own costs about "
        "as much, so on a CPU only loops that do neither are sure to gain, and of the others some do. To try it out: optimize with "
        "--max-unroll N and --bench, which writes nothing where that is slower.",
    ),
    Code(
        "UNROLL-MEMORY",
        "An operator in the body may remember what it did in earlier steps.",
        "Written out, each step would have an operator of its own, which starts anew. Operators of domains that ortscan does not "
        "know are taken to be such.",
    ),
    Code(
        "UNROLL-NODE",
        "A recurrent node that the target does not run is in a form that is not written out.",
        "Written out are nodes of float types, with their batch axis behind the steps, in opset 9 or later.",
    ),
    Code(
        "UNROLL-NODES",
        "Written out, the loop would be too many nodes.",
        "Loading a model takes longer the more nodes it has, and more than in proportion. --max-unroll with the number of steps "
        "allows 262144 nodes; fewer steps, where the application allows them, cost less.",
    ),
    Code(
        "UNROLL-OFF",
        "Loops are not to be written out.",
        "The target runs no loops, but --max-unroll 0 or 1 keeps them, so this one falls back to the CPU.",
    ),
    Code(
        "UNROLL-STEPS",
        "The loop has more steps than are written out.",
        "Allow more with --max-unroll. On a CPU that gains little: onnxruntime's own loop is nearly as fast, and loads at once.",
    ),
    Code(
        "UNROLL-TYPE",
        "A value that a step reads or gives has a type that cannot be split and stacked.",
        "onnxruntime's Split and Concat take all types but those of 4 and 8 bits for floats, and complex numbers.",
    ),
    Code(
        "UNROLL-UNKNOWN",
        "The number of steps is not known before the model runs.",
        "The target runs no loops, so this one falls back to the CPU. Fix the sizes it depends on with --fix-shape, and its steps "
        "can be written out.",
    ),
)
