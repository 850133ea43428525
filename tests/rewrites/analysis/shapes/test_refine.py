"""Only a Loop whose states keep their shapes becomes a Scan; what is declared of them proves nothing."""

import numpy as np
import pytest

from rewrites.loop_form import loop_to_scan
from rewrites.registry import RULES
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, stays

IF = "If (t) <then_branch = p () => ({0} u) {{ u = {1} (h, {2}) }}, else_branch = q () => ({0} v) {{ v = {1} (h, {2}) }}>"
INNER = "Scan <num_scan_inputs = 1, body = d (float g, float e) => (float g1, float e1) {{ g1 = Add (g, e) e1 = Neg (e) }}> (k, {})"
LOOP = "Loop <body = d (int64 j, bool e, float[2] g) => (bool e, float[2] g1) {{ g1 = {} (g, s) }}> (n, , h)"

GROW = {
    "undeclared": loop(
        "h1 = Concat <axis = 0> (h, s) y = Gather (xs, i)",
        inputs="h",
        outputs="h1, float[2] y",
        results="float[M] z, float[N,2] ys",
    ),
    "declared": loop("h1 = Concat <axis = 0> (h, s) y = Gather (xs, i)", results="float[M] z, float[N,2] ys"),
    "declared by symbol": loop(
        "h1 = Concat <axis = 0> (h, s) y = Gather (xs, i)",
        inputs="float[K] h",
        outputs="float[K] h1, float[2] y",
        results="float[M] z, float[N,2] ys",
    ),
    "in a branch": loop(
        f"h1 = {IF.format('float[2]', 'Concat <axis = 0>', 's')} y = Gather (xs, i)",
        given="float[2] s, float[3,2] xs, bool t",
        results="float[M] z, float[N,2] ys",
    ),
    "in a branch of a state without a shape": loop(
        f"h1 = {IF.format('float[K]', 'Concat <axis = 0>', 's')} y = Gather (xs, i)",
        inputs="h",
        given="float[2] s, float[3,2] xs, bool t",
        results="float[M] z, float[N,2] ys",
    ),
    "in one branch": loop(
        "h1 = If (t) <then_branch = p () => (float[K] u) { u = Concat <axis = 0> (h, s) }, else_branch = q () => (float[L] v) { v = Identity (h) }> "
        "y = Gather (xs, i)",
        inputs="h",
        outputs="h1, float[2] y",
        given="float[2] s, float[3,2] xs, bool t",
        results="float[M] z, float[N,2] ys",
    ),
}


@pytest.mark.parametrize("case", GROW)
def test_a_growing_state_is_seen(case: str) -> None:
    stays(
        loop_to_scan,
        GROW[case],
        "LOOP-STATE-SHAPE",
        check=False,
        detail="state 'h' starts with the shape [2], but the body returns [",
    )
    model = read(GROW[case], check=False)
    apply(model, RULES, feeds=data(model), check=False)


STEADY = {
    "undeclared": loop("x = Gather (xs, i) h1 = Add (h, x) y = Tanh (h)", inputs="h", outputs="h1, y"),
    "declared wrongly": loop("h1 = Add (h, h) y = Tanh (h)", inputs="float[9] h", outputs="float[9] h1, float[9] y"),
    "by symbol": loop(
        "x = Gather (xs, i) h1 = Tanh (h) y = Tanh (x)",
        inputs="float[B,2] h",
        outputs="float[B,2] h1, float[2] y",
        given="float[B,2] s, float[3,2] xs",
        results="float[B,2] z, float[N,2] ys",
    ),
    "by a branch": loop(
        f"x = Gather (xs, i) h1 = {IF.format('float[2]', 'Add', 'x')} y = Tanh (h)", given="float[2] s, float[3,2] xs, bool t"
    ),
    "by a branch undeclared": loop(
        f"x = Gather (xs, i) h1 = {IF.format('float[K]', 'Add', 'x')} y = Tanh (h)",
        inputs="h",
        outputs="h1, y",
        given="float[2] s, float[3,2] xs, bool t",
    ),
    "by a nested scan": loop(
        f"x = Gather (xs, i) r, h1 = {INNER.format('h')} y = Add (x, r)", given="float[2] s, float[3,2] xs, float k"
    ),
    "by a nested scan along the last axis": loop(
        "h1 = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], body = d (e) => (e1) { e1 = Neg (e) }> (h) y = Gather (xs, i)",
        inputs="float[2,3] h",
        outputs="float[2,3] h1, float[2] y",
        given="float[2,3] s, float[3,2] xs",
        results="float[2,3] z, float[N,2] ys",
    ),
    "while a nested loop does something else": loop(
        f"h1 = Add (h, h) y = {LOOP.format('Add')}", given="float[2] s, float[3,2] xs, int64 n"
    ),
}


@pytest.mark.parametrize("case", STEADY)
def test_a_state_that_keeps_its_shape_is_seen(case: str) -> None:
    check = "wrong" not in case
    becomes(loop_to_scan, STEADY[case], check=check, feeds={"n": np.array(2)} if "int64 n" in STEADY[case] else None)


def test_what_a_nested_loop_of_unknown_length_gives_is_not_known() -> None:
    text = loop(
        f"h1 = {LOOP.format('Add').replace('(bool e,', '(bool e1,').replace('{ g1', '{ e1 = Not (e) g1')} y = Gather (xs, i)"
    )
    stays(loop_to_scan, text.replace("(n, , h)", "(, , h)"), "LOOP-CONDITION", "LOOP-STATE-SHAPE")


def test_what_a_guarded_nested_loop_gives_is_known() -> None:
    text = loop(f"h1 = {LOOP.format('Add')} y = Gather (xs, i)", given="float[2] s, float[3,2] xs, int64 n")
    for n in (0, 2):
        after, _ = becomes(loop_to_scan, text, feeds={"n": np.array(n)})
        assert [node.op_type for node in after.graph.node] == ["Scan"]


def test_a_symbol_that_is_not_the_same_is_another_shape() -> None:
    text = loop(
        "h1 = Slice (h, a, e) y = Gather (xs, i)",
        inputs="float[K] h",
        outputs="float[L] h1, float[2] y",
        given="float[B] s, float[3,2] xs, int64[1] e",
        results="float[M] z, float[N,2] ys",
        weights="int64[1] a = {0}",
    )
    stays(loop_to_scan, text, "LOOP-STATE-SHAPE")


def test_a_result_of_unknown_rank_stays() -> None:
    text = loop(
        "h1 = Add (h, h) y = Reshape (h, t)",
        outputs="float[2] h1, y",
        given="float[2] s, float[3,2] xs, int64[r] t",
        results="float[2] z, ys",
    ).replace("ys)", "float[N,2,1] ys)", 1)
    stays(loop_to_scan, text, "RANK-UNKNOWN", check=False, detail="'y'")


@pytest.mark.parametrize(
    "weights",
    [
        "int64[1] p = {0}, int64[1] q = {1}, int64[1] a = {5}, int64[1] d = {1}",
        "int64[1] p = {0}, int64[1] q = {1}, int64[1] a = {-5}, int64[1] d = {1}",
        "int64[1] p = {0}, int64[1] q = {1}, int64[1] a = {0}, int64[1] d = {0}",
        "int64[2] p = {0, 0}, int64[1] q = {1}, int64[1] a = {0}, int64[1] d = {1}",
    ],
    ids=["an axis too many", "an axis too few", "steps of nothing", "two starts and one end"],
)
def test_a_slice_that_does_not_fit_what_it_cuts_tells_nothing(weights: str) -> None:
    body = "e = Slice (h, p, q, a, d) h1 = Add (h, e) y = Gather (xs, i)"
    stays(
        loop_to_scan,
        loop(body, inputs="h", outputs="h1, float[2] y", weights=weights, results="float[M] z, float[N,2] ys"),
        "LOOP-STATE-SHAPE",
        check=False,
    )
