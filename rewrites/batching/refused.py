"""Operators that cannot be batched, with the reasons."""

from collections.abc import Sequence

from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule

__all__ = ["control_flow", "data_dependent", "random", "sequences", "weights_of_windows"]


@rule("ConstantOfShape", "NonMaxSuppression", "NonZero", "Range", "Unique", refuses=True)
@rule("BlackmanWindow", "HammingWindow", "HannWindow", "StringNormalizer", "StringSplit", refuses=True)
def data_dependent(call: Call) -> Sequence[Result]:
    """The shape of the result depends on values that differ between steps."""
    raise call.refuse("DATA-DEPENDENT-SHAPE", "the shape of the result may differ between steps")


@rule("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", refuses=True)
def random(call: Call) -> Sequence[Result]:
    """Each step draws new random numbers."""
    raise call.refuse("RANDOM", "the operator draws random numbers in each step")


@rule("MelWeightMatrix", refuses=True)
def weights_of_windows(call: Call) -> Sequence[Result]:
    """One node computes one matrix."""
    raise call.refuse("BATCHED-STRUCTURE", "the numbers that determine the matrix differ between steps")


@rule("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceInsert", "SplitToSequence", refuses=True)
@rule("Optional", "OptionalGetElement", "OptionalHasElement", "SequenceErase", "SequenceLength", refuses=True)
def sequences(call: Call) -> Sequence[Result]:
    """A sequence has no axis for the steps."""
    raise call.refuse("SEQUENCE", "sequences and optionals cannot be stacked")


@rule("SequenceMap", refuses=True)
def control_flow(call: Call) -> Sequence[Result]:
    """The mapped sequences have no axis for the steps."""
    raise call.refuse("CONTROL-FLOW", "control flow inside the body")
