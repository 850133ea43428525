"""A loop that has a plan becomes a call of a function that holds it; without a library onnxruntime runs the Scan in there."""

import numpy as np
import onnx
import pytest

import ortscan
from rewrites.native import native_loop
from tests.rewrites.apply import apply, read
from tests.rewrites.harness import loop, scan, stays
from tests.support.plan_decoder import from_text
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal, normalised

FEEDS = {"s": np.float32([1, -2]), "xs": np.arange(6, dtype=np.float32).reshape(3, 2), "w": np.float32([0.5, 2])}
GIVEN = "float[2] s, float[3,2] xs, float[2] w"


def calls(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """All calls of plans, those in branches and bodies too."""

    def within(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        inner = [a.g for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
        return [node for node in graph.node if node.domain == "ai.ortscan"] + [call for one in inner for call in within(one)]

    return within(model.graph)


def plan_of(call: onnx.NodeProto):  # type: ignore[no-untyped-def]
    (attribute,) = call.attribute
    assert attribute.name == "plan"
    return from_text(attribute.s.decode("ascii"))


def without_plans(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with an empty word in the place of each plan, to be read."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for call in calls(copy):
        call.attribute[0].s = b"..."
    return copy


def test_a_scan_becomes_a_call_and_its_captured_values_inputs() -> None:
    text = scan("a = Mul (h, w) b = Add (a, k) c = Add (b, x) h1 = Tanh (c) y = Exp (h1)", given=GIVEN, weights="float k = {2}")
    after, report = apply(text, [native_loop], feeds=FEEDS)
    expected = """<ir_version: 10, opset_import: ["": 18, "ai.ortscan": 1]>
        g (float[2] s, float[3,2] xs, float[2] w) => (float[2] z, float[3,2] ys) {
            z, ys = ai.ortscan.Scan1:l0 <plan = "..."> (s, xs, w)
        }
        <domain: "ai.ortscan", overload: "l0", opset_import: ["": 18]>
        Scan1 <plan> (s_1, xs_1, w_1) => (loop_h1, loop_y) {
            k_1 = Constant <value = float {2}> ()
            loop_h1, loop_y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1, float[2] y) {
                a = Mul (h, w_1) b = Add (a, k_1) c = Add (b, x) h1 = Tanh (c) y = Exp (h1)
            }> (s_1, xs_1)
        }"""
    assert_text_equal(without_plans(after), expected)
    (call,) = calls(after)
    assert len(plan_of(call).inputs) == 3
    assert [one.fate for one in report.loops] == ["compiled"]


def test_directions_stay_in_the_function() -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)", attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"
    )
    after, _ = apply(text, [native_loop], feeds={name: FEEDS[name] for name in ("s", "xs")})
    assert len(calls(after)) == len(after.functions) == 1


def test_each_loop_has_an_overload_of_its_own() -> None:
    body = "body = b{0} (float[2] h{0}, float[2] x{0}) => (float[2] i{0}, float[2] y{0}) {{ i{0} = {1} (h{0}, x{0}) y{0} = Tanh (i{0}) }}"
    nodes = "".join(
        f"z{n}, ys{n} = Scan <num_scan_inputs = 1, {body.format(n, op)}> (s, xs) " for n, op in enumerate(("Add", "Max"))
    )
    text = f"g (float[2] s, float[3,2] xs) => (float[2] z0, float[3,2] ys0, float[2] z1, float[3,2] ys1) {{ {nodes} }}"
    after, _ = apply(text, [native_loop], feeds={name: FEEDS[name] for name in ("s", "xs")})
    assert [call.overload for call in calls(after)] == [function.overload for function in after.functions] == ["l0", "l1"]


def test_a_loop_in_a_branch_becomes_a_call_there() -> None:
    inner = "z, v = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1, float[2] y)"
    inner += " { a = Mul (h, w) h1 = Add (a, x) y = Tanh (h1) }> (s, xs)"
    text = f"""g (bool t, {GIVEN}) => (float[3,2] ys) {{ ys = If (t) <then_branch = p () => (float[3,2] v) {{ {inner} }},
        else_branch = q () => (float[3,2] u) {{ u = Abs (xs) }}> }}"""
    for chosen in (True, False):
        after, _ = apply(text, [native_loop], feeds=FEEDS | {"t": np.array(chosen)})
        assert len(calls(after)) == len(after.functions) == 1


def test_a_loop_in_a_body_becomes_a_call_there() -> None:
    inner = "r, v = Scan <num_scan_inputs = 1, body = c (float[2] k, float[2] e) => (float[2] k1, float[2] o)"
    inner += " { q = Mul (k, g) k1 = Add (q, e) o = Tanh (k1) }> (g, xs)"
    text = loop(f"{inner} g1 = Identity (r) y = Tan (r)", inputs="float[2] g", outputs="float[2] g1, float[2] y")
    feeds = {name: FEEDS[name] for name in ("s", "xs")}
    after, report = apply(text, [native_loop], feeds=feeds)
    assert len(calls(after)) == len(after.functions) == 1
    assert [(one.where.count("/"), one.fate) for one in report.loops] == [(2, "compiled"), (1, "reduced")]
    after, report = apply(text.replace("Tan (", "Exp ("), [native_loop], feeds=feeds)
    assert [call.op_type for call in after.graph.node] == ["Loop1"]
    assert [(one.where.count("/"), one.fate) for one in report.loops] == [(2, "compiled"), (1, "compiled")]


def test_an_output_that_nobody_reads_has_a_name() -> None:
    model = read(scan("h1 = Add (h, x) y = Tanh (h1)", results="float[2] z"))
    model.graph.node[0].output[1] = ""
    after, _ = apply(model, [native_loop], check=False)
    assert all(calls(after)[0].output)
    assert len(ort_run(after, {name: FEEDS[name] for name in ("s", "xs")})) == 1


def test_what_has_no_plan_stays_and_says_why() -> None:
    text = scan("a = Tan (h) h1 = Add (a, x) y = Exp (h1)")
    stays(native_loop, text, "NATIVE-OPERATOR")
    cut = "j = Reshape (i, one) x = Slice (xs, j, two) h1 = ReduceMax <keepdims = 0> (x, none) y = Exp (h)"
    stays(native_loop, loop(cut, weights="int64[1] one = {1}, int64[1] two = {3}, int64[1] none = {0}"), "NATIVE-FORM")


@pytest.mark.parametrize("passes", [["native-loop"], ["default", "native-loop"], None])
def test_a_model_that_has_such_calls_stays_as_it_is(passes: list[str] | None) -> None:
    once = ortscan.optimize(read(scan("a = Mul (h, w) h1 = Add (a, x) y = Tanh (h1)", given=GIVEN)), passes=["native-loop"])
    twice = ortscan.optimize(once, passes=passes)
    assert isinstance(once, onnx.ModelProto)
    assert isinstance(twice, onnx.ModelProto)
    assert len(calls(once)) == 1
    assert normalised(twice) == normalised(once)
    assert all(np.array_equal(one, other) for one, other in zip(ort_run(once, FEEDS), ort_run(twice, FEEDS), strict=True))


def test_a_second_loop_beside_such_a_call_gets_another_overload() -> None:
    once = ortscan.optimize(read(scan("a = Mul (h, w) h1 = Add (a, x) y = Tanh (h1)", given=GIVEN)), passes=["native-loop"])
    other = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> '
        + scan("h1 = Max (h, x) y = Exp (h1)", outer="z2, ys2", results="float[2] z2, float[3,2] ys2")
    )
    assert isinstance(once, onnx.ModelProto)
    once.graph.node.extend(other.graph.node)
    once.graph.output.extend(other.graph.output)
    twice = ortscan.optimize(once, passes=["native-loop"])
    assert isinstance(twice, onnx.ModelProto)
    assert sorted(call.overload for call in calls(twice)) == ["l0", "l1"]
    assert [result.shape for result in ort_run(twice, FEEDS)] == [(2,), (3, 2), (2,), (3, 2)]


def test_it_is_used_only_where_it_is_asked_for() -> None:
    text = scan("a = Mul (h, w) h1 = Add (a, x) t = Tanh (h1) y = Mul (t, h)", given=GIVEN)
    plain, asked = ortscan.optimize(read(text)), ortscan.optimize(read(text), passes=["default", "native-loop"])
    assert isinstance(plain, onnx.ModelProto)
    assert isinstance(asked, onnx.ModelProto)
    assert calls(plain) == []
    assert len(calls(asked)) == 1


def test_the_report_says_what_the_plan_does_and_what_runs_without_the_library() -> None:
    model = read(scan("a = Mul (h, w) b = Add (a, x) h1 = Tanh (b) y = Identity (h1)", given=GIVEN))
    report = ortscan.explain(model, passes=["native-loop"])
    (compiled,) = (entry for entry in report.loops if entry.fate == "compiled")
    assert compiled.notes[-2:] == [
        "the plan runs one step after the other: 1 mul add, 1 tanh",
        "a session without ortscan's library runs the Scan",
    ]


def test_a_constant_that_the_opset_cannot_write_into_a_function_stays_outside() -> None:
    text = loop("r = Gather (xs, i) k = Add (n, one) h1 = Add (h, r) y = Tanh (h)", inputs="float[2] h, int64 n",
                outputs="float[2] h1, int64 k, float[2] y", given="float[2] s, int64 start, float[3,2] xs", operands="s, start",
                results="float[2] z, int64 last, float[N,2] ys", outer="z, last, ys", weights="int64 one = {1}")  # fmt: skip
    stays(native_loop, text, "NATIVE-TYPE", opset=8, detail="the Constant of opset 8 holds only floats")
    _, report = apply(text, [native_loop], opset=9)
    assert report.patches
