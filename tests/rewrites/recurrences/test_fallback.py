"""Loops with states of unknown width run for all steps at once if the states are narrow, else unchanged."""

import numpy as np
import onnx
import pytest

from rewrites.base.report import RewriteReport
from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.recurrences import blocks_of_steps
from rewrites.recurrences.cumulative import cumulative
from rewrites.recurrences.linear import constant_filter, gated_recurrence, linear_recurrence
from tests.rewrites.apply import apply, patches, read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

RULES = [cumulative, loop_fission, blocks_of_steps]


def running(step: str, row: str, steps: str | int, kind: str = "float", *, stacked: bool = False) -> str:
    """Return a loop over rows of the sizes in ``row``."""
    tensor, stack = f"{kind}[{row}]", f"{kind}[{steps},{row}]"
    inner, result = (f", {tensor} y", f", {stack} ys") if stacked else ("", "")
    copy, outer = ("y = Identity (n)", "z, ys") if stacked else ("", "z")
    body = f"b ({tensor} h, {tensor} x) => ({tensor} n{inner}) {{ {step} {copy} }}"
    return f"g ({tensor} s, {stack} xs) => ({tensor} z{result}) {{ {outer} = Scan <num_scan_inputs = 1, body = {body}> (s, xs) }}"


ARGMAX = """g (float[N] s, int64[N] i0, float[40,N] xs, int64[40] ts) => (float[N] z, int64[N] iz) {
    z, iz = Scan <num_scan_inputs = 2, body = b (float[N] h, int64[N] i, float[N] x, int64 t) => (float[N] n, int64[N] j) {
        c = Greater (x, h) n = Where (c, x, h) j = Where (c, t, i) }> (s, i0, xs, ts) }"""
MEAN = f"""g (float[N] s, float[40,N] xs) => (float[N] z, float[40,N] zs) <float[40] ks = {{{", ".join(map(str, range(1, 41)))}}}> {{
    z, zs = Scan <num_scan_inputs = 2, body = b (float[N] h, float[N] x, float k) => (float[N] n, float[N] y) {{
        d = Sub (x, h) e = Div (d, k) n = Add (h, e) y = Identity (n) }}> (s, xs, ks) }}"""
CASES = {
    "last maximum": (running("n = Max (h, x)", "N", "T"), 18),
    "last minimum of doubles over a free batch": (running("n = Min (h, x)", "B,2", "T", "double"), 17),
    "last maximum of integers over a free batch and width": (running("n = Max (h, x)", "B,N", "T", "int64"), 21),
    "all maxima": (running("n = Max (h, x)", "N", 40, stacked=True), 18),
    "a choice": (running("c = Less (x, h) n = Where (c, x, h)", "N", 40, stacked=True), 18),
    "argmax": (ARGMAX, 18),
    "a mean": (MEAN, 18),
    "a flag": (running("n = Or (h, x)", "N", "T", "bool"), 17),
    "all flags": (running("n = And (h, x)", "B,4", "T", "bool", stacked=True), 18),
}


def inputs(model: onnx.ModelProto, width: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(width)
    sizes = {"N": width, "B": width, "T": 40}
    feeds = {}
    for info in model.graph.input:
        kind = info.type.tensor_type
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in kind.shape.dim]
        feeds[info.name] = draw.integers(0, 2 if kind.elem_type == onnx.TensorProto.BOOL else 9, shape).astype(
            onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        )
    return feeds


def branches(model: onnx.ModelProto) -> dict[str, list[str]]:
    """Return the operators in each branch of the only If."""
    (choice,) = [node for node in model.graph.node if node.op_type == "If"]
    return {branch.name: [node.op_type for node in branch.g.node] for branch in choice.attribute}


def rewritten(text: str, opset: int = 18, options: Options | None = None) -> tuple[onnx.ModelProto, RewriteReport]:
    return apply(text, RULES, opset=opset, options=options)


@pytest.mark.parametrize("case", CASES)
def test_narrow_steps_run_at_once_and_wide_steps_in_the_loop(case: str) -> None:
    text, opset = CASES[case]
    model = read(text, opset)
    after, _ = rewritten(text, opset)
    operators = branches(after)
    assert "Scan" not in operators["then_branch"]
    assert "Scan" in operators["else_branch"]
    for width in (1, 3, 90, 4096 if "B,N" not in text else 120):
        feeds = inputs(model, width)
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


@pytest.mark.parametrize(("width", "is_slow"), [(256, False), (257, True)])
def test_the_limit_is_the_widest_step_that_pays(width: int, is_slow: bool) -> None:
    after, _ = rewritten(running("n = Max (h, x)", "N", "T"))
    for branch in next(node for node in after.graph.node if node.op_type == "If").attribute:
        if (branch.name == "else_branch") is is_slow:
            continue
        del branch.g.node[:]
        branch.g.node.append(onnx.helper.make_node("Identity", ["s"], [branch.g.output[0].name]))
    feeds = {"s": np.zeros(width, np.float32), "xs": np.ones((5, width), np.float32)}
    (result,) = ort_run(after, feeds)
    assert (result == 1).all()


@pytest.mark.parametrize("row", ["4", "N", "B,N"])
def test_known_widths_need_no_if(row: str) -> None:
    after, report = rewritten(running("n = Max (h, x)", row, "T"), options=Options(sizes={"N": 16, "B": 2}))
    assert patches(report) == ["cumulative"]
    assert not any(node.op_type in {"If", "Scan"} for node in after.graph.node)


@pytest.mark.parametrize("step", ["n = Add (h, x)", "d = Mul (x, x) n = Sub (h, d)"])
@pytest.mark.parametrize("row", ["N", "B,N"])
def test_sums_of_any_width_leave_no_loop(step: str, row: str) -> None:
    after, report = apply(running(step, row, "T"), [cumulative])
    assert patches(report) == ["cumulative"]
    assert not any(node.op_type in {"If", "Scan"} for node in after.graph.node)


def test_a_loop_with_a_state_that_stays_is_not_written_twice() -> None:
    text = """g (float[B] s, int64[B] c, float[T,B] xs, int64[T,B] ks) => (float[B] z, int64[B] cz) {
        z, cz = Scan <num_scan_inputs = 2, body = b (float[B] h, int64[B] m, float[B] x, int64[B] k) => (float[B] n, int64[B] o) {
            p = Mul (h, x) q = Add (p, x) n = Sin (q) o = Add (m, k) }> (s, c, xs, ks) }"""
    after, _ = apply(text, [cumulative])
    assert [node.op_type for node in after.graph.node if node.op_type in {"If", "Scan"}] == ["Scan"]


def test_a_loop_in_a_loop_has_no_if_around_it() -> None:
    inner = "float[N] s, float[T,N] r) => (float[N] y) { y = Scan <num_scan_inputs = 1, body = c (float[N] h, float[N] x)"
    text = f"""g (float[R,N] ss, float[R,T,N] rs) => (float[R,N] ys) {{ ys = Scan <num_scan_inputs = 2, body = b (
        {inner} => (float[N] n) {{ n = Max (h, x) }}> (s, r) }}> (ss, rs) }}"""
    after, _ = rewritten(text)
    assert not any(node.op_type in {"If", "Scan"} for node in after.graph.node)


DECAYS = {
    "a decay": (running("k = Constant <value = float {0.9}> () d = Mul (h, k) n = Add (d, x)", "N", 256), linear_recurrence),
    "a moving average": (
        running("k = Constant <value = float {0.25}> () e = Sub (x, h) f = Mul (e, k) n = Add (h, f)", "N", 256, stacked=True),
        linear_recurrence,
    ),
    "a filter": (running("k = Constant <value = float {-0.5}> () d = Mul (h, k) n = Add (d, x)", "N", 256), constant_filter),
    "a gate": (running("d = Mul (h, x) n = Add (d, x)", "N", 256, stacked=True), gated_recurrence),
}


@pytest.mark.parametrize("case", DECAYS)
def test_wide_states_that_decay_stay_in_the_loop(case: str) -> None:
    text, rule = DECAYS[case]
    after, report = apply(text, [rule])
    assert patches(report) == [rule.RULE.name] * 2
    operators = branches(after)
    assert "Scan" not in operators["then_branch"]
    assert operators["else_branch"] == ["Scan"]
    for width in (1, 64, 4096):
        draw = np.random.default_rng(width)
        feeds = {"s": draw.uniform(0.1, 0.9, width), "xs": draw.uniform(0.1, 0.9, (256, width))}
        feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
        for result, expected in zip(ort_run(after, feeds), ort_run(read(text), feeds), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5)
