import re
from pathlib import Path

import onnx_ir as ir
import pytest

from rewrites.batching import has_rule
from rewrites.batching.table import _table
from tests.rewrites.batching.harness import F32, I64, case, refusal, same, steps


def test_operators_without_a_rule_say_so() -> None:
    assert refusal(case("y = com.microsoft.CDist (x, x)", x=steps(F32, 2, 2))) == "NO-BATCHING-RULE"


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"])
def test_random_operators_are_refused(op: str) -> None:
    assert refusal(case(f"y = {op} (x)", x=steps(F32, 2, 2))) == "RANDOM"


def test_results_of_sizes_that_may_differ_are_refused() -> None:
    for op in ("BlackmanWindow", "HammingWindow", "HannWindow"):
        assert refusal(case(f"y = {op} (x)", x=steps(I64))) == "DATA-DEPENDENT-SHAPE"
    split = case("y, n = StringSplit (x)", x=steps("str", 2))
    assert refusal(split, opset=20) == "DATA-DEPENDENT-SHAPE"
    assert refusal(case("y = StringNormalizer (x)", x=steps("str", 2))) == "DATA-DEPENDENT-SHAPE"


def test_one_matrix_for_all_steps_is_refused() -> None:
    one = case("y = MelWeightMatrix (a, a, a, f, f)", a=same(I64, high=5, low=4), f=steps(F32))
    assert refusal(one) == "BATCHED-STRUCTURE"


@pytest.mark.parametrize("op", ["SequenceConstruct", "SplitToSequence", "Optional"])
def test_sequences_are_refused(op: str) -> None:
    assert refusal(case(f"y = {op} (x)", x=steps(F32, 2))) == "SEQUENCE"


def test_the_table_tells_what_it_knows() -> None:
    assert has_rule(ir.Node("", "Add", []))
    assert has_rule(ir.Node("ai.onnx", "Add", []))
    assert has_rule(ir.Node("com.microsoft", "FusedMatMul", []))
    for domain, op in [("", "NonZero"), ("", "SequenceMap"), ("", "FusedMatMul"), ("my.own", "Add")]:
        assert not has_rule(ir.Node(domain, op, []))


def test_a_body_that_contradicts_its_declared_shape_is_refused() -> None:
    assert refusal(case("y = Relu (x)", x=steps(F32, 2)), declared=[3]) == "SHAPE-MISMATCH"
    assert refusal(case("y = Relu (x)", x=steps(F32, 2)), declared=[2, 1]) == "SHAPE-MISMATCH"


def test_every_operator_with_a_rule_has_a_test() -> None:
    tests = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    words = set(re.findall(r"\w+", tests))
    assert {op for _, op in _table()} <= words
