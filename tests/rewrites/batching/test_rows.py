"""Operators of the ai.onnx.ml domain."""

import pytest

from tests.rewrites.batching.harness import F32, F64, I64, case, check, given, refusal, same, steps

ML = "ai.onnx.ml"
ROWS = ((4,), (2, 4))
LEAF = "nodes_falsenodeids=[2, 0, 0, 2, 0, 0], nodes_truenodeids=[1, 0, 0, 1, 0, 0]"
TREES = f"""nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[0, 1, 2, 0, 1, 2], nodes_featureids=[0, 0, 0, 3, 0, 0],
    nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"], nodes_values=[0.1, 0.0, 0.0, -0.2, 0.0, 0.0], {LEAF}"""


def test_every_element_by_itself() -> None:
    check([case(f"y = {ML}.Binarizer <threshold=0.3> (x)", x=steps(F32, *shape)) for shape in ((), (3,), (2, 3, 2))])
    encode = f"y = {ML}.LabelEncoder <keys_int64s=[1, 2, 3], values_floats=[0.5, 2.5, 3.5], default_float=-1.0> (x)"
    check([case(encode, x=steps(I64, *shape)) for shape in ((), (3,), (2, 3, 2))])
    mapped = f'y = {ML}.CategoryMapper <cats_int64s=[1, 2, 3], cats_strings=["a", "b", "c"]> (x)'
    check([case(mapped, x=steps(I64, *shape)) for shape in ((3,), (2, 3))])


def test_features_of_rows() -> None:
    texts = [
        f"y = {ML}.Scaler <offset=[0.5, 1.5, 0.0, 2.0], scale=[1.0, 2.0, 3.0, 0.5]> (x)",
        f"y = {ML}.Scaler <offset=[0.5], scale=[2.0]> (x)",
    ]
    texts += [f'y = {ML}.Normalizer <norm="{norm}"> (x)' for norm in ("MAX", "L1", "L2")]
    texts.append(f"y = {ML}.Imputer <imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=0.0> (x)")
    check([case(text, x=steps(F32, *shape)) for text in texts for shape in ROWS], empty=False)
    for text in texts:
        assert refusal(case(text, x=steps(F32, 2, 3, 4))) == "NO-BATCHING-RULE"


REGRESSORS = (
    "LinearRegressor <coefficients=[0.5, -0.3, 0.2, 1.0, 2.0, -1.0, 0.1, 0.7], intercepts=[0.1, 0.2], targets=2>",
    f"TreeEnsembleRegressor <{TREES}, n_targets=1, target_treeids=[0, 0, 1, 1], target_nodeids=[1, 2, 1, 2], target_ids=[0, 0, 0, 0], "
    "target_weights=[1.5, 2.5, 0.25, -0.5]>",
    'SVMRegressor <kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0], n_supports=2, coefficients=[1.0, -0.5], rho=[0.3], '
    "support_vectors=[0.1, 0.2, 0.3, 0.4, -0.5, 0.6, -0.7, 0.8]>",
)
REGRESSORS += (
    "TreeEnsemble <tree_roots=[0], n_targets=1, nodes_featureids=[0], nodes_splits=float[1] {0.1}, nodes_modes=uint8[1] {0}, "
    "nodes_truenodeids=[0], nodes_falsenodeids=[1], nodes_trueleafs=[1], nodes_falseleafs=[1], leaf_targetids=[0, 0], "
    "leaf_weights=float[2] {1.5, 2.5}>",
)
CLASSIFIERS = (
    "LinearClassifier <coefficients=[0.5, -0.3, 0.2, 1.0, 2.0, -1.0, 0.1, 0.7, -0.5, 0.9, 1.1, 0.3], intercepts=[0.1, 0.2, 0.3], "
    'classlabels_strings=["a", "b", "c"], multi_class=1, post_transform="SOFTMAX">',
    f"TreeEnsembleClassifier <{TREES}, classlabels_int64s=[3, 7], class_treeids=[0, 0, 1, 1], class_nodeids=[1, 2, 1, 2], "
    "class_ids=[0, 1, 0, 1], class_weights=[1.5, 2.5, 0.25, 0.5]>",
    'SVMClassifier <kernel_type="LINEAR", kernel_params=[0.5, 0.0, 3.0], vectors_per_class=[1, 1], coefficients=[1.0, -0.5], '
    "rho=[0.3], support_vectors=[0.1, 0.2, 0.3, 0.4, -0.5, 0.6, -0.7, 0.8], classlabels_ints=[0, 1]>",
)


def _rows(model: str) -> tuple[tuple[int, ...], ...]:
    """Trees take no single row without an axis of rows."""
    return ROWS[1:] if "Tree" in model else ROWS


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda text: text.split()[0])
def test_regression_of_rows(model: str) -> None:
    check([case(f"y = {ML}.{model} (x)", x=steps(F32, *shape)) for shape in _rows(model)], empty=False)
    assert refusal(case(f"y = {ML}.{model} (x)", x=steps(F32, 2, 3, 4))) == "NO-BATCHING-RULE"


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda text: text.split()[0])
def test_classes_of_rows(model: str) -> None:
    check([case(f"l, p = {ML}.{model} (x)", x=steps(F32, *shape)) for shape in _rows(model)], empty=False)


def test_features_picked_and_joined() -> None:
    pick = f"y = {ML}.ArrayFeatureExtractor (x, i)"
    check([case(pick, x=steps(F32, *shape), i=given([2, 0], I64)) for shape in ((2, 3), (2, 2, 3))], empty=False)
    assert refusal(case(pick, x=steps(F32, 2, 3), i=steps(I64, 2, low=0, high=3))) == "BATCHED-STRUCTURE"
    assert refusal(case(pick, x=steps(F32, 3), i=given([2, 0], I64))) == "NO-BATCHING-RULE"
    join = f"y = {ML}.FeatureVectorizer <inputdimensions=[3, 2]> (a, b)"
    check([case(join, a=steps(F32, 2, 3), b=other(F32, 2, 2)) for other in (steps, same)], empty=False)
    assert refusal(case(join, a=steps(F64, 3), b=steps(F64, 2))) == "NO-BATCHING-RULE"
