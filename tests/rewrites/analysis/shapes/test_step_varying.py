"""Values that may have another shape in another step, where a node does not fit what it is given."""

import pytest

from rewrites.analysis.shapes.step_varying import unsteady_values
from rewrites.loops import ScanView, view
from tests.rewrites.apply import prepared

TEXT = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float{dims} s, int64[T,1] n) => (float{dims} l) <int64[1] zero = {{0}}, int64[1] axis = {{{axis}}}> {{
  l = Scan <num_scan_inputs = 1, body = b (float{dims} h, int64[1] k) => (float{dims} h1) {{
    g = com.microsoft.FastGelu (h)
    a = Slice (g, zero, k, axis)
    m = ReduceSum <keepdims = 0> (a)
    h1 = Add (h, m)
  }}> (s, n)
}}
"""


@pytest.mark.parametrize(("dims", "axis"), [("", 0), ("[2]", 1), ("[2]", -2), ("[2]", 0)])
def test_a_slice_whose_ends_change_is_unsteady_whatever_axes_it_names(dims: str, axis: int) -> None:
    ctx = prepared(TEXT.format(dims=dims, axis=axis), check=False)
    loop = view(next(node for node in ctx.model.graph if node.op_type == "Scan"), ctx.opset)
    assert isinstance(loop, ScanView)
    assert "a" in {value.name for value in unsteady_values(loop, ctx)}
