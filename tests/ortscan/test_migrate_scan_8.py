"""Every form of an opset-8 Scan in later opsets, compared with onnxruntime, including states that change their shapes."""

import itertools

import numpy as np
import onnx
import pytest

import ortscan
from ortscan import OrtscanError
from ortscan.migration import migrated
from ortscan.modelio import to_caller_type
from tests.campaigns.fuzz.scan_cases import assert_same_as_steps, drawn_scans
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.scan_8_matrix import Form, some_forms
from tests.support.text import model_from_text, parsed

TARGETS = (9, 11, 16, 21, 26)
FORMS = some_forms(200)


def assert_migrates(form: Form, target: int) -> None:
    model = form.model()
    loaded, report = migrated(model, target)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert len(report.scans) == 1 + (form.nested == "Scan")
    assert [value.SerializeToString() for value in result.graph.input] == [value.SerializeToString() for value in model.graph.input]
    assert [value.SerializeToString() for value in result.graph.output] == [
        value.SerializeToString() for value in model.graph.output
    ]
    feeds = form.feeds()
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", range(10))
def test_every_form_of_an_opset_8_scan(part, target):
    for number, form in enumerate(FORMS[part::10]):
        if (number + part) % len(TARGETS) == TARGETS.index(target):
            assert_migrates(form, target)


@pytest.mark.long
@pytest.mark.parametrize("aliased", [False, True])
def test_a_random_opset_8_scan(aliased):
    refused = 0
    for number, case in enumerate(drawn_scans(40, 8, "passengers", "random_body", aliased=aliased)):
        try:
            result = ortscan.migrate(case.model, TARGETS[number % len(TARGETS)], verify=False)
        except OrtscanError:
            refused += 1
        else:
            assert_same_as_steps(case, result)
    assert refused <= 3


SUM = """g (float[{b}2] initial, float[{b}3,2] x) => (float[{b}2] y, float[{b}3,2] z) {{
    y, z = Scan <num_scan_inputs = 1, body = scan_body (float[2] sum_in, float[2] next) => (float[2] sum_out, float[2] scan_out) {{
        sum_out = Add (sum_in, next) scan_out = Identity (sum_out)
    }}> ({lens}initial, x) }}"""


@pytest.mark.parametrize("target", TARGETS)
def test_the_examples_of_the_operators_text(target):
    x, total = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([9, 12], np.float32)
    sums = np.array([[1, 2], [4, 6], [9, 12]], np.float32)
    for opset, batch, lens, shape in ((8, "1,", ",", (1,)), (9, "", "", ())):
        text = SUM.format(b=batch, lens=lens)
        model = parsed(f'<ir_version: 4, opset_import: ["": {opset}]>' + text)
        feeds = {"initial": np.zeros((*shape, 2), np.float32), "x": x.reshape(*shape, 3, 2)}
        result = ort_run(ortscan.migrate(model, target, verify=False), feeds)
        assert_same_numbers(result, [total.reshape(*shape, 2), sums.reshape(*shape, 3, 2)])


LSTM = """g (int64[B] lens, float[B,3] h0, float[B,3] c0, float[B,T,2] xs) => (float[B,3] hn, float[B,3] cn, float[B,T,3] ys) {{
    hn, cn, ys = Scan <num_scan_inputs = 1, directions = [{direction}],
        body = cell (float[3] h, float[3] c, float[2] x) => (float[3] h1, float[3] c1, float[3] y) {{
            x1 = Unsqueeze <axes = [0]> (x) h0r = Unsqueeze <axes = [0]> (h) xh = Concat <axis = 1> (x1, h0r)
            z = Gemm <transB = 1> (xh, W, b) i0, o0, f0, g0 = Split <axis = 1> (z)
            i = Sigmoid (i0) o = Sigmoid (o0) f = Sigmoid (f0) u = Tanh (g0)
            iu = Mul (i, u) fc = Mul (f, c) cc = Add (iu, fc) tc = Tanh (cc) hh = Mul (o, tc)
            c1 = Reshape (cc, three) h1 = Squeeze <axes = [0]> (hh) y = Identity (h1)
        }}> (lens, h0, c0, xs) }}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("direction", [0, 1])
def test_an_lstm_as_the_first_exporters_wrote_it(direction, target):
    rng = np.random.default_rng(1)
    model = parsed('<ir_version: 4, opset_import: ["": 8]>' + LSTM.format(direction=direction))
    weights = {"W": rng.standard_normal((12, 5)).astype(np.float32), "b": rng.standard_normal(12).astype(np.float32)}
    weights["three"] = np.array([3])
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    for lengths in ([5, 5, 5, 5], [1, 4, 5, 2]):
        feeds = {"lens": np.array(lengths), "xs": rng.standard_normal((4, 5, 2)).astype(np.float32)}
        feeds |= {name: rng.standard_normal((4, 3)).astype(np.float32) for name in ("h0", "c0")}
        loaded, report = migrated(model, target)
        assert [scan.form for scan in report.scans] == ["batched"]
        assert_same_numbers(ort_run(to_caller_type(loaded), feeds), ort_run(model, feeds))


CHANGING = """<ir_version: 4, opset_import: ["": 8]>
g (int64[{b}] l, float[{b},C] s, float[{b},T,4] x) => (float[{b},K] z, float[{b},T,4] y) {{
    z, y = Scan <num_scan_inputs = 1, directions = [{direction}], body = b (float[C] h, float[D] a) => (float[E] h1, float[D] y1) {{
        {inside} y1 = Neg (a)
    }}> (l, s, x) }}"""
CHANGES = {
    "taken from the slice": "h1 = Tanh (a)",
    "widened by the slice": "h1 = Add (h, a)",
    "cut": "h1 = Slice <starts = [0], ends = [2]> (h)",
    "kept after all": "n = Neg (h) h1 = Slice <starts = [0], ends = [99]> (n)",
}


def feeds(lengths: list[int], steps: int, width: int) -> dict[str, np.ndarray]:
    rng, rows = np.random.default_rng(steps + width), len(lengths)
    floats = {"s": (rows, width), "x": (rows, steps, 4)}
    return {"l": np.array(lengths), **{name: rng.normal(size=shape).astype(np.float32) for name, shape in floats.items()}}


def answer(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        return ort_run(model, given)
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
        return None


@pytest.mark.parametrize("inside", CHANGES)
@pytest.mark.parametrize(("b", "rows"), [("1", 1), ("B", 1), ("B", 2), ("3", 3)])
@pytest.mark.parametrize(("direction", "lengths"), [(0, True), (1, True), (1, False)])
def test_they_run_wherever_the_original_does(inside, b, rows, direction, lengths):
    text = CHANGING.format(b=b, inside=CHANGES[inside], direction=direction)
    model = model_from_text(text if lengths else text.replace(f"int64[{b}] l, ", "").replace("(l, s, x)", "(, s, x)"), check=False)
    results = [ortscan.migrate(model, opset, verify=False) for opset in (9, 18)] + [ortscan.optimize(model, verify=False)]
    ran = 0
    for real, steps, width in itertools.product([[1] * rows, [2] + [1] * (rows - 1)], (1, 2, 3), (1, 4, 5)):
        if max(real) > steps:
            continue
        given = feeds(real, steps, width)
        if not lengths:
            del given["l"]
        wanted = answer(model, given)
        if wanted is None:
            continue
        ran += 1
        for result in results:
            assert_same_numbers(ort_run(result, given), wanted)
    assert ran


def test_lengths_that_are_known_need_no_choice():
    text = CHANGING.format(b="2", inside=CHANGES["kept after all"], direction=0)
    text = text.replace("int64[2] l, ", "").replace("float[2,T,4] y) {", "float[2,T,4] y) <int64[2] l = {1, 2}> {")
    assert "If" not in {node.op_type for node in ortscan.migrate(model_from_text(text, check=False), 18).graph.node}


EMPTY = """<ir_version: 4, opset_import: ["": 8]>
g (float[B,5] s, float[B,T,4] x) => (float[B,5] z, float[B,T,4] y) {
    z, y = Scan <num_scan_inputs = 1, body = b (float[5] h, float[4] a) => (float[5] h1, float[4] y1) { h1 = Tanh (h) y1 = Neg (a) }> (, s, x) }"""


@pytest.mark.parametrize("target", [9, 16, 18, 21])
def test_no_scan_over_another_axis_than_the_first_is_written(target):
    after = ortscan.migrate(model_from_text(EMPTY), target)
    (scan,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert {attribute.name for attribute in scan.attribute} == {"body", "num_scan_inputs"}
    z, y = ort_run(after, {"s": np.zeros((0, 5), np.float32), "x": np.zeros((0, 3, 4), np.float32)})
    assert (z.shape, y.shape) == ((0, 5), (0, 3, 4))
    with pytest.raises(Exception, match="Invalid dim0_offset"):  # which onnxruntime says of every later Scan without steps
        ort_run(after, {"s": np.zeros((2, 5), np.float32), "x": np.zeros((2, 0, 4), np.float32)})


FREE_SIZES = """<ir_version: 4, opset_import: ["": 8]>
g (float[1,N,2] s, float[1,T,M,3] x) => (float[1,P,2] z, float[1,T,Q,2] y) <float[5,2] w = {1, 0, 0, 1, 1, 1, 0, -1, 1, 0}, float[3,2] v = {1, 0, 0, 1, 1, 1}> {
    z, y = Scan <num_scan_inputs = 1, body = b (float[N1,2] h, float[M1,3] a) => (float[P1,2] h1, float[Q1,2] y1) {
        INSIDE y1 = Neg (h1) }> (, s, x) }"""
GIVES = "c = Concat <axis = 1> (a, h) p = MatMul (c, w) "
KEPT = {
    "of itself": "h1 = Tanh (h)",
    "joined and multiplied": GIVES + "h1 = Mul (p, h)",
    "joined twice": GIVES + "k = Concat <axis = 1> (a, p) l = MatMul (k, w) h1 = Sub (h, l)",
    "added, cut apart": GIVES + "k, l = Split <axis = 1> (p) o = Concat <axis = 1> (l, k) h1 = Add (o, h)",
}
CHANGED = {
    "joined alone, where no rows of it are left out": GIVES + "h1 = Tanh (p)",
    "multiplied before it is joined, by no rows": "q = MatMul (a, v) r = Mul (h, q) " + GIVES + "h1 = Mul (p, r)",
    "widened": "q = MatMul (a, v) h1 = Add (q, h)",
    "replaced": "h1 = MatMul (a, v)",
    "cut": "h1 = Slice <starts = [0], ends = [1]> (h)",
}


@pytest.mark.parametrize("inside", [*KEPT, *CHANGED])
def test_a_branch_is_written_only_where_a_step_may_change_the_state(inside):
    model = model_from_text(FREE_SIZES.replace("INSIDE", {**KEPT, **CHANGED}[inside]), check=False)
    after = ortscan.migrate(model, 13, verify=False)
    assert ("If" in {node.op_type for node in after.graph.node}) == (inside in CHANGED)
    ran = 0
    for steps, state_rows, rows in ((1, 2, 2), (3, 2, 2), (1, 1, 3), (1, 3, 1), (1, 0, 0), (1, 0, 3), (1, 3, 0)):
        rng = np.random.default_rng(state_rows + rows)
        given = {"s": rng.normal(size=(1, state_rows, 2)), "x": rng.normal(size=(1, steps, rows, 3))}
        given = {name: array.astype(np.float32) for name, array in given.items()}
        wanted = answer(model, given)
        if wanted is None:
            continue
        ran += 1
        if "Concat" in {**KEPT, **CHANGED}[inside] and (state_rows == 0) != (rows == 0):
            assert [each.shape for each in ort_run(after, given)] == [each.shape for each in wanted]  # memory nobody wrote to
        else:
            assert_same_numbers(ort_run(after, given), wanted)
    assert ran >= 2


def test_a_report_counts_what_the_file_had():
    report = ortscan.explain(model_from_text(FREE_SIZES.replace("INSIDE", CHANGED["widened"]), check=False))
    (loop,) = report.loops
    assert (loop.where, loop.kind, loop.steps, loop.nodes_before) == ("main/Scan producing 'z'", "Scan-8", "T", 3)
    assert report.operators_before == {"Scan": 1, "MatMul": 1, "Add": 1, "Neg": 1}
