"""Defects of onnx: its inference of shapes, of which onnxruntime has a copy, its parser of texts, its reference of operators."""

from rewrites.ops.quirks.quirk import Kind, Quirk

__all__ = ["INFERENCE"]

INFERENCE = (
    Quirk(
        id="ONNX-SLICE-UNKNOWN-BOUNDS",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="The bounds of a Slice of sizes that are not known are taken for 0: what is made from it gets another rank.",
        worked_round=("rewrites.analysis.shapes.unknown_bounds", "rewrites.analysis.shapes.slice_bounds"),
    ),
    Quirk(
        id="ONNX-AXES-WITHOUT-SHAPE",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="Axes and steps of a Slice, and axes of a Pad, of which no shape is known are taken for absent.",
        worked_round=("rewrites.graph.node_inference", "rewrites.analysis.shapes.unknown_bounds"),
    ),
    Quirk(
        id="ONNX-CAPTURED-CONSTANTS",
        seen="1.23",
        kind=Kind.OPEN_SIZES,
        symptom="In a body, constants of the graphs around it are not known: a Reshape, or a Slice of sizes, by one is left open.",
        worked_round=(
            "rewrites.analysis.shapes.shown_scopes",
            "rewrites.analysis.shapes.slice_bounds",
            "rewrites.analysis.shapes.bodies",
            "rewrites.driver.prepare",
        ),
    ),
    Quirk(
        id="ONNX-NAMES-OF-OTHER-GRAPHS",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="Integers are followed by name alone: what a value holds in one branch counts for another of its name elsewhere.",
        worked_round=("rewrites.analysis.shapes.shown_scopes", "rewrites.driver.prepare", "ortscan.soundness.new_fault"),
    ),
    Quirk(
        id="ONNX-SLICE-10-NAMES",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="What a Slice of opset 10 cuts from an axis keeps the name of the axis' size.",
        worked_round=("rewrites.driver.tidying", "rewrites.analysis.shapes.unknown_bounds", "rewrites.ops.versions.emit"),
    ),
    Quirk(
        id="ONNX-OUTER-PRODUCT",
        seen="1.23",
        kind=Kind.REFUSAL,
        symptom="From opset 14 on, an Unsqueeze of a vector is followed as if it still were one: 3 of them by 2 are refused.",
        worked_round=("rewrites.cleanup.parted_products", "rewrites.scan_form.induction_rows", "ortscan.soundness.new_fault"),
    ),
    Quirk(
        id="ONNX-IF-10-SIZES",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="Before opset 11 a size that one branch of an If tells is taken for what both give.",
        worked_round=("rewrites.analysis.shapes.branches_of_ifs", "tests.campaigns.fuzz.trust"),
    ),
    Quirk(
        id="ONNX-STALE-DECLARATIONS",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="What a model declares of an inner value is believed, even where the operators contradict it.",
        worked_round=("rewrites.analysis.shapes.inference",),
    ),
    Quirk(
        id="ONNX-LONG-VECTORS",
        seen="1.23",
        kind=Kind.MEMORY,
        symptom="Vectors of integers are followed element by element, at some 100 bytes for each.",
        worked_round=("rewrites.analysis.shapes.long_vectors", "ortscan.running.joined_vectors", "ortscan.soundness.new_fault"),
    ),
    Quirk(
        id="ONNX-SPLIT-OUTPUTS",
        seen="1.23",
        kind=Kind.DEATH,
        symptom="The inference of a Split with more outputs than its num_outputs ends the process, in onnxruntime too.",
        worked_round=("ortscan.modelio.defects", "ortscan.running.crash_risks"),
    ),
    Quirk(
        id="ONNX-NEGATIVE-SIZE",
        seen="1.23",
        kind=Kind.DEATH,
        symptom="A declared size below zero is taken for a number: a Slice along it ends the process, a Concat is refused.",
        worked_round=("ortscan.base.proto_graphs", "ortscan.ort.model_errors", "ortscan.modelio.interface"),
    ),
    Quirk(
        id="ONNX-TEXT-DEPTH",
        seen="1.23",
        kind=Kind.DEATH,
        symptom="The parser of ONNX text ends the process over brackets nested some thousands deep.",
        worked_round=("ortscan.modelio.reading",),
    ),
    Quirk(
        id="ONNX-STFT-ONESIDED",
        seen="1.23",
        kind=Kind.WRONG_SIZES,
        symptom="An STFT that does not say whether it is one-sided, as it is then, gets the size of a two-sided spectrum.",
        worked_round=("rewrites.ops.versions.plain_forms", "rewrites.batching.fold_into_batch"),
    ),
    Quirk(
        id="ONNX-RANGE-VECTOR",
        seen="1.23",
        kind=Kind.REFUSAL,
        symptom="A Range by a vector of one number passes, and is refused once that number is a constant.",
        worked_round=("rewrites.ops.versions.plain_forms",),
    ),
    Quirk(
        id="ONNX-REFERENCE-OPERATORS",
        seen="1.23",
        kind=Kind.WRONG_NUMBERS,
        symptom="The reference computes something else than the text, or nothing, in Erf, LRN, OneHot, Softsign, TopK and others.",
        worked_round=("rewrites.python_ops.reference",),
    ),
    Quirk(
        id="ONNX-REFERENCE-SCAN",
        seen="1.23",
        kind=Kind.REFUSAL,
        symptom="The reference of Scan knows neither directions nor other axes than the first.",
        worked_round=("tests.support.loop_oracle", "ortscan.custom_ops.calls"),
    ),
)
