"""Loops over every element type in every form: the checker accepts all results."""

import contextlib

import numpy as np
import onnx
import pytest

import ortscan
from ortscan import OrtscanError
from tests.support.runtime import numpy_dtype, ort_run
from tests.support.text import parsed

KINDS = sorted({kind for schema in (onnx.defs.get_schema("Scan", 25), onnx.defs.get_schema("Scan", 8)) for each in schema.type_constraints
                if each.type_param_str == "V" for kind in (one.removeprefix("tensor(").removesuffix(")") for one in each.allowed_type_strs) if "(" not in kind})  # fmt: skip
COPY = "y = Identity (x)"
FORMS = {
    "copied": f"g (K[T,2] xs) => (K[T,2] ys) {{ ys = Scan <num_scan_inputs = 1, body = b (K[2] x) => (K[2] y) {{ {COPY} }}> (xs) }}",
    "three steps": f"g (K[3,2] xs) => (K[3,2] ys) {{ ys = Scan <num_scan_inputs = 1, body = b (K[2] x) => (K[2] y) {{ {COPY} }}> (xs) }}",
    "one step": f"g (K[1,2] xs) => (K[1,2] ys) {{ ys = Scan <num_scan_inputs = 1, body = b (K[2] x) => (K[2] y) {{ {COPY} }}> (xs) }}",
    "delayed": "g (K[2] h, K[T,2] xs) => (K[2] l, K[T,2] ys) { l, ys = Scan <num_scan_inputs = 1, body = b (K[2] s, K[2] x) => (K[2] n, K[2] y) { n = Identity (x) y = Identity (s) }> (h, xs) }",
    "delayed, three steps": "g (K[2] h, K[3,2] xs) => (K[2] l, K[3,2] ys) { l, ys = Scan <num_scan_inputs = 1, body = b (K[2] s, K[2] x) => (K[2] n, K[2] y) { n = Identity (x) y = Identity (s) }> (h, xs) }",
    "carried": "g (K[2] h, K[T,2] xs) => (K[2] l, K[T,2] ys) { l, ys = Scan <num_scan_inputs = 1, body = b (K[2] s, K[2] x) => (K[2] n, K[2] y) { n = Identity (s) y = Identity (x) }> (h, xs) }",
    "reversed": f"g (K[T,2] xs) => (K[T,2] ys) {{ ys = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (K[2] x) => (K[2] y) {{ {COPY} }}> (xs) }}",
    "over another axis": f"g (K[2,T] xs) => (K[2,T] ys) {{ ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = b (K[2] x) => (K[2] y) {{ {COPY} }}> (xs) }}",
    "captured": "g (K[2] c, float[T,2] fs) => (K[T,2] ys, float[T,2] zs) { ys, zs = Scan <num_scan_inputs = 1, body = b (float[2] f) => (K[2] y, float[2] z) { y = Identity (c) z = Neg (f) }> (fs) }",
    "squeezed": "g (K[T,1,2] xs) => (K[T,2,1] ys) { ys = Scan <num_scan_inputs = 1, body = b (K[1,2] x) => (K[2,1] y) { y = Transpose (x) }> (xs) }",
    "in a Scan": "g (K[T,3,2] xs) => (K[T,3,2] ys) { ys = Scan <num_scan_inputs = 1, body = b (K[3,2] x) => (K[3,2] y) { y = Scan <num_scan_inputs = 1, body = c (K[2] v) => (K[2] w) { w = Identity (v) }> (x) }> (xs) }",
    "in an If": "g (bool p, K[T,2] xs) => (K[T,2] ys) { ys = Scan <num_scan_inputs = 1, body = b (K[2] x) => (K[2] y) { y = If (p) <then_branch = t () => (K[2] v) { v = Identity (x) }, else_branch = e () => (K[2] w) { w = Identity (x) }> }> (xs) }",
    "carried by a Loop": "g (int64 m, K[2] h) => (K[2] l, K[T,2] ys) { l, ys = Loop <body = b (int64 i, bool c, K[2] s) => (bool d, K[2] n, K[2] y) { d = Identity (c) n = Identity (s) y = Identity (s) }> (m, , h) }",
    "kept by a Loop": "g (K[2] h, K[2] k) => (K[2] l, K[3,2] ys) <int64 m = {3}> { l, ys = Loop <body = b (int64 i, bool c, K[2] s) => (bool d, K[2] n, K[2] y) { d = Identity (c) n = Identity (k) y = Identity (s) }> (m, , h) }",
    "gathered by a Loop": "g (int64 m, K[3,2] xs) => (K[T,2] ys) { ys = Loop <body = b (int64 i, bool c) => (bool d, K[2] y) { d = Identity (c) y = Gather (xs, i) }> (m, ) }",
    "while": "g (int64 m, K[2] h, bool p) => (K[2] l, K[T,2] ys) { l, ys = Loop <body = b (int64 i, bool c, K[2] s) => (bool d, K[2] n, K[2] y) { d = And (c, p) n = Identity (s) y = Identity (s) }> (m, p, h) }",
    "of opset 8": "g (K[B,2] h, K[B,T,2] xs) => (K[B,2] l, K[B,T,2] ys) { l, ys = Scan <num_scan_inputs = 1, body = b (K[2] s, K[2] x) => (K[2] n, K[2] y) { n = Identity (x) y = Identity (s) }> (, h, xs) }",
    "of opset 8, with lengths": "g (int64[B] lens, K[B,2] h, K[B,T,2] xs) => (K[B,2] l, K[B,T,2] ys) { l, ys = Scan <num_scan_inputs = 1, directions = [1], body = b (K[2] s, K[2] x) => (K[2] n, K[2] y) { n = Identity (x) y = Identity (s) }> (lens, h, xs) }",
}  # fmt: skip
OPSETS = {8: 4, 9: 4, 16: 8, 21: 10, 25: 13}
"""The IR version of each opset. A form is tried in the last one, and in one of the others by turns."""


def fault(model: onnx.ModelProto) -> str | None:
    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_a_loop_over_it_is_one(form, kind):
    valid = 0
    older = (9, 16, 21)[(list(FORMS).index(form) + KINDS.index(kind)) % 3]
    for opset in [8] if form.startswith("of opset 8") else [older, 25]:
        head = f'<ir_version: {OPSETS[opset]}, opset_import: ["": {opset}]> '
        model = parsed(head + FORMS[form].replace("K[", f"{kind}["))
        if fault(model) is not None:
            continue
        valid += 1
        with contextlib.suppress(OrtscanError):
            assert fault(ortscan.optimize(model, verify=False)) is None
        with contextlib.suppress(OrtscanError):
            assert fault(ortscan.migrate(model, 13 if opset < 13 else 26, verify=False)) is None
    assert valid or "Gather" in FORMS[form] or form.startswith("of opset 8")


@pytest.mark.parametrize("kind", ["float8e4m3fn", "float8e5m2"])
@pytest.mark.parametrize(("opset", "left"), [(19, True), (21, False), (25, False)])
def test_one_step_over_float8_is_reshaped_where_onnxruntime_can(kind, opset, left):
    text = f"""<ir_version: 10, opset_import: ["": {opset}]> g (float[2] h, {kind}[1,2] xs) => (float[2] l, {kind}[1,2] ys) {{
        l, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, {kind}[2] x) => (float[2] n, {kind}[2] y) {{
            f = Cast <to = 1> (x) n = Sub (f, s) y = CastLike (n, x) }}> (h, xs) }}"""
    model = parsed(text)
    after = ortscan.optimize(model)
    assert ("Scan" in {node.op_type for node in after.graph.node}) == left
    number = np.array([[1.5, -3]], numpy_dtype(model.graph.input[1].type.tensor_type.elem_type))
    feeds = {"h": np.array([0.25, 1], np.float32), "xs": number}
    assert [one.tolist() for one in ort_run(after, feeds)] == [one.tolist() for one in ort_run(model, feeds)]
