"""Defects of onnxruntime's optimiser: what it moves, fuses, folds or drops, and should not."""

from rewrites.ops.quirks.quirk import Kind, Quirk

__all__ = ["REWRITING"]

_NO_MORE = "not met with onnxruntime 1.32, whatever sizes were tried"

REWRITING = (
    Quirk(
        id="ORT-CAST-AFTER-TRANSPOSE",
        seen="1.31-1.32",
        kind=Kind.DEATH,
        symptom="A Cast between a Transpose and a MatMul of unequal ranks ends the process that loads it, by a fused product.",
        worked_round=(
            "rewrites.tidy.early_casts",
            "rewrites.tidy.moved_operands",
            "ortscan.pipeline.preparation",
            "ortscan.running.crash_risks",
        ),
    ),
    Quirk(
        id="ORT-HALVES-AFTER-TRANSPOSE",
        seen="1.32",
        kind=Kind.DEATH,
        symptom="A MatMul of float16 that reads a Transpose and an operand of another rank ends the process that loads it.",
        worked_round=(
            "rewrites.tidy.level_half_products",
            "rewrites.tidy.moved_operands",
            "ortscan.pipeline.preparation",
            "ortscan.running.crash_risks",
        ),
    ),
    Quirk(
        id="ORT-DEQUANTIZED-INTO-BODY",
        seen="1.32",
        kind=Kind.DEATH,
        symptom="Dequantized numbers that are moved, and then read in a body or branch, end the process that loads them.",
        worked_round=("rewrites.tidy.move_before_dequantizing",),
    ),
    Quirk(
        id="ORT-DEQUANTIZED-INT8",
        seen="1.32",
        kind=Kind.REFUSAL,
        symptom="From opset 21 on, dequantized int8 that is moved is quantized anew as uint8, which is then refused.",
        worked_round=("rewrites.tidy.move_before_dequantizing",),
    ),
    Quirk(
        id="ORT-DEQUANTIZED-INT32",
        seen="1.32",
        kind=Kind.REFUSAL,
        symptom="Dequantized int32 that is moved is quantized anew to int32, which no QuantizeLinear gives, and is then refused.",
        worked_round=("rewrites.tidy.move_before_dequantizing",),
    ),
    Quirk(
        id="ORT-QUANTIZED-OUTPUT",
        seen="1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="An output that is transposed and quantized for another reader is given out quantized and dequantized.",
        worked_round=("rewrites.tidy.quantize_before_transposing", "rewrites.tidy.quantization_notes"),
    ),
    Quirk(
        id="ORT-QUANTIZED-WEIGHTS",
        seen="1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="Constant float weights of a Conv, ConvTranspose or Gemm of what was dequantized are made int8.",
        worked_round=("rewrites.tidy.keep_float_weights", "rewrites.tidy.quantization_notes"),
    ),
    Quirk(
        id="ORT-DEQUANTIZED-OUTER-WEIGHTS",
        seen="1.32",
        kind=Kind.REFUSAL,
        symptom="A body that dequantizes constant weights of a graph around it for a single product does not load.",
        worked_round=("ortscan.verification.compare_models",),
    ),
    Quirk(
        id="ORT-RETURNING-CASTS",
        seen="1.32",
        kind=Kind.REFUSAL,
        symptom="Casts to a wider type and back are dropped although a body or branch reads the result, which it then misses.",
        worked_round=("rewrites.tidy.read_past_returning_casts",),
    ),
    Quirk(
        id="ORT-TRANSPOSED-TIMES-VECTOR",
        seen="1.31-1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="A Transpose before a product with a vector is fused into it, which then multiplies the matrix as it was.",
        worked_round=("rewrites.batching.products", "rewrites.migration.conversions.alignment"),
    ),
    Quirk(
        id="ORT-GATHER-AT-RANGE",
        seen="1.31-1.32",
        kind=Kind.NO_ERROR,
        symptom="A Gather at a Range becomes a Slice, which gives fewer rows where the Gather fails out of range.",
        worked_round=("rewrites.ops.versions.emit",),
    ),
    Quirk(
        id="ORT-RESHAPE-FUSED",
        seen="1.32",
        kind=Kind.NO_ERROR,
        symptom="A computed size of a Reshape is left to be inferred, so that one to a wrong number of elements runs.",
        worked_round=("tests.campaigns.fuzz.trust",),
    ),
    Quirk(
        id="ORT-SHARED-MEMORY",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="Tensors whose sizes have one name share memory; a Slice of opset 10 keeps the name, and the run fails.",
        worked_round=("rewrites.driver.tidying", "rewrites.ops.versions.emit"),
    ),
    Quirk(
        id="ORT-DEQUANTIZED-CAPTURED",
        seen="1.32",
        kind=Kind.DEATH,
        symptom="What was dequantized, and moved then (reshaped, transposed, cut, …), for a graph within ends the process at load.",
        worked_round=("ortscan.running.crash_risks",),
    ),
    Quirk(
        id="ORT-FOLDED-JOINS",
        seen="1.32",
        kind=Kind.MEMORY,
        symptom="Constants joined with themselves again and again are computed when a model is loaded, however large they become.",
        worked_round=("ortscan.running.joined_vectors",),
    ),
    Quirk(
        id="ORT-PRODUCT-OF-NOTHING",
        seen="1.31",
        kind=Kind.REFUSAL,
        symptom="Products do not broadcast to an axis of size 0, and a MatMul that is fused with an Add or Transpose fails on one.",
        worked_round=("rewrites.batching.products", "rewrites.fission.stacks", "rewrites.recurrent_nodes.expand"),
        not_shown=_NO_MORE,
    ),
    Quirk(
        id="ORT-NEGATIVE-AXIS-OF-NOTHING",
        seen="1.31",
        kind=Kind.WRONG_SIZES,
        symptom="Some operators give wrong shapes for a negative axis of a tensor without elements.",
        worked_round=("rewrites.batching.alignment",),
        not_shown=_NO_MORE,
    ),
    Quirk(
        id="ORT-BERNOULLI-MERGED",
        seen="1.31",
        kind=Kind.WRONG_NUMBERS,
        symptom="Two Bernoulli of one operand are taken for one.",
        worked_round=("rewrites.unroll.unroll",),
        not_shown="not met with onnxruntime 1.32 in any form of the operator that was tried",
    ),
)
