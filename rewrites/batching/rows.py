"""Operators of the ai.onnx.ml domain. They work on single elements, or on single rows of features.

If an operator returns a result for each row, it treats data of shape ``[features]`` as one row, ``[1, features]``. onnxruntime may
sum over trees, support vectors and features in an order that depends on the number of rows.
"""

from collections.abc import Sequence

from rewrites.batching.alignment import stacked_operand
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import first_dim, fold_operand, unfold_results
from rewrites.batching.table import rule

__all__ = ["each_element", "each_feature", "each_row", "joined_features", "picked_features"]

_ML = "ai.onnx.ml"


@rule("Binarizer", "CategoryMapper", "LabelEncoder", domain=_ML)
def each_element(call: Call) -> Sequence[Result]:
    """Emit the node unchanged, because the operator works on each element separately."""
    return call.emit(call.values)


@rule("Imputer", "Normalizer", "Scaler", domain=_ML)
def each_feature(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its rows. The result has the shape of the data.

    Data with more than two axes are refused.
    """
    if call.rank(0) == 1:
        return call.emit(call.values)
    if call.rank(0) != 2:
        raise call.refuse("NO-BATCHING-RULE", f"features of rank {call.rank(0)}")
    return unfold_results(call, call.build.like(call.node, [fold_operand(call, 0)]), first_dim(call, 0))


@rule("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor", domain=_ML)
@rule("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", domain=_ML)
def each_row(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its rows. The operator returns results for each row."""
    if call.rank(0) not in (1, 2):
        raise call.refuse("NO-BATCHING-RULE", f"features of rank {call.rank(0)}")
    if call.rank(0) == 1:
        return unfold_results(call, call.build.like(call.node, call.values), 1)
    return unfold_results(call, call.build.like(call.node, [fold_operand(call, 0)]), first_dim(call, 0))


@rule("FeatureVectorizer", domain=_ML)
def joined_features(call: Call) -> Sequence[Result]:
    """Emit one FeatureVectorizer for all steps.

    Each of its inputs has the rows of all steps, [steps * rows, features]. A FeatureVectorizer concatenates the features of several
    inputs.
    """
    if any(call.rank(index) != 2 for index in range(len(call.operands))):
        raise call.refuse("NO-BATCHING-RULE", "inputs that are not rows of features")
    values = [fold_operand(call, index) for index in range(len(call.operands))]
    return unfold_results(call, call.build.like(call.node, values), first_dim(call, 0))


@rule("ArrayFeatureExtractor", domain=_ML)
def picked_features(call: Call) -> Sequence[Result]:
    """Emit a node that picks the same elements of the last axis in every step.

    The indices must be loop-invariant.
    """
    call.require_invariant(1)
    if call.rank(0) < 2:
        raise call.refuse("NO-BATCHING-RULE", "a vector of features")
    return call.emit([stacked_operand(call, 0), call.value(1)])
