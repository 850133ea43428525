"""Operators of the ai.onnx.ml domain, as onnxruntime's CPU provider runs them: on each element, or on each row of features.

A step of one row, ``[features]``, means ``[1, features]`` if the operator returns results for rows. Sums over trees, support
vectors and features are computed row by row, in an order that may depend on the number of rows.
"""

from collections.abc import Sequence

from rewrites.batching.alignment import expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import first_dim, folded, unfolded
from rewrites.batching.table import rule

__all__ = ["each_element", "each_feature", "each_row", "joined_features", "picked_features"]

_ML = "ai.onnx.ml"


@rule("Binarizer", "CategoryMapper", "LabelEncoder", domain=_ML)
def each_element(call: Call) -> Sequence[Result]:
    """Each element separately, for any shape."""
    return call.like(call.values)


@rule("Imputer", "Normalizer", "Scaler", domain=_ML)
def each_feature(call: Call) -> Sequence[Result]:
    """Rows keep their shape. More than two axes have no agreed meaning."""
    if call.rank(0) == 1:
        return call.like(call.values)
    if call.rank(0) != 2:
        raise call.refuse("NO-BATCHING-RULE", f"features of rank {call.rank(0)}")
    return unfolded(call, call.build.like(call.node, [folded(call, 0)]), first_dim(call, 0))


@rule("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor", domain=_ML)
@rule("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", domain=_ML)
def each_row(call: Call) -> Sequence[Result]:
    """Return results for each row of features."""
    if call.rank(0) not in (1, 2):
        raise call.refuse("NO-BATCHING-RULE", f"features of rank {call.rank(0)}")
    if call.rank(0) == 1:
        return unfolded(call, call.build.like(call.node, call.values), 1)
    return unfolded(call, call.build.like(call.node, [folded(call, 0)]), first_dim(call, 0))


@rule("FeatureVectorizer", domain=_ML)
def joined_features(call: Call) -> Sequence[Result]:
    """The features of several inputs side by side."""
    if any(call.rank(index) != 2 for index in range(len(call.operands))):
        raise call.refuse("NO-BATCHING-RULE", "inputs that are not rows of features")
    values = [folded(call, index) for index in range(len(call.operands))]
    return unfolded(call, call.build.like(call.node, values), first_dim(call, 0))


@rule("ArrayFeatureExtractor", domain=_ML)
def picked_features(call: Call) -> Sequence[Result]:
    """Elements of the last axis, the same ones in every step."""
    call.same_each_step(1)
    if call.rank(0) < 2:
        raise call.refuse("NO-BATCHING-RULE", "a vector of features")
    return call.like([expanded(call, 0), call.value(1)])
