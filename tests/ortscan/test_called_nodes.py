"""Functions that call each other without end are refused before anything writes their calls out."""

import onnx
import onnx_ir as ir
import pytest

import ortscan
from tests.support.text import parsed

LOOP = """y = Scan <num_scan_inputs = 1, body = b (float[3] x1) => (float[3] z1) { z1 = Neg (x1) }> (x)"""


def calling(levels: int, calls: int, leaf: str = "y = Neg (x)", where: str = "y = f.F{0} (x)") -> onnx.ModelProto:
    functions = [f'<domain: "f", opset_import: ["": 18, "f": 1]> F0 (x) => (y) {{ {leaf} }}']
    for i in range(1, levels):
        chain = " ".join(f"v{j + 1} = f.F{i - 1} (v{j})" for j in range(calls))
        functions.append(
            f'<domain: "f", opset_import: ["": 18, "f": 1]> F{i} (x) => (y) {{ v0 = Neg (x) {chain} y = Neg (v{calls}) }}'
        )
    head = '<ir_version: 10, opset_import: ["": 18, "f": 1]>'
    main = f"g (float[5,3] x) => (float[5,3] y) {{ {where.format(levels - 1)} }}"
    return parsed(head + main + "\n".join(["", *functions]))


IN_A_BODY = "y = Scan <num_scan_inputs = 1, body = b (float[3] a) => (float[3] c) {{ c = f.F{0} (a) }}> (x)"


@pytest.mark.parametrize("where", ["y = f.F{0} (x)", IN_A_BODY])
@pytest.mark.parametrize("leaf", ["y = Neg (x)", LOOP])
@pytest.mark.parametrize(
    "work",
    [
        ortscan.optimize,
        ortscan.explain,
        lambda model: ortscan.migrate(model, 21),
        lambda model: ortscan.verify(model, model),
        lambda model: ortscan.optimize(ir.from_proto(model)),
    ],
)
def test_calls_without_end_are_refused_in_one_sentence(work, leaf, where):
    with pytest.raises(ortscan.OrtscanError, match=r"would have \d{13} nodes of its functions with all calls written out"):
        work(calling(13, 10, leaf, where))


def test_functions_that_nobody_calls_and_many_calls_of_one_pass():
    assert ortscan.explain(calling(2, 2000))
    model = calling(3, 2)
    model.graph.node[0].CopyFrom(onnx.helper.make_node("Neg", ["x"], ["y"]))
    assert ortscan.explain(model)
