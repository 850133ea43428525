import onnx_ir as ir
import pytest

from rewrites.batching import has_rule
from tests.rewrites.batching.harness import F32, case, refusal, steps


@pytest.mark.parametrize(("op", "code"), [("RandomNormalLike", "RANDOM"), ("Bernoulli", "RANDOM"), ("Det", "NO-BATCHING-RULE")])
def test_operators_without_a_rule_say_so(op: str, code: str) -> None:
    assert refusal(case(f"y = {op} (x)", x=steps(F32, 2, 2))) == code


def test_control_flow_is_refused() -> None:
    branch = "_branch = b () => (float[1] q) {q = Constant <value_floats=[1.0]>()}"
    text = f"y = If (x) <then{branch}, else{branch.replace('q', 'p')}>"
    assert refusal(case(text, x=steps("bool"))) == "CONTROL-FLOW"


def test_the_table_tells_what_it_knows() -> None:
    assert has_rule(ir.Node("", "Add", []))
    assert has_rule(ir.Node("ai.onnx", "Add", []))
    assert has_rule(ir.Node("com.microsoft", "FusedMatMul", []))
    for domain, op in [("", "NonZero"), ("", "Loop"), ("", "FusedMatMul"), ("my.own", "Add")]:
        assert not has_rule(ir.Node(domain, op, []))


def test_a_body_that_contradicts_its_declared_shape_is_refused() -> None:
    assert refusal(case("y = Relu (x)", x=steps(F32, 2)), declared=[3]) == "SHAPE-MISMATCH"
    assert refusal(case("y = Relu (x)", x=steps(F32, 2)), declared=[2, 1]) == "SHAPE-MISMATCH"
