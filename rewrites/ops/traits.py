"""The traits of the operators of the standard domain, one row per operator.

An operator is *speculatable* if it never fails, so that it may run even if its result is not needed.

* ``elementwise``: each element of the result depends only on the elements at the same position, after broadcasting.
* ``total``: never fails, whatever the elements and sizes of the inputs. It is speculatable.
* ``calculates``: never fails because of the elements of its inputs. It is speculatable if the sizes of its inputs are known to fit.
* ``shaped``: may fail because of its later inputs (sizes, axes or indices), but not because of the elements of the first input.
* ``indexed``: may fail because of its second input, which contains indices.
* ``random``: returns different numbers in every run.
* ``recurrent``: runs over the steps of sequences. Its fifth input has the number of steps of each row.
* ``copies``: the result contains all elements of the first input, and no others. Elements may be repeated.
* ``survives-empty``: onnxruntime runs or refuses empty tensors without a crash. This was tested with each axis empty, and with all
  axes empty. Operators without this trait run in a subprocess if sizes may be zero.
"""

from functools import cache

__all__ = ["TRAITS", "operators"]

_ROWS = """
Abs                        elementwise total calculates survives-empty
Acos                       elementwise calculates survives-empty
Acosh                      elementwise calculates survives-empty
Add                        elementwise calculates survives-empty
And                        elementwise calculates survives-empty
ArgMax                     calculates survives-empty
ArgMin                     calculates survives-empty
Asin                       elementwise calculates survives-empty
Asinh                      elementwise calculates survives-empty
Atan                       elementwise calculates survives-empty
Atanh                      elementwise calculates survives-empty
AveragePool                calculates survives-empty
BatchNormalization         calculates survives-empty
Bernoulli                  random survives-empty
BitShift                   elementwise survives-empty
BitwiseAnd                 elementwise calculates survives-empty
BitwiseNot                 elementwise calculates survives-empty
BitwiseOr                  elementwise calculates survives-empty
BitwiseXor                 elementwise calculates survives-empty
Cast                       elementwise survives-empty
CastLike                   elementwise survives-empty
Ceil                       elementwise total calculates survives-empty
Celu                       elementwise calculates survives-empty
CenterCropPad              survives-empty
Clip                       elementwise calculates survives-empty
Col2Im                     survives-empty
Compress                   survives-empty
Concat                     calculates survives-empty
ConcatFromSequence         survives-empty
Constant                   total calculates survives-empty
ConstantOfShape            survives-empty
Conv                       calculates
ConvTranspose              calculates
Cos                        elementwise total calculates survives-empty
Cosh                       elementwise calculates survives-empty
CumSum                     shaped survives-empty
DFT                        survives-empty
DepthToSpace               calculates survives-empty
DequantizeLinear           calculates survives-empty
Det                        survives-empty
Div                        elementwise survives-empty
Dropout                    survives-empty
DynamicQuantizeLinear      calculates survives-empty
Einsum                     calculates
Elu                        elementwise total calculates survives-empty
Equal                      elementwise calculates survives-empty
Erf                        elementwise total calculates survives-empty
Exp                        elementwise total calculates survives-empty
Expand                     shaped copies survives-empty
EyeLike                    calculates survives-empty
Flatten                    calculates survives-empty
Floor                      elementwise total calculates survives-empty
GRU                        recurrent
Gather                     shaped survives-empty
GatherElements             shaped survives-empty
GatherND                   shaped survives-empty
Gelu                       elementwise total calculates survives-empty
Gemm                       calculates survives-empty
GlobalAveragePool          calculates survives-empty
GlobalLpPool               calculates
GlobalMaxPool              calculates survives-empty
Greater                    elementwise calculates survives-empty
GreaterOrEqual             elementwise calculates survives-empty
GridSample                 survives-empty
GroupNormalization         calculates survives-empty
HardSigmoid                elementwise total calculates survives-empty
HardSwish                  elementwise calculates survives-empty
Hardmax                    calculates survives-empty
Identity                   elementwise total calculates copies survives-empty
If                         survives-empty
InstanceNormalization      calculates survives-empty
IsInf                      elementwise total calculates survives-empty
IsNaN                      elementwise total calculates survives-empty
LRN                        calculates survives-empty
LSTM                       recurrent
LayerNormalization         calculates survives-empty
LeakyRelu                  elementwise total calculates survives-empty
Less                       elementwise calculates survives-empty
LessOrEqual                elementwise calculates survives-empty
Log                        elementwise total calculates survives-empty
LogSoftmax                 calculates survives-empty
Loop                       survives-empty
LpNormalization            calculates survives-empty
LpPool                     calculates survives-empty
MatMul                     calculates survives-empty
MatMulInteger              calculates survives-empty
Max                        elementwise calculates survives-empty
MaxPool                    calculates survives-empty
Mean                       elementwise calculates survives-empty
MeanVarianceNormalization  calculates survives-empty
Min                        elementwise calculates survives-empty
Mish                       elementwise calculates survives-empty
Mod                        elementwise survives-empty
Mul                        elementwise calculates survives-empty
Multinomial                random survives-empty
Neg                        elementwise total calculates survives-empty
NonMaxSuppression          survives-empty
NonZero                    survives-empty
Not                        elementwise total calculates survives-empty
OneHot                     survives-empty
Optional                   survives-empty
OptionalGetElement         survives-empty
OptionalHasElement         survives-empty
Or                         elementwise calculates survives-empty
PRelu                      elementwise calculates survives-empty
Pad                        shaped survives-empty
Pow                        elementwise calculates survives-empty
QLinearConv                calculates
QLinearMatMul              calculates
QuantizeLinear             calculates survives-empty
RMSNormalization           calculates survives-empty
RNN                        recurrent
RandomNormal               random survives-empty
RandomNormalLike           random survives-empty
RandomUniform              random survives-empty
RandomUniformLike          random survives-empty
Range                      survives-empty
Reciprocal                 elementwise total calculates survives-empty
ReduceL1                   shaped survives-empty
ReduceL2                   shaped survives-empty
ReduceLogSum               shaped survives-empty
ReduceLogSumExp            shaped survives-empty
ReduceMax                  shaped survives-empty
ReduceMean                 shaped survives-empty
ReduceMin                  shaped survives-empty
ReduceProd                 shaped survives-empty
ReduceSum                  shaped survives-empty
ReduceSumSquare            shaped survives-empty
Relu                       elementwise total calculates survives-empty
Reshape                    shaped copies survives-empty
Resize                     shaped survives-empty
ReverseSequence            survives-empty
Round                      elementwise total calculates survives-empty
STFT                       survives-empty
Scatter                    indexed survives-empty
ScatterElements            indexed survives-empty
ScatterND                  indexed survives-empty
Selu                       elementwise total calculates survives-empty
SequenceAt                 survives-empty
SequenceConstruct          survives-empty
SequenceEmpty              survives-empty
SequenceErase              survives-empty
SequenceInsert             survives-empty
SequenceLength             survives-empty
Shape                      total calculates survives-empty
Shrink                     elementwise calculates survives-empty
Sigmoid                    elementwise total calculates survives-empty
Sign                       elementwise total calculates survives-empty
Sin                        elementwise total calculates survives-empty
Sinh                       elementwise calculates survives-empty
Size                       total calculates survives-empty
Slice                      shaped survives-empty
Softmax                    calculates survives-empty
Softplus                   elementwise total calculates survives-empty
Softsign                   elementwise total calculates survives-empty
SpaceToDepth               calculates survives-empty
Split                      shaped survives-empty
SplitToSequence            survives-empty
Sqrt                       elementwise total calculates survives-empty
Squeeze                    shaped copies survives-empty
StringNormalizer           survives-empty
Sub                        elementwise calculates survives-empty
Sum                        elementwise calculates survives-empty
Swish                      elementwise calculates survives-empty
Tan                        elementwise calculates survives-empty
Tanh                       elementwise total calculates survives-empty
ThresholdedRelu            elementwise calculates survives-empty
Tile                       shaped copies survives-empty
TopK                       shaped survives-empty
Transpose                  calculates copies survives-empty
Trilu                      shaped survives-empty
Unsqueeze                  shaped copies survives-empty
Upsample                   shaped survives-empty
Where                      elementwise calculates survives-empty
Xor                        elementwise calculates survives-empty
"""

TRAITS = {row.split()[0]: frozenset(row.split()[1:]) for row in _ROWS.strip().splitlines()}
"""The traits of each operator, by the operator's name."""


@cache
def operators(trait: str) -> frozenset[str]:
    """Return the operators that have ``trait``."""
    names = frozenset(name for name, traits in TRAITS.items() if trait in traits)
    assert names, f"no operator has the trait {trait}"
    return names
