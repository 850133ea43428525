"""The first opsets in which operators have the features that rewrites need.

Sources: the operators' specifications and changelogs. ``rewrites.ops.versions`` handles the older and newer forms.
"""

__all__ = [
    "ALLOWZERO",
    "CONSTANT_OF_SHAPE",
    "CONSTANT_TYPES",
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
    "SCATTER_ND",
    "SCATTER_REDUCTION",
    "SHAPE_RANGE",
    "SLICE_INPUTS",
    "SOFTMAX_OF_ONE_AXIS",
    "STATELESS_LOOPS",
    "WHERE",
]

NATIVE_CELLS = 7  # RNN, GRU and LSTM in their current form, without ``output_sequence``
EXPAND = 8
CONSTANT_OF_SHAPE = 9
CONSTANT_TYPES = 9  # Constant holds all types; before, only floats
CUM_PROD = 26
CUM_SUM = 11
INTEGER_LESS = 9  # Less and Greater compare integers
SCAN = 9  # Scan without its own batch axis
WHERE = 9
REVERSE_SEQUENCE = 10
SLICE_INPUTS = 10  # Slice takes its bounds as inputs, and has steps, which may be negative
GEMM_WITHOUT_C = 11
IF_SIZES_APART = 11  # for an If, onnx infers only sizes that both branches have
NATIVE_MASKS = 11  # the operators that count sequence lengths take booleans and integers
NEGATIVE_AXES = 11  # Squeeze, Unsqueeze, Concat and reductions accept negative axes
RANGE = 11
ROUND = 11
SCATTER_ND = 11
STATELESS_LOOPS = 11  # Loop needs no state
INTEGER_MAX = 12  # Max and Min accept integers
QUANTIZED_AXIS = 13  # QuantizeLinear and DequantizeLinear accept a scale for each index of an axis
SOFTMAX_OF_ONE_AXIS = 13  # Softmax is along one axis; before, along all axes from ``axis`` on
ALLOWZERO = 14  # Reshape can treat a 0 as a size of zero
IDENTITY_OF_SEQUENCES = 14
SHAPE_RANGE = 15  # Shape can return a range of dimensions
IDENTITY_OF_OPTIONALS = 16
SCATTER_REDUCTION = 16  # ScatterND can add to the old elements, or multiply them
FLOAT8_RESHAPE = 21  # Reshape and other operators that move elements accept float8
PLAIN_LOG_SUM_EXP = 28  # onnxruntime computes ReduceLogSumExp as the logarithm of a sum of powers, which overflows
