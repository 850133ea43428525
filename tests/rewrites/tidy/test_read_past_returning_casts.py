"""Casts that lead back to the type they came from are kept out of bodies and branches, where onnxruntime loses them."""

import numpy as np
import pytest

import ortscan
from rewrites.driver.model_changes import change_model
from rewrites.tidy import read_past_returning_casts
from tests.rewrites.apply import prepared, read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

LOOP = """g ({kind}[3] x, int64 m) => ({kind}[N,3] ys) <bool yes = {{1}}> {{
    {casts}
    ys = Loop <body = b (int64 i, bool c) => (bool c1, {kind}[3] y) {{ c1 = Identity (c) t = Cast <to = 1> (v) u = Abs (t) y = Cast <to = {back}> (u) }}> (m, yes)
}}"""
CASTS = {
    "float": (1, "d = Cast <to = 11> (x) v = Cast <to = 1> (d)"),
    "float16": (10, "f = Cast <to = 1> (x) d = Cast <to = 11> (f) v = Cast <to = 10> (d)"),
    "int32": (6, "w = Cast <to = 7> (x) k = Identity (w) v = Cast <to = 6> (k)"),
    "bool": (9, "w = Cast <to = 3> (x) v = Cast <to = 9> (w)"),
    "double": (11, "v = Cast <to = 11> (x)"),
}
LOSSY = {
    "float": (1, "d = Cast <to = 10> (x) v = Cast <to = 1> (d)"),
    "int64": (7, "d = Cast <to = 11> (x) v = Cast <to = 7> (d)"),
    "int32": (6, "d = Cast <to = 1> (x) v = Cast <to = 6> (d)"),
}


def read_inside(kind: str, cases: dict[str, tuple[int, str]]) -> str | None:
    back, casts = cases[kind]
    ctx = prepared(LOOP.format(kind=kind, casts=casts, back=back))
    change_model(read_past_returning_casts.RULE, ctx)
    (body,) = ctx.model.graph.subgraphs()
    return next(value.name for node in body for value in node.inputs if value is not None and value.graph is not body)


@pytest.mark.parametrize("kind", CASTS)
def test_a_body_reads_what_was_cast_there_and_back(kind: str) -> None:
    assert read_inside(kind, CASTS) == "x"


@pytest.mark.parametrize("kind", LOSSY)
def test_what_loses_numbers_on_the_way_stays(kind: str) -> None:
    assert read_inside(kind, LOSSY) == "v"


def test_a_loop_that_becomes_a_branch_runs() -> None:
    model = read(
        """g (float[2,3] x, int64 m) => (float[N] ys) <bool yes = {1}> {
            ys = Loop <body = b (int64 i, bool c) => (bool c1, float y) {
                c1 = Identity (c) d = Cast <to = 11> (x) f = Cast <to = 1> (d) s = ReduceSum <keepdims = 0> (f) y = Identity (s)
            }> (m, yes) }"""
    )
    after = ortscan.optimize(model, verify=False)
    assert "If" in [node.op_type for node in after.graph.node]
    for steps in (1, 3):
        feeds = {"x": np.ones((2, 3), np.float32), "m": np.array(steps)}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
