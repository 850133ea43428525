"""The register of defects of onnxruntime and onnx: what each does, and in which versions it was seen.

The docstring of each module that works round a defect names its id. If a defect is fixed, a test fails and names these modules.
"""

import re
from dataclasses import dataclass
from enum import Enum

__all__ = ["QUIRKS", "Kind", "Quirk"]


class Kind(str, Enum):
    """What a defect does."""

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
    """A defect. ``seen``: the versions that have it. ``not_shown``: why no test shows it; all others have a test."""

    id: str
    seen: str
    kind: Kind
    symptom: str
    not_shown: str


_REGISTER = """
# Scan, Loop and If, and how their bodies are read
ORT-SCAN-SHARED-OUTPUT 1.31-1.32 GARBAGE
    A Scan whose body returns one value twice, or an input of its own, gives uninitialised states and results.
ORT-LOOP-STEP-NUMBER 1.31-1.32 WRONG_NUMBERS
    Of a Loop whose body returns its step number, each row of the stack is the number after the last step.
ORT-SCAN-CHANGING-STATE 1.31-1.32 REFUSAL
    A Scan whose state changes its shape from step to step fails when it runs, or is not loaded.
ORT-SCAN-NO-STEPS 1.31-1.32 REFUSAL
    A Scan of opset 9 or later fails over a sequence without steps.
ORT-SCAN-MOVED-AXES 1.31-1.32 DEATH
    A Scan with a scanned axis other than 0 ends the process where any size of what it moves is 0.
ORT-SCAN-8-NOTHING 1.31-1.32 GARBAGE
    An opset-8 Scan gives uninitialised states without steps; without rows it gives no value, or ends the process.
ORT-SCAN-8-LENGTH-0 1.31-1.32 REFUSAL
    An opset-8 Scan refuses a row of length 0, which the operator's text allows.
ORT-SCAN-STATE-RANK 1.31-1.32 DEATH
    A Scan ends the process where its body declares another rank of a state than the state turns out to have.
ORT-LOOP-UNNAMED-RESULT 1.31-1.32 DEATH
    A Loop with a result that has no name ends the process.
ORT-SCAN-UNNAMED-RESULT 1.31-1.32 REFUSAL
    A Scan with a result that has no name, or with fewer results than its body, is not loaded.
ORT-LOOP-EMPTY-COUNT 1.32 DEATH
    A Loop whose number of steps is a constant without elements ends the process that loads it.
ORT-LOOP-EMPTY-CONDITION 1.32 NO_ERROR
    A Loop whose body gives a condition without elements reads one all the same, and goes on or ends by it.
ORT-LOOP-STACKED-STRINGS 1.32 WRONG_NUMBERS
    A Loop moves strings into a stack, away from the value that a step's result is a copy of: later steps find none.
ORT-LOOP-NO-STEPS-SIZES 1.31-1.32 WRONG_SIZES
    What a Loop stacks without a step has size 0 along each axis whose size onnxruntime could not infer.
ORT-INNER-NAMES 1.31-1.32 REFUSAL
    A value of a body with the name of an earlier one around it is refused, though names of a body are its own.
ORT-BRANCH-INITIALIZER 1.32 WRONG_NUMBERS
    An initializer of a branch is not read where the other branch reads a value of its name from around the If.
ORT-LOOP-UNDECLARED-INPUTS 1.32 REFUSAL
    A Loop is not loaded whose body does not say of its step number and condition what they can only be.
ORT-SCAN-RESULT-RANK 1.31-1.32 REFUSAL
    A Scan fails when it runs where neither inference nor a declaration tells the rank of what its body returns.
ORT-OUTER-VALUE-RETURNED 1.31-1.32 REFUSAL
    A body or branch that returns a value of the graph around it is not loaded.
ORT-BRANCH-CONTRADICTION 1.32 REFUSAL
    A model is not loaded where a branch does not fit the sizes it would be given, even if it is never taken.
ORT-IF-10-SIZES 1.32 WRONG_NUMBERS
    Before opset 11 a size that one branch of an If tells counts for both: a Shape of the result is folded to it.
ORT-BODY-WEIGHTS-BY-NAME 1.31-1.32 REFUSAL
    Weights given by name (SessionOptions.add_external_initializers) do not reach the initializers of a body.
# RNN, GRU and LSTM
ORT-RECURRENT-LAYOUT 1.31-1.32 REFUSAL
    A recurrent node whose batch axis comes first (layout 1) is not loaded.
ORT-RECURRENT-BFLOAT16 1.31-1.32 REFUSAL
    There is no recurrent kernel for bfloat16.
ORT-RECURRENT-DOUBLE 1.31-1.32 REFUSAL
    An LSTM or GRU on float64 is loaded and fails when it runs; an RNN is not loaded.
ORT-RECURRENT-SOFTPLUS 1.31-1.32 WRONG_NUMBERS
    Softplus in a recurrent node is log(1 + exp(x)), which is infinite from about 88 on.
ORT-RECURRENT-DEFAULTS 1.31-1.32 WRONG_NUMBERS
    Affine, ScaledTanh and ThresholdedRelu in a recurrent node take 0 for each parameter that is not given.
ORT-RECURRENT-EMPTY-ROW 1.31-1.32 WRONG_NUMBERS
    A row of length 0 ends in zeros instead of its initial state.
ORT-RNN-NO-STEPS 1.31-1.32 WRONG_NUMBERS
    An RNN without steps ends in zeros instead of its initial state.
ORT-GRU-NO-STEPS 1.31-1.32 DEATH
    A GRU without lengths and steps ends the process.
ORT-LSTM-NO-STEPS 1.31-1.32 GARBAGE
    An LSTM without lengths and steps gives uninitialised memory as its last cell.
ORT-RECURRENT-NO-ROWS 1.31-1.32 DEATH
    A GRU or LSTM without rows ends the process.
ORT-QUANTIZED-LSTM-NO-STEPS 1.32 GARBAGE
    A DynamicQuantizeLSTM without lengths and steps gives uninitialised memory as its last cell.
ORT-QUANTIZED-LSTM-NO-ROWS 1.32 DEATH
    A DynamicQuantizeLSTM without rows ends the process.
ORT-RECURRENT-HIDDEN-SIZE 1.31-1.32 REFUSAL
    A recurrent node without hidden_size, which the text lets it leave out, is not loaded.
ORT-RECURRENT-ACTIVATION-NAMES 1.31-1.32 REFUSAL
    An RNN refuses names of activations in small letters, which GRU and LSTM take.
ORT-RECURRENT-CLIP 1.31-1.32 REFUSAL
    A GRU or LSTM whose clip is 0 or less, by which exporters mean none, is not loaded.
ORT-RECURRENT-NAN 1.31-1.32 WRONG_NUMBERS
    Activations of recurrent nodes take NaN for a number: Relu of an RNN gives 0.
# The optimiser: what it moves, fuses, folds or drops, and should not
ORT-CAST-AFTER-TRANSPOSE 1.31-1.32 DEATH
    A Cast between a Transpose and a MatMul of unequal ranks ends the process that loads it, by a fused product.
ORT-HALVES-AFTER-TRANSPOSE 1.32 DEATH
    A MatMul of float16 that reads a Transpose and an operand of another rank ends the process that loads it.
ORT-DEQUANTIZED-INTO-BODY 1.32 DEATH
    Dequantized numbers that are moved, and then read in a body or branch, end the process that loads them.
ORT-DEQUANTIZED-INT8 1.32 REFUSAL
    From opset 21 on, dequantized int8 that is moved is quantized anew as uint8, which is then refused.
ORT-DEQUANTIZED-INT32 1.32 REFUSAL
    Dequantized int32 that is moved is quantized anew to int32, which no QuantizeLinear gives, and is then refused.
ORT-QUANTIZED-OUTPUT 1.32 WRONG_NUMBERS
    An output that is transposed and quantized for another reader is given out quantized and dequantized.
ORT-QUANTIZED-WEIGHTS 1.32 WRONG_NUMBERS
    Constant float weights of a Conv, ConvTranspose or Gemm of what was dequantized are made int8.
ORT-DEQUANTIZED-OUTER-WEIGHTS 1.32 REFUSAL
    A body that dequantizes constant weights of a graph around it for a single product does not load.
ORT-RETURNING-CASTS 1.32 REFUSAL
    Casts to a wider type and back are dropped although a body or branch reads the result, which it then misses.
ORT-TRANSPOSED-TIMES-VECTOR 1.31-1.32 WRONG_NUMBERS
    A Transpose before a product with a vector is fused into it, which then multiplies the matrix as it was.
ORT-GATHER-AT-RANGE 1.31-1.32 NO_ERROR
    A Gather at a Range becomes a Slice, which gives fewer rows where the Gather fails out of range.
ORT-RESHAPE-FUSED 1.32 NO_ERROR
    A computed size of a Reshape is left to be inferred, so that one to a wrong number of elements runs.
ORT-SHARED-MEMORY 1.31-1.32 REFUSAL
    Tensors whose sizes have one name share memory; a Slice of opset 10 keeps the name, and the run fails.
ORT-DEQUANTIZED-CAPTURED 1.32 DEATH
    What was dequantized, and moved then (reshaped, transposed, cut, …), for a graph within ends the process at load.
ORT-FOLDED-JOINS 1.32 MEMORY
    Constants joined with themselves again and again are computed when a model is loaded, however large they become.
ORT-PRODUCT-OF-NOTHING 1.31 REFUSAL
    Products do not broadcast to an axis of size 0, and a MatMul that is fused with an Add or Transpose fails on one.
    No test: not met with onnxruntime 1.32, whatever sizes were tried
ORT-NEGATIVE-AXIS-OF-NOTHING 1.31 WRONG_SIZES
    Some operators give wrong shapes for a negative axis of a tensor without elements.
    No test: not met with onnxruntime 1.32, whatever sizes were tried
ORT-BERNOULLI-MERGED 1.31 WRONG_NUMBERS
    Two Bernoulli of one operand are taken for one.
    No test: not met with onnxruntime 1.32 in any form of the operator that was tried
# Kernels: tensors without elements, numbers at the edges, missing types, odd ways to write a node
ORT-EINSUM-OF-NOTHING 1.31-1.32 DEATH
    Some Einsums of operands without elements end the process.
ORT-UNIQUE-OF-NOTHING 1.31-1.32 DEATH
    A Unique along an axis ends the process where another axis has size 0.
ORT-CONV-EMPTY-FILTER 1.31-1.32 HANG
    A convolution with a computed filter that has a size of 0 never ends.
ORT-LAYERNORM-EMPTY-NAME 1.31-1.32 DEATH
    A LayerNormalization whose last input is an empty name ends the process.
ORT-DIVISION-OVERFLOW 1.31-1.32 DEATH
    The least integer of a type divided by -1 ends the process that runs it, or folds it.
ORT-GATHER-STRINGS 1.31-1.32 WRONG_NUMBERS
    A Gather of rows of strings copies the first string of each row and leaves the others empty.
ORT-WHERE-MINUS-ZERO 1.32 WRONG_NUMBERS
    Where gives 0 where it takes -0 from its second operand; from the third it takes -0 as it is.
ORT-REDUCED-INTEGERS 1.32 WRONG_NUMBERS
    ReduceSum of integers stops at the largest one, where Add wraps around.
ORT-REDUCED-NAN 1.32 WRONG_NUMBERS
    ReduceMax, ReduceMin, ArgMax and ArgMin drop NaN or not, by its position and the number of elements.
ORT-SATURATED-PRODUCTS 1.32 WRONG_NUMBERS
    Without VNNI, products of uint8 with int8 are added in pairs that stop at 32767, as in MatMulInteger.
    No test: It needs a processor without VNNI.
ORT-LOGSOFTMAX-NAN 1.31-1.32 WRONG_NUMBERS
    A LogSoftmax of float64 gives large numbers for those beside NaN, unless NaN comes first.
ORT-CLIP-HALF 1.31-1.32 WRONG_NUMBERS
    From opset 12 on, a Clip of float16 without an upper bound makes infinity the greatest number; before, it stays.
ORT-LOG-SUM-EXP-28 1.32 WRONG_NUMBERS
    From opset 28 on, ReduceLogSumExp overflows above 88 and gives -inf below -103; up to 27 it does not.
ORT-LOG-SUM-EXP-FIRST 1.32 WRONG_NUMBERS
    ReduceLogSumExp over some of the axes gives -inf if the first number is infinite and all others are below -103.
ORT-ATTENTION-SCORES 1.32 WRONG_NUMBERS
    Up to opset 24, Attention (mode 2) gives finite scores for masked positions; from 25 on they are -inf.
ORT-CONCAT-MISFIT 1.32 GARBAGE
    A tensor without elements may have any sizes in a Concat; rows that it is counted for are memory nothing wrote.
ORT-PAD-WRAP-OF-NOTHING 1.31-1.32 REFUSAL
    A Pad that wraps fails on a tensor without elements, whatever axis it pads.
ORT-GROUPNORM-OF-NOTHING 1.31-1.32 REFUSAL
    A GroupNormalization fails on a batch of no rows, since it infers a dimension.
ORT-ATTENTION-OF-NOTHING 1.32 REFUSAL
    An Attention fails on a batch of no rows.
ORT-RESIZE-AXES 1.31-1.32 REFUSAL
    A Resize interpolates over two axes, or three, and only where those before them keep their sizes.
ORT-WHERE-TYPES 1.31-1.32 REFUSAL
    There is no Where for bool, int16, uint16, uint64 and bfloat16.
ORT-CONSTANT-BFLOAT16 1.31 REFUSAL
    There is no ConstantOfShape for bfloat16.
    No test: onnxruntime 1.32 has one
ORT-NODE-NAMES 1.31-1.32 REFUSAL
    Two nodes of one name are refused, though the name of a node means nothing.
ORT-UNSTOPPABLE-NODE 1.32 HANG
    A run that is to end does so between two nodes only, however long one of them works.
    No test: a node that works for seconds has to be waited for
# Inference of shapes in onnx, of which onnxruntime has a copy; the parser of texts; the reference of operators
ONNX-SLICE-UNKNOWN-BOUNDS 1.23 WRONG_SIZES
    The bounds of a Slice of sizes that are not known are taken for 0: what is made from it gets another rank.
ONNX-AXES-WITHOUT-SHAPE 1.23 WRONG_SIZES
    Axes and steps of a Slice, and axes of a Pad, of which no shape is known are taken for absent.
ONNX-CAPTURED-CONSTANTS 1.23 OPEN_SIZES
    In a body, constants of the graphs around it are not known: a Reshape, or a Slice of sizes, by one is left open.
ONNX-NAMES-OF-OTHER-GRAPHS 1.23 WRONG_SIZES
    Integers are followed by name alone: what a value holds in one branch counts for another of its name elsewhere.
ONNX-SLICE-10-NAMES 1.23 WRONG_SIZES
    What a Slice of opset 10 cuts from an axis keeps the name of the axis' size.
ONNX-OUTER-PRODUCT 1.23 REFUSAL
    From opset 14 on, an Unsqueeze of a vector is followed as if it still were one: 3 of them by 2 are refused.
ONNX-IF-10-SIZES 1.23 WRONG_SIZES
    Before opset 11 a size that one branch of an If tells is taken for what both give.
ONNX-STALE-DECLARATIONS 1.23 WRONG_SIZES
    What a model declares of an inner value is believed, even where the operators contradict it.
ONNX-LONG-VECTORS 1.23 MEMORY
    Vectors of integers are followed element by element, at some 100 bytes for each.
ONNX-SPLIT-OUTPUTS 1.23 DEATH
    The inference of a Split with more outputs than its num_outputs ends the process, in onnxruntime too.
ONNX-NEGATIVE-SIZE 1.23 DEATH
    A declared size below zero is taken for a number: a Slice along it ends the process, a Concat is refused.
ONNX-TEXT-DEPTH 1.23 DEATH
    The parser of ONNX text ends the process over brackets nested some thousands deep.
ONNX-STFT-ONESIDED 1.23 WRONG_SIZES
    An STFT that does not say whether it is one-sided, as it is then, gets the size of a two-sided spectrum.
ONNX-RANGE-VECTOR 1.23 REFUSAL
    A Range by a vector of one number passes, and is refused once that number is a constant.
ONNX-REFERENCE-OPERATORS 1.23 WRONG_NUMBERS
    The reference computes something else than the text, or nothing, in Erf, LRN, OneHot, Softsign, TopK and others.
ONNX-REFERENCE-SCAN 1.23 REFUSAL
    The reference of Scan knows neither directions nor other axes than the first.
"""
"""For each defect its id, the versions and its kind, then the symptom, then why no test shows it, if none does."""

_ENTRY = re.compile(r"^(\S+) (\S+) ([A-Z_]+)\n    (.+)(?:\n    No test: (.+))?$", re.MULTILINE)

QUIRKS = {name: Quirk(name, seen, Kind[kind], *rest) for name, seen, kind, *rest in _ENTRY.findall(_REGISTER)}
"""By id."""
