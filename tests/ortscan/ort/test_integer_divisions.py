"""Divisions of constant integers that would crash onnxruntime are not folded by it."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.ort.integer_divisions import may_trap
from ortscan.ort.sessions import evaluate
from ortscan.verification import verify
from tests.support.text import model_from_text, parsed

LEAST = {"int64": -(2**63), "int32": -(2**31)}
BODY = """g (float[T, 4] x) => (float[T, 4] y) {{ {outer}
  y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ {inner} r = Add (a, q) }}> (x)
}}"""
DIVISION = "{make} w = Div (n, z) q = Cast <to = 1> (w)"
ONES = "z = Constant <value = {kind} {{-1}}> ()"
MAKES = {
    "written down": "n = Constant <value = {kind} {{{least}}}> () " + ONES,
    "computed": "p = Constant <value = {kind} {{{half}}}> () o = Constant <value = {kind} {{2}}> () n = Mul (p, o) " + ONES,
    "cast": "p = Constant <value = double {{{least}}}> () n = Cast <to = {number}> (p) " + ONES,
    "by what is computed": "n = Constant <value = {kind} {{{least}}}> () o = Constant <value = {kind} {{1}}> () z = Neg (o)",
}


def dividing(make: str, kind: str, where: str) -> onnx.ModelProto:
    number = onnx.TensorProto.DataType.Value(kind.upper())
    made = MAKES[make].format(kind=kind, least=LEAST[kind], half=LEAST[kind] // 2, number=number)
    return model_from_text(BODY.format(**{"outer": "", "inner": "", where: DIVISION.format(make=made)}), 18, check=False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "kind", "where"),
    [(make, kind, ("outer", "inner")[(i + k) % 2]) for i, make in enumerate(MAKES) for k, kind in enumerate(LEAST)],
)
def test_a_division_that_ends_the_process_is_only_run_in_another(make: str, kind: str, where: str) -> None:
    proto = dividing(make, kind, where)
    assert may_trap(proto)
    assert isinstance(ortscan.optimize(proto, verify=False), onnx.ModelProto)
    assert verify(proto, proto, level="quick").outcome == "inconclusive"


@pytest.mark.parametrize("division", [(7, -1), (LEAST["int64"], 2), (LEAST["int64"] + 1, -1), (2.0, -1.0)])
def test_other_divisions_are_computed(division: tuple[float, float]) -> None:
    kind = "float" if isinstance(division[0], float) else "int64"
    text = f"g () => ({kind} y) <{kind} a = {{{division[0]}}}, {kind} b = {{{division[1]}}}> {{ y = Div (a, b) }}"
    model = parsed(f"{text}")
    assert not may_trap(model)
    found = evaluate(model)
    assert found is not None
    np.testing.assert_array_equal(found[0], division[0] / division[1] if kind == "float" else division[0] // division[1])


@pytest.mark.parametrize(
    ("made", "may"),
    [
        ("a = Sqrt (f) b = Neg (f)", False),
        ("a = Cast <to = 11> (k) b = Cast <to = 11> (k)", False),
        ("a = ConstantOfShape (k) b = Sin (a)", False),
        ("a = Where (t, f, f) b = Concat <axis = 0> (f, f)", False),
        ("a = Neg (k) b = Abs (k)", True),
        ("v, a = TopK (f, k) w, b = TopK (f, k)", True),
        ("a = ArgMax (f) b = ArgMin (f)", True),
        ("a = Cast <to = 7> (f) b = Cast <to = 7> (f)", True),
    ],
)
def test_what_surely_are_no_integers_does_no_harm_though_it_is_computed(made: str, may: bool) -> None:
    text = f"g () => (y) <float[1] f = {{2}}, int64[1] k = {{1}}, bool[1] t = {{1}}> {{ {made} y = Div (a, b) }}"
    model = parsed(f"{text}")
    assert may_trap(model) is may
    assert (evaluate(model) is None) is may
