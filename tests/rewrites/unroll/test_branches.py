import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.base.abilities import Abilities
from rewrites.driver.model_changes import flatten_ifs
from rewrites.driver.prepare import prepare
from rewrites.driver.tidying import tidy
from rewrites.graph.context import Options
from tests.rewrites.apply import context_of, read, same_on_ort

NO_IF = Options(target=Abilities("coreml", frozenset(), {}))
CHOICE = """g (float[2] x, {fed} p) => (float[M] y) <float[2] w = {{2, 3}}, bool yes = {{1}}, bool no = {{0}}> {{
    c = Identity (p)
    y = If <then_branch = t () => (float[2] a) {{ {then} }}, else_branch = e () => (float[N] b) {{ {other} }}> ({condition}) }}"""


def choice(
    condition: str = "c", then: str = "a = Add (x, w)", other: str = "n = Neg (x) b = Mul (n, w)", fed: str = "bool"
) -> onnx.ModelProto:
    return read(CHOICE.format(condition=condition, then=then, other=other, fed=fed), check=False)


def branches(model: onnx.ModelProto, options: Options = NO_IF) -> tuple[onnx.ModelProto, list[str]]:
    ctx = context_of(model, options)
    prepare(ctx)
    done, said = flatten_ifs(ctx)
    assert bool(done) == any("both branches run" in message for message in said)
    tidy(ctx)
    return ir.to_proto(ctx.model), said


def both(model: onnx.ModelProto, **feeds: np.ndarray) -> onnx.ModelProto:
    after, said = branches(model)
    assert "both branches run" in said[0]
    onnx.checker.check_model(after, full_check=True)
    for flag in (True, False):
        shape = tuple(dim.dim_value for dim in model.graph.input[1].type.tensor_type.shape.dim)
        same_on_ort(model, after, {"x": np.ones(2, np.float32), "p": np.full(shape, flag), **feeds})
    return after


@pytest.mark.parametrize(("condition", "taken"), [("yes", ["Add"]), ("no", ["Neg", "Mul"])])
def test_a_branch_that_a_constant_decides_takes_the_place_of_the_if(condition, taken):
    after, said = branches(choice(condition), Options())
    assert [node.op_type for node in after.graph.node] == taken
    assert said == []


def test_a_branch_that_the_model_decides_stays_where_there_is_an_if():
    after, said = branches(choice(), Options())
    assert "If" in [node.op_type for node in after.graph.node]
    assert said == []


def test_where_there_is_none_both_run_and_the_condition_chooses():
    after = both(choice())
    assert [node.op_type for node in after.graph.node] == ["Add", "Neg", "Mul", "Where"]


@pytest.mark.parametrize("kind", ["bool", "bool[1]", "bool[1,1]"])
def test_conditions_of_one_element_choose_whatever_their_rank(kind):
    both(choice(fed=kind))


def test_branches_in_branches_are_chosen_from_too():
    inner = "a = If <then_branch = u () => (float[2] d) { d = Exp (x) }, else_branch = v () => (float[2] f) { f = Abs (x) }> (c)"
    after = both(choice(then=inner))
    assert [node.op_type for node in after.graph.node].count("Where") == 2


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("k = Cast <to = 7> (x) b = Gather (w, k)", "Gather"),
        ("b = RandomUniform <shape = [2]> ()", "RandomUniform"),
        ("k = Constant <value_ints = [0, 2]> () b = Gather (w, k)", "Gather"),
        ("k = Constant <value_ints = [-3, 1]> () b = GatherElements (x, k)", "GatherElements"),
        ("k = Constant <value_int = 1> () b = CumSum (x, k)", "CumSum"),
        ("k = Constant <value = int64[2, 1] {0, 5}> () b = GatherND (x, k)", "GatherND"),
        ("k = Constant <value_ints = [3]> () r = Reshape (x, k) m = ReduceSum <keepdims = 0> (r) b = Add (m, x)", "does not run"),
        ('k = Constant <value = float[3, 2] {1, 2, 3, 4, 5, 6}> () b = Einsum <equation = "i,ij->j"> (x, k)', "does not run"),
        ("b = Concat <axis = 0> (x, w)", "sizes"),
        ("r = Relu (x) b = own.Op (r)", "Op"),
    ],
    ids=[
        "may fail",
        "beyond the end",
        "before the start",
        "no axis",
        "of several axes",
        "of another count",
        "of sizes that do not fit",
        "random",
        "of another size",
        "unknown",
    ],
)
def test_branches_that_may_not_run_unasked_keep_their_if(other, said):
    model = choice(other=other)
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    after, messages = branches(model)
    assert "If" in [node.op_type for node in after.graph.node]
    assert said in messages[0]


@pytest.mark.parametrize(
    "other",
    [
        "k = Constant <value_ints = [1, -2]> () b = Gather (w, k)",
        "k = Constant <value_ints = [-2, 1]> () b = GatherElements (x, k)",
        "k = Constant <value = int64[2, 1] {0, 1}> () b = GatherND (x, k)",
        "k = Constant <value_int = -1> () b = CumSum (x, k)",
        "k = Constant <value = int64[1, 1] {1}> () u = Constant <value_floats = [3.0]> () b = ScatterND (x, k, u)",
    ],
)
def test_branches_with_indices_that_fit_both_run(other):
    both(choice(other=other))


def test_a_model_of_nothing_but_an_if_is_changed_too():
    model = choice()
    assert ortscan.explain(model, target="coreml").changed
    assert "If" not in [node.op_type for node in ortscan.optimize(model, target="coreml").graph.node]


@pytest.mark.parametrize(
    "other",
    [
        "r = ReduceMax <keepdims = 1> (x) d = Sub (x, r) e = Exp (d) b = Div (e, w)",
        "k = Constant <value_floats = [2.0]> () d = Sqrt (k) e = Mul (x, x) b = Div (e, d)",
        "d = Cast <to = 11> (x) e = Sqrt (d) f = Div (d, e) b = Cast <to = 1> (f)",
    ],
)
def test_branches_that_divide_computed_floats_both_run(other):
    both(choice(other=other))


def test_names_and_initializers_of_branches_do_not_clash():
    model = choice(
        then="k = Constant <value_floats = [1.0, 2.0]> () a = Add (x, k)",
        other="k = Constant <value_floats = [3.0, 4.0]> () b = Mul (x, k)",
    )
    both(model)


def test_loops_in_branches_of_loops_are_written_out_too():
    text = """g (float[3] x, bool p) => (float[3] a) <int64 k = {3}, bool t = {1}> {
        a = Loop <body = outer (int64 i, bool c, float[3] s) => (bool c1, float[3] v) { c1 = Identity (c)
            v = If (p) <
                then_branch = yes () => (float[3] m) {
                    m = Loop <body = inner (int64 j, bool d, float[3] r) => (bool d1, float[3] r1) { d1 = Identity (d) r1 = Sin (r) }> (i, c, s) },
                else_branch = no () => (float[3] n) { n = Neg (s) }>
        }> (k, t, x) }"""
    model = read(text)
    after = ortscan.optimize(model, target="coreml")
    assert not {"Scan", "Loop", "If"} & {node.op_type for node in ir.from_proto(after).graph.all_nodes()}
    for flag in (True, False):
        same_on_ort(model, after, {"x": np.array([0.5, -1, 2], np.float32), "p": np.array(flag)})
