"""A matrix that accumulates outer products runs in blocks of steps, or step by step if blocks would compute other numbers."""

from collections.abc import Mapping
from types import ModuleType

import numpy as np
import onnx
import pytest

import ortscan
from rewrites.base.abilities import Costs
from rewrites.base.vetoes import Veto, Vetoes
from rewrites.cleanup import fold_constants
from rewrites.driver.engine import rewrite
from rewrites.graph.context import Options
from rewrites.recurrences.outer_products import blocked_outer_products, linear_attention
from rewrites.recurrences.outer_products.block_plan import BlockPlan
from tests.rewrites.apply import apply, patches, prepared, reasons, rules_of
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

RULES = [fold_constants, blocked_outer_products]
DEAR = Options(costs=Costs(step=1e7))
"""Costs with which loops are never as fast as blocks."""
AXES = "first = Constant <value = int64[1] {1}> ()  last = Constant <value = int64[1] {-1}> ()"
KEPT = "au = Unsqueeze (a, last)  d = Mul (S, au)"
PLAIN = "kc = Unsqueeze (k, last)  vr = Unsqueeze (v, first)  kv = MatMul (kc, vr)  S1 = Add (d, kv)"
READ = "qr = Unsqueeze (q, first)  r = MatMul (qr, S1)  y = Squeeze (r, first)"

DECAYS = {
    "none": "d = Identity (S)",
    "a constant": "c = Constant <value = float {0.9}> ()  d = Mul (c, S)",
    "a constant for each head": "c = Constant <value = float[2, 1, 1] {0.9, 0.5}> ()  d = Mul (c, S)",
    "an Exp": f"a = Exp (g)  {KEPT}",
    "an Exp that heads share": "a0 = ReduceMax <axes = [0]> (g)  a = Exp (a0)  d = Mul (S, a)",
    "a gate": f"a = Sigmoid (g)  {KEPT}",
    "anything": f"a = Identity (g)  {KEPT}",
    "a gate by key": f"a = Sigmoid (q)  {KEPT}",
    "a gate by key that heads share": f"a0 = ReduceMax <axes = [0]> (q)  a = Sigmoid (a0)  {KEPT}",
    "a constant by key": "c = Constant <value = float[3, 1] {0.9, 0.5, 1}> ()  d = Mul (c, S)",
}
UPDATES = {
    "a product of matrices": PLAIN,
    "a product by broadcasting": "kc = Unsqueeze (k, last)  vr = Unsqueeze (v, first)  kv = Mul (vr, kc)  S1 = Add (kv, d)",
    "an Einsum of three": 'e = ReduceSum <keepdims = 0> (g, last)  kv = Einsum <equation = "hk,hv,h->hkv"> (k, v, e)  S1 = Add (d, kv)',
    "an Einsum with dots": 'kv = Einsum <equation = "...k,...v->...kv"> (k, v)  S1 = Add (d, kv)',
    "a difference": f"{PLAIN.replace('Add (d, kv)', 'Sub (d, kv)')}",
    "keys that heads share": PLAIN.replace("(k, last)", "(k1, last)").replace("kc =", "k1 = ReduceMax <axes = [0]> (k)  kc =", 1),
    "values that heads share": PLAIN.replace("(v, first)", "(v1, first)").replace(
        "kc =", "v1 = ReduceMax <axes = [0]> (v)  kc =", 1
    ),
}
READS = {
    "a product of matrices": READ,
    "a sum of products": "qc = Unsqueeze (q, last)  p = Mul (S1, qc)  y = ReduceSum <keepdims = 0> (p, first)",
    "an Einsum with dots": 'y = Einsum <equation = "...k, ...kv -> ...v"> (q, S1)',
    "queries that heads share": READ.replace("(q, first)", "(q1, first)").replace("qr =", "q1 = ReduceMax <axes = [0]> (q)  qr ="),
}
NOTHING = "y = Identity (v)"


def written(
    decay: str,
    update: str = PLAIN,
    read: str = READ,
    *,
    steps: int | str = 20,
    heads: int | str = 2,
    way: int = 0,
    final: bool = True,
    start: str = "",
    gate: int = 1,
) -> str:
    """Return a loop over a matrix of 3 keys and 4 values per head. It scans keys k, values v, queries q, and g for the decays."""
    sizes = {"S": "3,4", "k": "3", "v": "4", "q": "3", "g": f"{gate}"}
    given = ", ".join(f"float[{steps},{heads},{size}] {name}s" for name, size in sizes.items() if name != "S")
    given += "" if start else f", float[{heads},3,4] S0"
    inner = ", ".join(f"float[{heads},{size}] {name}" for name, size in sizes.items())
    end = f"float[{heads},3,4] end, " if final else ""
    return f"""g ({given}) => ({end}float[{steps},{heads},4] ys) {start and f"<float[2,3,4] S0 = {{{start}}}>"} {{
        end, ys = Scan <num_scan_inputs = 4, scan_input_directions = [{", ".join([str(way)] * 4)}], scan_output_directions = [{way}],
            body = body ({inner}) => (float[{heads},3,4] S1, float[{heads},4] y) {{ {AXES} {decay}  {update}  {read} }}>
            (S0, ks, vs, qs, gs) }}"""


def data(steps: int = 20, heads: int = 2, dtype: type = np.float32, gate: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    shapes = {"ks": 3, "vs": 4, "qs": 3, "gs": gate}
    feeds = {name: rng.standard_normal((steps, heads, size)).astype(dtype) / 2 for name, size in shapes.items()}
    return feeds | {"gs": -np.abs(feeds["gs"]).clip(0, 1), "S0": rng.standard_normal((heads, 3, 4)).astype(dtype)}


def blocked(text: str, opset: int = 17, options: Options = DEAR) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    before = model_from_text(text, opset)
    after, report = apply(before, RULES, options=options)
    assert "blocked-outer-products" in patches(report)
    return before, after


def runs_in_blocks(after: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> bool:
    """Return True if the If runs the blocks and not the loop."""
    model = onnx.ModelProto()
    model.CopyFrom(after)
    (choice,) = [node for node in model.graph.node if node.op_type == "If" and any(_has_scan(one.g) for one in node.attribute)]
    name = choice.input[0]
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, None))
    return bool(np.all(ort_run(model, feeds)[0]))


def _has_scan(graph: onnx.GraphProto) -> bool:
    return any(node.op_type == "Scan" for node in graph.node)


def same(before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, np.ndarray], *, in_blocks: bool = True) -> None:
    feeds = {info.name: feeds[info.name] for info in before.graph.input}
    assert runs_in_blocks(after, feeds) == in_blocks
    for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
        np.testing.assert_allclose(mine, loops, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("decay", DECAYS)
def test_every_decay_in_one_block_and_in_several(decay: str, final: bool) -> None:
    for steps in (20, 150) if "key" in decay else (1, 20, 150, 160):
        feeds = data(steps)
        feeds["gs"] = np.abs(feeds["gs"]).clip(0.1, 1) if decay == "anything" else feeds["gs"]
        same(*blocked(written(DECAYS[decay], steps=steps, final=final)), feeds)


@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("steps", ["T", 150, 1100])
@pytest.mark.parametrize("decay", ["none", "a constant for each head", "an Exp", "anything", "a gate by key"])
def test_both_layouts_of_blocks(decay: str, steps: int | str, is_flat: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_outer_products, "plan_of", lambda *_: BlockPlan(16, is_flat, 0.0, 0))
    feeds = data(200 if steps == "T" else int(steps))
    feeds["gs"] = np.abs(feeds["gs"]).clip(0.1, 1) if decay == "anything" else feeds["gs"]
    same(*blocked(written(DECAYS[decay], steps=steps)), feeds)


@pytest.mark.parametrize("rule", [blocked_outer_products, linear_attention])
def test_a_decay_by_exp_that_is_the_same_in_each_step(rule: ModuleType) -> None:
    text = written(f"a = Exp (A)  {KEPT}", steps=150).replace("g (", "g (float[2,1] A, ", 1)
    before = model_from_text(text, 17)
    after, report = apply(before, [fold_constants, rule], options=DEAR)
    assert rule.RULE.name in patches(report)
    feeds = {**data(150), "A": np.array([[-0.5], [-0.1]], np.float32)}
    for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
        np.testing.assert_allclose(mine, loops, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("update", UPDATES)
def test_every_form_in_both_directions(update: str, read: str, way: int) -> None:
    same(*blocked(written(DECAYS["an Exp"], UPDATES[update], READS[read], way=way)), data())


@pytest.mark.parametrize("decay", ["a constant", "an Exp", "a gate by key"])
@pytest.mark.parametrize("sizes", [("T", 2), (150, "B"), ("T", "B")])
def test_sizes_may_be_unknown(sizes: tuple[int | str, int | str], decay: str) -> None:
    before, after = blocked(written(DECAYS[decay], steps=sizes[0], heads=sizes[1]))
    for steps in (300, 140) if sizes[0] == "T" else (150,):
        same(before, after, data(steps))
    if sizes[0] == "T":
        same(before, after, data(3), in_blocks=False)
        for model in (before, after):
            with pytest.raises(Exception, match="Dimension 0 is 0"):
                ort_run(model, {name: value for name, value in data(0).items() if name in {one.name for one in model.graph.input}})


ONE_MATRIX = """g (float[150,1,3] ks, float[150,1,4] vs, float[150,1,3] qs, float[3,4] S0) => (float[150,1,4] ys) {
    end, ys = Scan <num_scan_inputs = 3, body = b (float[3,4] S, float[1,3] k, float[1,4] v, float[1,3] q) => (float[3,4] S1, float[1,4] y) {
        S1 = Gemm <transA = 1> (k, v, S)  y = Gemm (q, S1) }> (S0, ks, vs, qs) }"""


def test_a_gemm_that_adds() -> None:
    same(*blocked(ONE_MATRIX), data(150, heads=1) | {"S0": data()["S0"][0]})
    _, report = apply(ONE_MATRIX.replace("<transA = 1>", "<transA = 1, beta = 0.5>"), RULES, options=DEAR)
    assert "blocked-outer-products" not in patches(report)


def test_the_last_matrix_alone_from_an_initial_matrix_of_zeros() -> None:
    zeros = ", ".join("0" * 24)
    same(*blocked(written(DECAYS["an Exp"], read=NOTHING, steps=150, start=zeros)), data(150))


@pytest.mark.parametrize("decay", ["an Exp", "anything", "a constant"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("name", ["ks", "vs", "qs", "S0"])
def test_infinite_nan_or_large_numbers_run_step_by_step(name: str, number: float, decay: str) -> None:
    before, after = blocked(written(DECAYS[decay]))
    feeds = data()
    feeds["gs"] = np.abs(feeds["gs"]) if decay == "anything" else feeds["gs"]
    feeds[name].flat[7] = number
    with np.errstate(all="ignore"):
        assert not runs_in_blocks(after, feeds)
        for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
            np.testing.assert_array_equal(mine, loops)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1.5, -1.5])
def test_decays_above_1_run_step_by_step(number: float) -> None:
    before, after = blocked(written(DECAYS["anything"], final=False))
    feeds = data()
    feeds["gs"][5, 1] = number
    same(before, after, feeds, in_blocks=False)


def test_a_decay_by_exp_above_1_runs_step_by_step() -> None:
    before, after = blocked(written(DECAYS["an Exp"]))
    feeds = data()
    feeds["gs"][5, 1] = 0.5
    same(before, after, feeds, in_blocks=False)


@pytest.mark.parametrize("gate", [1, 3])
@pytest.mark.parametrize("number", [0.0, -0.0, -1.0, 1.0, -0.3, 1e-45, 1e-38, 1e-20])
def test_decays_that_are_zero_negative_or_tiny(number: float, gate: int) -> None:
    text = written(DECAYS["anything"], final=False, steps=150, gate=gate)
    feeds = data(150, gate=gate)
    feeds["gs"][[0, 15, 16, 17, 60, 149]] = number
    same(*blocked(text), feeds)
    feeds["gs"][:] = number
    same(*blocked(text), feeds)


def test_a_decay_by_exp_that_underflows() -> None:
    feeds = data(150)
    feeds["gs"][[0, 15, 16, 17, 60, 149]] = -np.inf
    feeds["gs"][30:40] = -50
    same(*blocked(written(DECAYS["an Exp"], final=False, steps=150)), feeds)


@pytest.mark.parametrize(("decay", "name", "number"), [("anything", "gs", 0.0), ("anything", "gs", -0.5), ("an Exp", "S0", -0.0)])
def test_the_last_matrix_has_the_signs_of_zeros_of_the_loop(decay: str, name: str, number: float) -> None:
    feeds = data()
    feeds["gs"] = np.abs(feeds["gs"]) if decay == "anything" else feeds["gs"]
    before, after = blocked(written(DECAYS[decay]))
    feeds[name].flat[3] = number
    same(before, after, feeds, in_blocks=False)
    same(*blocked(written(DECAYS[decay]), options=Options(costs=DEAR.costs, fast_math=True)), feeds)


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("decay", ["none", "a constant", "an Exp", "anything", "a gate by key"])
def test_errors_are_at_most_four_times_those_of_the_loop(decay: str, kind: str) -> None:
    dtype = np.float32 if kind == "float" else np.float64
    text = written(DECAYS[decay], steps=600, final=False).replace("float", kind)
    before, after = blocked(text)
    feeds = data(600, dtype=dtype)
    feeds["gs"] = np.abs(feeds["gs"]).clip(0, 1) if decay == "anything" else feeds["gs"]
    wide = {name: value.astype(np.longdouble) for name, value in feeds.items()}
    state, rows = wide["S0"], list[np.ndarray]()
    number = np.longdouble(dtype(0.9))
    for k, v, q, g in zip(*(wide[name] for name in ("ks", "vs", "qs", "gs")), strict=True):
        factor = {
            "none": 1,
            "a constant": number,
            "an Exp": np.exp(g)[..., None],
            "anything": g[..., None],
            "a gate by key": 1 / (1 + np.exp(-q[..., None])),
        }[decay]
        state = state * factor + k[:, :, None] * v[:, None, :]
        rows.append(np.einsum("hk,hkv->hv", q, state))
    exact = np.array(rows)
    mine, loops = (np.abs(ort_run(model, feeds)[-1] - exact).max() for model in (after, before))
    assert runs_in_blocks(after, feeds)
    assert mine <= 4 * loops


NEAR = {
    "the delta rule": (
        DECAYS["none"],
        'f = Einsum <equation = "hkv,hk->hv"> (d, k)  e = Sub (v, f)  w = Einsum <equation = "hk,hv->hkv"> (k, e)  S1 = Add (d, w)',
        "ATTENTION-BLOCKS",
    ),
    "a constant above 1": (DECAYS["a constant"].replace("0.9", "1.1"), PLAIN, "ATTENTION-DECAY"),
    "a constant below 0, where the last matrix is of use": (DECAYS["a constant"].replace("0.9", "-0.9"), PLAIN, "ATTENTION-DECAY"),
}


@pytest.mark.parametrize("case", NEAR)
def test_unsupported_matrices_stay_in_the_loop(case: str) -> None:
    decay, update, code = NEAR[case]
    _, report = apply(written(decay, update), RULES, options=DEAR)
    assert "blocked-outer-products" not in patches(report)
    assert reasons(report) == [code]


def test_a_constant_of_0_or_less_runs_in_blocks_if_the_last_matrix_is_unused() -> None:
    for number in ("-0.9", "0", "1"):
        text = written(DECAYS["a constant"].replace("0.9", number), final=False, steps=150)
        same(*blocked(text), data(150))


def test_refusals_for_type_memory_cost_and_shape() -> None:
    text = written(DECAYS["none"], steps=600)
    halves = text.replace("float", "float16")
    for options, given, code in (
        (DEAR, halves, "ATTENTION-TYPE"),
        (Options(costs=DEAR.costs, memory_budget=100), text, "MEMORY-BUDGET"),
        (Options(), written(DECAYS["none"], steps=3), "ATTENTION-COST"),
        (DEAR, text.replace("600,2,4]", "600,2,V]").replace("[2,4]", "[2,V]").replace("[2,3,4]", "[2,3,V]"), "ATTENTION-SHAPE"),
    ):
        _, report = apply(given, RULES, options=options)
        assert reasons(report) == [code]


def wide(heads: int, keys: int, values: int) -> str:
    text = written(DECAYS["an Exp"], steps=1024, heads=heads, final=False)
    text = text.replace(f"{heads},3,4]", f"{heads},{keys},{values}]").replace(f"{heads},3]", f"{heads},{keys}]")
    return text.replace(f"{heads},4]", f"{heads},{values}]")


@pytest.mark.parametrize(("sizes", "first"), [((1, 256, 256), "blocked-outer-products"), ((4, 32, 32), "linear-attention")])
def test_the_faster_of_blocks_and_linear_attention_is_chosen(sizes: tuple[int, int, int], first: str) -> None:
    _, report = apply(wide(*sizes), [fold_constants, linear_attention, blocked_outer_products])
    assert next(name for name in patches(report) if name != "fold-constants") == first


def test_linear_attention_is_used_if_blocks_are_vetoed() -> None:
    ctx = prepared(wide(1, 256, 256))
    ctx.vetoes = Vetoes([Veto("blocked-outer-products", "", 0, "wrong")])
    report = rewrite(ctx, rules_of([fold_constants, linear_attention, blocked_outer_products]), debug=True)
    assert "linear-attention" in patches(report)


MAMBA_2 = """g (float[B,2,3,4] S0, float[T,B,2,3] xs, float[T,B,2] ds, float[T,B,4] bs, float[T,B,4] cs, float[2] A)
    => (float[B,2,3,4] end, float[T,B,2,3] ys) {
    end, ys = Scan <num_scan_inputs = 4, body = b (float[B,2,3,4] S, float[B,2,3] x, float[B,2] d, float[B,4] bb, float[B,4] c)
        => (float[B,2,3,4] S1, float[B,2,3] y) {
        l = Constant <value = int64[1] {-1}> ()  m = Constant <value = int64[2] {1, 2}> ()  o = Constant <value = int64[2] {2, 3}> ()
        e = Mul (d, A)  a = Exp (e)  au = Unsqueeze (a, o)  du = Unsqueeze (d, l)  dx = Mul (du, x)  dxu = Unsqueeze (dx, l)
        bu = Unsqueeze (bb, m)  u = Mul (dxu, bu)  k = Mul (au, S)  S1 = Add (k, u)
        cu = Unsqueeze (c, m)  p = Mul (S1, cu)  y = ReduceSum <keepdims = 0> (p, l) }> (S0, xs, ds, bs, cs) }"""


@pytest.mark.parametrize("opset", [13, 18, 26])
@pytest.mark.parametrize("batch", ["B", 1, 2])
def test_mamba_2(batch: int | str, opset: int) -> None:
    rng, steps, rows = np.random.default_rng(0), 130, 2 if batch == "B" else batch
    shapes = {"xs": (steps, rows, 2, 3), "ds": (steps, rows, 2), "bs": (steps, rows, 4), "cs": (steps, rows, 4), "A": (2,)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (shapes | {"S0": (rows, 2, 3, 4)}).items()}
    feeds |= {"ds": np.abs(feeds["ds"]), "A": -np.abs(feeds["A"])}
    for size in ("T", steps):
        same(*blocked(MAMBA_2.replace("[T,", f"[{size},").replace("B,", f"{batch},"), opset), feeds)


def test_other_nodes_of_the_loop_stay_in_it() -> None:
    text = """g (float[150,3] ks, float[150,4] vs, float[150,3] qs, float[3,4] S0, float[3] z0) => (float[3] end, float[150,4] ys) {
        last, end, ys = Scan <num_scan_inputs = 3, body = b (float[3,4] S, float[3] z, float[3] k, float[3] q, float[4] v)
            => (float[3,4] S1, float[3] z1, float[4] y) { axis = Constant <value = int64[1] {1}> ()  kc = Unsqueeze (k, axis)
            kv = Mul (kc, v)  S1 = Add (S, kv)  t = Tanh (z)  z1 = Add (t, k)  n = MatMul (q, S1)  m = MatMul (q, z1)  y = Sub (n, m) }>
            (S0, z0, ks, qs, vs) }"""
    feeds = {name: array[:, 0] for name, array in data(150).items() if name in ("ks", "vs", "qs")}
    before, after = blocked(text)
    assert any(node.op_type == "Scan" for node in after.graph.node)
    same(before, after, feeds | {"S0": data()["S0"][0], "z0": np.ones(3, np.float32)})


def test_optimize_writes_only_standard_operators() -> None:
    model = model_from_text(written(DECAYS["an Exp"], steps=1000, final=False), 18)
    result = ortscan.optimize(model, target="onnx", verify=False)
    assert {node.domain for node in result.graph.node} == {""}
    assert not any(node.op_type == "Scan" for node in result.graph.node)
    same(model, result, data(1000))
