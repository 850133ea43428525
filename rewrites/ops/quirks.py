"""The register of defects of onnxruntime and onnx, with their effects and versions.

A module that works around a defect has its id in the docstring. If the defect is fixed, a test fails and names these modules.
"""

import re
from dataclasses import dataclass
from enum import Enum

__all__ = ["QUIRKS", "Kind", "Quirk"]


class Kind(str, Enum):
    """The effect of a defect."""

    GARBAGE = "returns uninitialised memory"
    WRONG_NUMBERS = "returns another result than the operator's text says"
    WRONG_SIZES = "infers wrong sizes"
    OPEN_SIZES = "does not infer sizes that are known"
    NO_ERROR = "runs a model that cannot run"
    DEATH = "crashes"
    HANG = "never ends"
    MEMORY = "takes far more memory than needed"
    REFUSAL = "refuses a valid model"


@dataclass(frozen=True)
class Quirk:
    """A defect. ``seen``: the affected versions. ``not_shown``: why no test shows the defect, or empty."""

    id: str
    seen: str
    kind: Kind
    symptom: str
    not_shown: str


_REGISTER = """
# Scan, Loop and If, and their bodies
ORT-SCAN-SHARED-OUTPUT 1.31-1.32 GARBAGE
    If a Scan body returns one value twice, or returns an input, the Scan returns uninitialised states and results.
ORT-LOOP-STEP-NUMBER 1.31-1.32 WRONG_NUMBERS
    If the body of a Loop returns its step number, every element of the stacked result is the number after the last step.
ORT-SCAN-CHANGING-STATE 1.31-1.32 REFUSAL
    A Scan fails at load or run time if a state changes its shape from step to step.
ORT-SCAN-NO-STEPS 1.31-1.32 REFUSAL
    A Scan of opset 9 or later fails on a sequence without steps.
ORT-SCAN-MOVED-AXES 1.31-1.32 DEATH
    A Scan with a scanned axis other than 0 crashes if any size of the scanned tensor is 0.
ORT-SCAN-8-NOTHING 1.31-1.32 GARBAGE
    Without steps, an opset-8 Scan returns uninitialised states. With an empty batch it returns no value, or crashes.
ORT-SCAN-8-LENGTH-0 1.31-1.32 REFUSAL
    An opset-8 Scan refuses a sequence length of 0, which the operator's text allows.
ORT-SCAN-STATE-RANK 1.31-1.32 DEATH
    A Scan crashes if the body declares another rank for a state than its initial value has at run time.
ORT-LOOP-UNNAMED-RESULT 1.31-1.32 DEATH
    A Loop with an unnamed result crashes.
ORT-SCAN-UNNAMED-RESULT 1.31-1.32 REFUSAL
    A Scan is not loaded if a result has no name, or if the Scan has fewer results than its body.
ORT-LOOP-EMPTY-COUNT 1.32 DEATH
    A Loop whose trip count is an empty constant crashes at load time.
ORT-LOOP-EMPTY-CONDITION 1.32 NO_ERROR
    If the body of a Loop returns an empty condition, the Loop reads an element anyway, and does not fail.
ORT-LOOP-STACKED-STRINGS 1.32 WRONG_NUMBERS
    A Loop moves strings into its stacked result. If a step's result is a copy of another value, that value loses its strings.
ORT-LOOP-NO-STEPS-SIZES 1.31-1.32 WRONG_SIZES
    If a Loop runs no step, its stacked results have size 0 along each axis whose size onnxruntime could not infer.
ORT-INNER-NAMES 1.31-1.32 REFUSAL
    A model is refused if a value of a body has the name of an earlier outer value, although a body has its own names.
ORT-BRANCH-INITIALIZER 1.32 WRONG_NUMBERS
    An initializer of a branch is ignored if the other branch reads an outer value of the same name.
ORT-LOOP-UNDECLARED-INPUTS 1.32 REFUSAL
    A Loop is not loaded if its body does not declare the types and ranks of its step number and condition.
ORT-SCAN-RESULT-RANK 1.31-1.32 REFUSAL
    A Scan fails at run time if the rank of a result of its body is neither inferred nor declared.
ORT-OUTER-VALUE-RETURNED 1.31-1.32 REFUSAL
    A body or branch that returns an outer value is not loaded.
ORT-BRANCH-CONTRADICTION 1.32 REFUSAL
    A model is not loaded if the nodes of a branch do not fit the sizes of its inputs, even if the branch never runs.
ORT-IF-10-SIZES 1.32 WRONG_NUMBERS
    Before opset 11, a Shape of an If's result is folded to the sizes of one branch, even if the other branch runs.
ORT-BODY-WEIGHTS-BY-NAME 1.31-1.32 REFUSAL
    SessionOptions.add_external_initializers does not set the initializers of bodies.
# RNN, GRU and LSTM
ORT-RECURRENT-LAYOUT 1.31-1.32 REFUSAL
    A recurrent node with the batch axis first (layout 1) is not loaded.
ORT-RECURRENT-BFLOAT16 1.31-1.32 REFUSAL
    There is no recurrent kernel for bfloat16.
ORT-RECURRENT-DOUBLE 1.31-1.32 REFUSAL
    An LSTM or GRU on float64 is loaded, but fails at run time. An RNN on float64 is not loaded.
ORT-RECURRENT-SOFTPLUS 1.31-1.32 WRONG_NUMBERS
    Softplus in a recurrent node is log(1 + exp(x)), which is infinite from about 88 on.
ORT-RECURRENT-DEFAULTS 1.31-1.32 WRONG_NUMBERS
    Affine, ScaledTanh and ThresholdedRelu in a recurrent node use 0 for each omitted parameter.
ORT-RECURRENT-EMPTY-ROW 1.31-1.32 WRONG_NUMBERS
    The final state of a row of length 0 is zero instead of the initial state.
ORT-RNN-NO-STEPS 1.31-1.32 WRONG_NUMBERS
    The final state of an RNN without steps is zero instead of the initial state.
ORT-GRU-NO-STEPS 1.31-1.32 DEATH
    A GRU without sequence lengths crashes if there are no steps.
ORT-LSTM-NO-STEPS 1.31-1.32 GARBAGE
    An LSTM without sequence lengths returns uninitialised memory as its last cell state if there are no steps.
ORT-RECURRENT-NO-ROWS 1.31-1.32 DEATH
    A GRU or LSTM on an empty batch crashes.
ORT-QUANTIZED-LSTM-NO-STEPS 1.32 GARBAGE
    A DynamicQuantizeLSTM without sequence lengths returns an uninitialised last cell state if there are no steps.
ORT-QUANTIZED-LSTM-NO-ROWS 1.32 DEATH
    A DynamicQuantizeLSTM on an empty batch crashes.
ORT-RECURRENT-HIDDEN-SIZE 1.31-1.32 REFUSAL
    A recurrent node without hidden_size is not loaded, although the operator's definition makes it optional.
ORT-RECURRENT-ACTIVATION-NAMES 1.31-1.32 REFUSAL
    An RNN refuses lower-case names of activations, but GRU and LSTM accept them.
ORT-RECURRENT-CLIP 1.31-1.32 REFUSAL
    A GRU or LSTM with a clip of 0 or less is not loaded. Exporters write such a clip to disable clipping.
ORT-RECURRENT-NAN 1.31-1.32 WRONG_NUMBERS
    Activations of recurrent nodes do not propagate NaN. For example, the Relu of an RNN returns 0 for NaN.
# The optimiser, which moves, fuses, folds or drops nodes wrongly
ORT-CAST-AFTER-TRANSPOSE 1.31-1.32 DEATH
    A Cast between a Transpose and a MatMul crashes at load time if the operands of the MatMul have unequal ranks.
ORT-HALVES-AFTER-TRANSPOSE 1.32 DEATH
    A MatMul of float16 crashes at load time if it reads a Transpose and the other operand has another rank.
ORT-DEQUANTIZED-INTO-BODY 1.32 DEATH
    A model crashes at load time if a body or branch reads dequantized numbers that a node, such as Transpose, has moved.
ORT-DEQUANTIZED-INT8 1.32 REFUSAL
    From opset 21 on, dequantized int8 numbers that a node moves are quantized again as uint8. The model is refused.
ORT-DEQUANTIZED-INT32 1.32 REFUSAL
    Dequantized int32 numbers that a node moves are quantized again. The model is refused: QuantizeLinear has no int32.
ORT-QUANTIZED-OUTPUT 1.32 WRONG_NUMBERS
    If a model output is also transposed and quantized, its returned numbers are quantized and dequantized too.
ORT-QUANTIZED-WEIGHTS 1.32 WRONG_NUMBERS
    If a Conv, ConvTranspose or Gemm reads dequantized numbers, its constant float weights are quantized to int8.
ORT-DEQUANTIZED-OUTER-WEIGHTS 1.32 REFUSAL
    A model is not loaded if a body dequantizes constant weights of an outer graph for a single product.
ORT-RETURNING-CASTS 1.32 REFUSAL
    Casts to a wider type and back are dropped even if a body or branch reads the result. The value is then missing.
ORT-RECIPROCAL-OF-COPY 1.32 REFUSAL
    A model is not loaded if it multiplies a reciprocal by the result of an Identity, Dropout or Cast to the same type.
ORT-TRANSPOSED-TIMES-VECTOR 1.31-1.32 WRONG_NUMBERS
    A Transpose before a product with a vector is fused into the product, which then uses the untransposed matrix.
ORT-GATHER-AT-RANGE 1.31-1.32 NO_ERROR
    A Gather whose indices are a Range becomes a Slice. If they are out of range, it returns fewer rows instead of failing.
ORT-RESHAPE-FUSED 1.32 NO_ERROR
    A computed size of a Reshape is replaced by -1, so a Reshape to a wrong number of elements does not fail.
ORT-SHARED-MEMORY 1.31-1.32 REFUSAL
    Tensors with equal names of sizes share memory. A Slice of opset 10 keeps the name of the uncut size, and then fails.
ORT-DEQUANTIZED-CAPTURED 1.32 DEATH
    A model crashes at load time if dequantized numbers are moved (reshaped, transposed, cut, …) for an inner graph.
ORT-FOLDED-JOINS 1.32 MEMORY
    Constants that are repeatedly joined with themselves are computed at load time, however large they become.
ORT-PRODUCT-OF-NOTHING 1.31 REFUSAL
    Products do not broadcast to an axis of size 0. A MatMul fused with an Add or Transpose fails on it.
    No test: not reproduced with onnxruntime 1.32 at any size tried
ORT-NEGATIVE-AXIS-OF-NOTHING 1.31 WRONG_SIZES
    Some operators return wrong shapes for a negative axis of an empty tensor.
    No test: not reproduced with onnxruntime 1.32 at any size tried
ORT-BERNOULLI-MERGED 1.31 WRONG_NUMBERS
    Two Bernoulli nodes with the same operand are merged into one, so both return the same random numbers.
    No test: not reproduced with onnxruntime 1.32 in any form of the operator that was tried
# Kernels: empty tensors, extreme numbers, missing types, unusual forms of a node
ORT-EINSUM-OF-NOTHING 1.31-1.32 DEATH
    Some Einsums of empty operands crash.
ORT-UNIQUE-OF-NOTHING 1.31-1.32 DEATH
    A Unique along an axis crashes if another axis has size 0.
ORT-CONV-EMPTY-FILTER 1.31-1.32 HANG
    A convolution with a computed, empty filter hangs.
ORT-LAYERNORM-EMPTY-NAME 1.31-1.32 DEATH
    A LayerNormalization whose last input is an empty name crashes.
ORT-DIVISION-OVERFLOW 1.31-1.32 DEATH
    Dividing the smallest integer of a type by -1 crashes, at run time or during constant folding.
ORT-GATHER-STRINGS 1.31-1.32 WRONG_NUMBERS
    A Gather of rows of strings copies the first string of each row and leaves the others empty.
ORT-WHERE-MINUS-ZERO 1.32 WRONG_NUMBERS
    Where returns 0 for a -0 of its second operand, but keeps a -0 of its third.
ORT-REDUCED-INTEGERS 1.32 WRONG_NUMBERS
    ReduceSum of integers saturates on overflow, but Add wraps around.
ORT-REDUCED-NAN 1.32 WRONG_NUMBERS
    ReduceMax, ReduceMin, ArgMax and ArgMin may ignore a NaN, depending on its position and on the number of elements.
ORT-SATURATED-PRODUCTS 1.32 WRONG_NUMBERS
    On processors without VNNI, products of uint8 and int8 are added in pairs that saturate at 32767.
    No test: it needs a processor without VNNI
ORT-LOGSOFTMAX-NAN 1.31-1.32 WRONG_NUMBERS
    If a row has a NaN that is not its first element, a LogSoftmax of float64 returns large numbers for other elements.
ORT-CLIP-HALF 1.31-1.32 WRONG_NUMBERS
    From opset 12 on, a Clip of float16 without an upper bound turns infinity into the largest finite number.
ORT-LOG-SUM-EXP-28 1.32 WRONG_NUMBERS
    From opset 28 on, ReduceLogSumExp overflows above 88 and returns -inf below -103. Older opsets are correct.
ORT-LOG-SUM-EXP-FIRST 1.32 WRONG_NUMBERS
    ReduceLogSumExp over some axes returns -inf if the first number is infinite and all others are below -103.
ORT-ATTENTION-SCORES 1.32 WRONG_NUMBERS
    Up to opset 24, Attention (mode 2) returns finite scores for masked positions. From 25 on, they are -inf.
ORT-CONCAT-MISFIT 1.32 GARBAGE
    A Concat accepts an empty tensor of wrong sizes. The result then has rows of uninitialised memory.
ORT-PAD-WRAP-OF-NOTHING 1.31-1.32 REFUSAL
    A Pad of mode wrap fails on an empty tensor, for any axis.
ORT-GROUPNORM-OF-NOTHING 1.31-1.32 REFUSAL
    A GroupNormalization fails on an empty batch.
ORT-ATTENTION-OF-NOTHING 1.32 REFUSAL
    An Attention fails on an empty batch.
ORT-RESIZE-AXES 1.31-1.32 REFUSAL
    A Resize interpolates over two or three axes only, and only if earlier axes keep their sizes.
ORT-WHERE-TYPES 1.31-1.32 REFUSAL
    There is no Where kernel for bool, int16, uint16, uint64 and bfloat16.
ORT-CONSTANT-BFLOAT16 1.31 REFUSAL
    There is no ConstantOfShape kernel for bfloat16.
    No test: onnxruntime 1.32 has one
ORT-NODE-NAMES 1.31-1.32 REFUSAL
    Two nodes of the same name are refused, although node names have no meaning.
ORT-UNSTOPPABLE-NODE 1.32 HANG
    RunOptions.terminate stops a run only between two nodes, however long a node takes.
    No test: it would have to wait for a node that takes seconds
# onnx: shape inference (which onnxruntime copied), text parser, reference implementation
ONNX-SLICE-UNKNOWN-BOUNDS 1.23 WRONG_SIZES
    Unknown bounds of a Slice of a Shape are assumed to be 0. Values that depend on this Slice get a wrong rank.
ONNX-AXES-WITHOUT-SHAPE 1.23 WRONG_SIZES
    Axes and steps of a Slice, and axes of a Pad, are treated as absent if their shape is unknown.
ONNX-CAPTURED-CONSTANTS 1.23 OPEN_SIZES
    In a body, constants of outer graphs are unknown. Sizes that depend on them are not inferred.
ONNX-NAMES-OF-OTHER-GRAPHS 1.23 WRONG_SIZES
    Integers are looked up by name alone, so a value of one branch is used for an equally named value of another branch.
ONNX-SLICE-10-NAMES 1.23 WRONG_SIZES
    An axis that a Slice of opset 10 shortens keeps the name of its old size.
ONNX-OUTER-PRODUCT 1.23 REFUSAL
    From opset 14 on, an unsqueezed vector is still treated as a vector. An outer product of 3 by 2 is rejected.
ONNX-IF-10-SIZES 1.23 WRONG_SIZES
    Before opset 11, a size that only one branch of an If has is used for the result of the If.
ONNX-STALE-DECLARATIONS 1.23 WRONG_SIZES
    The declared shape of an inner value is trusted, even if the operators contradict it.
ONNX-LONG-VECTORS 1.23 MEMORY
    Shape inference stores the values of integer vectors, at about 100 bytes per element.
ONNX-SPLIT-OUTPUTS 1.23 DEATH
    The inference of a Split with more outputs than its num_outputs crashes, in onnxruntime too.
ONNX-NEGATIVE-SIZE 1.23 DEATH
    A negative declared size is accepted. A Slice along that axis then crashes, and a Concat is rejected.
ONNX-TEXT-DEPTH 1.23 DEATH
    The parser of ONNX text crashes on brackets nested some thousands deep.
ONNX-STFT-ONESIDED 1.23 WRONG_SIZES
    An STFT without the attribute onesided is one-sided, but gets the size of a two-sided spectrum.
ONNX-RANGE-VECTOR 1.23 REFUSAL
    A Range with an input of shape [1] is rejected if this input is constant, but accepted if it is computed.
ONNX-REFERENCE-OPERATORS 1.23 WRONG_NUMBERS
    The reference implementation of Erf, LRN, OneHot, Softsign, TopK and others fails or returns wrong results.
ONNX-REFERENCE-SCAN 1.23 REFUSAL
    The reference implementation of Scan supports no backward direction, and no axis other than 0.
"""
"""For each defect: a line with id, versions and kind, the symptom, and, if no test reproduces it, the reason."""

_ENTRY = re.compile(r"^(\S+) (\S+) ([A-Z_]+)\n    (.+)(?:\n    No test: (.+))?$", re.MULTILINE)

QUIRKS = {name: Quirk(name, seen, Kind[kind], *rest) for name, seen, kind, *rest in _ENTRY.findall(_REGISTER)}
"""All defects by id."""
