"""Layers of different kinds and widths in one body become a node each."""

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
CELLS = {
    "RNN": "@a = Add (@xw, @hr)  @h1 = Tanh (@a)",
    "GRU": """@z0, @r0, @n0 = Split <axis = 1, num_outputs = 3> (@xw)  @z1, @r1, @n1 = Split <axis = 1, num_outputs = 3> (@hr)
        @za = Add (@z0, @z1)  @z = Sigmoid (@za)  @ra = Add (@r0, @r1)  @r = Sigmoid (@ra)  @rn = Mul (@r, @n1)  @na = Add (@n0, @rn)
        @n = Tanh (@na)  @d = Sub (@h, @n)  @zd = Mul (@z, @d)  @h1 = Add (@n, @zd)""",
    "LSTM": """@a = Add (@xw, @hr)  @i0, @f0, @g0, @o0 = Split <axis = 1, num_outputs = 4> (@a)  @i = Sigmoid (@i0)  @f = Sigmoid (@f0)
        @g = Tanh (@g0)  @o = Sigmoid (@o0)  @ig = Mul (@i, @g)  @fc = Mul (@f, @c)  @c1 = Add (@ig, @fc)  @t = Tanh (@c1)
        @h1 = Mul (@o, @t)""",
}


@pytest.mark.parametrize("first", CELLS)
@pytest.mark.parametrize("second", CELLS)
@pytest.mark.parametrize("widths", [(4, 6), (6, 4)])
def test_two_layers_of_different_widths_become_two_nodes(first, second, widths):
    rng = np.random.default_rng(9)
    states, parts, weights = [], [], {}
    for kind, layer, x, width, hidden in ((first, "p", "x", 3, widths[0]), (second, "q", "ph1", *widths)):
        weights[f"{layer}W"] = rng.standard_normal((width, GATES[kind] * hidden)).astype(np.float32)
        weights[f"{layer}R"] = rng.standard_normal((hidden, GATES[kind] * hidden)).astype(np.float32)
        states += [(f"{layer}{state}", hidden) for state in ("hc" if kind == "LSTM" else "h")]
        parts.append(f"@xw = MatMul ({x}, @W)  @hr = MatMul (@h, @R)  {CELLS[kind]}".replace("@", layer))

    def listed(mark: str) -> str:
        return ", ".join(f"float[2,{hidden}] {state}{mark}" for state, hidden in states)

    def named(mark: str) -> str:
        return ", ".join(f"{state}{mark}" for state, _ in states)

    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
    g ({listed("0")}, float[5,2,3] xs) => ({listed("n")}) {{
        {named("n")} = Scan <num_scan_inputs = 1, body = step ({listed("")}, float[2,3] x) => ({listed("1")}) {{ {"  ".join(parts)} }}>
            ({named("0")}, xs) }}""")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    feeds = {f"{state}0": rng.standard_normal((2, hidden)).astype(np.float32) for state, hidden in states}
    feeds["xs"] = rng.standard_normal((5, 2, 3)).astype(np.float32)
    result = to_caller_type(rewritten(model, target="onnx", debug=True)[0])
    nodes = [node.op_type for node in result.graph.node if node.op_type in {*GATES, "Scan"}]
    assert sorted(nodes) == sorted([first, second])
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)
