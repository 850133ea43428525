"""From which opset on operators can do what rewrites need: one table for all of it.

Sources: the operators' texts and their changelogs. What an operator looks like before and after is in ``rewrites.ops.versions``.
"""

__all__ = [
    "ALLOWZERO",
    "CONSTANT_OF_SHAPE",
    "CUM_PROD",
    "CUM_SUM",
    "EXPAND",
    "FLOAT8_RESHAPE",
    "GEMM_WITHOUT_C",
    "IDENTITY_OF_OPTIONALS",
    "IDENTITY_OF_SEQUENCES",
    "IF_SIZES_APART",
    "INTEGER_LESS",
    "INTEGER_MAX",
    "NATIVE_CELLS",
    "NATIVE_MASKS",
    "NEGATIVE_AXES",
    "PLAIN_LOG_SUM_EXP",
    "QUANTIZED_AXIS",
    "RANGE",
    "REVERSE_SEQUENCE",
    "ROUND",
    "SCAN",
    "SCATTER_REDUCTION",
    "SHAPE_RANGE",
    "SLICE_INPUTS",
    "SOFTMAX_OF_ONE_AXIS",
    "STATELESS_LOOPS",
    "WHERE",
]

NATIVE_CELLS = 7  # RNN, GRU and LSTM as they still are, without ``output_sequence``
EXPAND = 8
CONSTANT_OF_SHAPE = 9
CUM_PROD = 26
CUM_SUM = 11
INTEGER_LESS = 9  # Less and Greater compare integers
SCAN = 9  # Scan without a batch axis of its own
WHERE = 9
REVERSE_SEQUENCE = 10
SLICE_INPUTS = 10  # Slice takes its bounds as inputs, and steps, which may be negative
GEMM_WITHOUT_C = 11
IF_SIZES_APART = 11  # onnx infers of an If what both branches tell, not what one of them does
NATIVE_MASKS = 11  # what lengths of rows are counted by takes booleans and integers as it needs to
NEGATIVE_AXES = 11  # Squeeze, Unsqueeze, Concat and reductions count axes from the end too
RANGE = 11
ROUND = 11
STATELESS_LOOPS = 11  # Loop needs no state
INTEGER_MAX = 12  # Max and Min take integers
QUANTIZED_AXIS = 13  # QuantizeLinear and DequantizeLinear take scales for each index of an axis
SOFTMAX_OF_ONE_AXIS = 13  # Softmax is along one axis, not all from one on
ALLOWZERO = 14  # Reshape can take a 0 for a size of zero
IDENTITY_OF_SEQUENCES = 14
SHAPE_RANGE = 15  # Shape gives some dimensions only
IDENTITY_OF_OPTIONALS = 16
SCATTER_REDUCTION = 16  # ScatterND adds to what is there, or multiplies it
FLOAT8_RESHAPE = 21  # Reshape and other movement take float8
PLAIN_LOG_SUM_EXP = 28  # onnxruntime computes ReduceLogSumExp as the logarithm of a sum of powers, which overflows
