"""Operators that onnxruntime runs, or refuses, at size zero without harm: each was run with every axis empty, alone and together.

Everything else is run in a process of its own (``own_process``). Names count in the standard domain unless they come with theirs.
"""

__all__ = ["STURDY", "STURDY_ELSEWHERE"]

_ELEMENTWISE = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos
Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual
Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt
Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
"""
_REDUCING = """
ArgMax ArgMin CumSum Hardmax LayerNormalization LogSoftmax LpNormalization MeanVarianceNormalization RMSNormalization
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax TopK
"""
_MOVING = """
Compress Concat Constant ConstantOfShape DepthToSpace Dropout Expand EyeLike Flatten Gather GatherElements GatherND NonZero OneHot
Pad Range Reshape ReverseSequence Scatter ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose
Trilu Unsqueeze
"""
_LINEAR = "Gemm MatMul MatMulInteger DequantizeLinear DynamicQuantizeLinear QuantizeLinear"
_IMAGES = "CenterCropPad Col2Im DFT Det GridSample NonMaxSuppression Resize STFT Upsample"
_POOLING = """
AveragePool BatchNormalization GlobalAveragePool GlobalMaxPool GroupNormalization InstanceNormalization LRN LpPool MaxPool
"""
_RANDOM = "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
_HOLDING = """
ConcatFromSequence If Loop Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceErase
SequenceInsert SequenceLength SplitToSequence StringNormalizer
"""

STURDY = frozenset(" ".join((_ELEMENTWISE, _REDUCING, _MOVING, _LINEAR, _IMAGES, _POOLING, _RANDOM, _HOLDING)).split())
STURDY_ELSEWHERE = frozenset([("ai.onnx.ml", "ArrayFeatureExtractor")])
