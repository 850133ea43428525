"""A matrix that accumulates outer products becomes one LinearAttention, however it is written. Other matrices stay."""

import numpy as np
import pytest

from rewrites.base.abilities import UnrollLimits
from rewrites.cleanup import fold_constants
from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.loop_form import roll_up
from rewrites.recurrences.outer_products import linear_attention
from rewrites.unroll import unroll
from tests.rewrites.apply import apply, patches, reasons
from tests.support.loop_oracle import run_model
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

RULES = [fold_constants, linear_attention, loop_fission]
AXES = "first = Constant <value = int64[1] {1}> ()  last = Constant <value = int64[1] {-1}> ()  both = Constant <value = int64[2] {-1, -2}> ()"
COLUMN = "kc = Unsqueeze (k, last)  vr = Unsqueeze (v, first)"
PLAIN = f"{COLUMN}  kv = MatMul (kc, vr)  S1 = Add (d, kv)"
READ = "qr = Unsqueeze (q, first)  r = MatMul (qr, S1)  y = Squeeze (r, first)"

UPDATES = {
    "a product of matrices": (PLAIN, "linear"),
    "a product by broadcasting": (f"{COLUMN}  kv = Mul (vr, kc)  S1 = Add (kv, d)", "linear"),
    "an Einsum": ('kv = Einsum <equation = "hk,hv->hkv"> (k, v)  S1 = Add (kv, d)', "linear"),
    "scaled twice": (
        f"bu = Unsqueeze (b, last)  {COLUMN}  kv = MatMul (kc, vr)  w = Mul (kv, bu)  n = Neg (w)  S1 = Sub (d, n)",
        "linear",
    ),
    "the delta rule": (
        f"{COLUMN}  T = Transpose <perm = [0, 2, 1]> (d)  f = MatMul (T, kc)  fs = Squeeze (f, last)  e = Sub (v, fs)  m = Mul (b, e)"
        "  mr = Unsqueeze (m, first)  w = MatMul (kc, mr)  S1 = Add (d, w)",
        "delta",
    ),
    "the delta rule, expanded": (
        f"{COLUMN}  kb = Mul (k, b)  kbc = Unsqueeze (kb, last)  kr = Unsqueeze (k, first)  f = MatMul (kr, d)  w = Mul (kbc, f)"
        "  o = MatMul (kbc, vr)  left = Sub (d, w)  S1 = Add (left, o)",
        "delta",
    ),
    "the delta rule, in full": (
        'f = Einsum <equation = "hkv,hk->hv"> (d, k)  e = Sub (v, f)  w = Einsum <equation = "hk,hv->hkv"> (k, e)  S1 = Add (d, w)',
        "delta",
    ),
}
DECAYS = {
    "none": "d = Identity (S)",
    "a constant": "c = Constant <value = float {0.9}> ()  d = Mul (c, S)",
    "by head": "a = Exp (h)  au = Unsqueeze (a, last)  d = Mul (S, au)",
    "by key": "a = Exp (g)  au = Unsqueeze (a, last)  d = Mul (au, S)",
    "a gate": "a = Sigmoid (g)  au = Unsqueeze (a, last)  d = Mul (au, S)",
}
READS = {
    "a product of matrices": READ,
    "a sum of products": "qc = Unsqueeze (q, last)  p = Mul (S1, qc)  y = ReduceSum <keepdims = 0> (p, first)",
    "an Einsum, scaled": 'half = Constant <value = float {0.5}> ()  o = Einsum <equation = "hk,hkv->hv"> (q, S1)  y = Mul (o, half)',
}


def written(
    update: str, decay: str, read: str, *, steps: int | str = 6, heads: int | str = 2, ways: int = 0, start: str = ""
) -> str:
    """Return a loop over a matrix of 3 keys and 4 values per head. It scans keys k, values v, queries q, exponents g and h, rates b."""
    sizes = {"S": "3,4", "k": "3", "v": "4", "q": "3", "g": "3", "h": "1", "b": "1"}
    given = ", ".join(f"float[{steps},{heads},{size}] {name}s" for name, size in sizes.items() if name != "S")
    given += "" if start else f", float[{heads},3,4] S0"
    inner = ", ".join(f"float[{heads},{size}] {name}" for name, size in sizes.items())
    return f"""g ({given}) => (float[{heads},3,4] end, float[{steps},{heads},4] ys) {start and f"<float[2,3,4] S0 = {{{start}}}>"} {{
        end, ys = Scan <num_scan_inputs = 6, scan_input_directions = [{", ".join([str(ways)] * 6)}], scan_output_directions = [{ways}],
            body = body ({inner}) => (float[{heads},3,4] S1, float[{heads},4] y) {{ {AXES} {decay}  {update}  {read} }}>
            (S0, ks, vs, qs, gs, hs, bs) }}"""


def data(steps: int = 6, heads: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    shapes = {"ks": 3, "vs": 4, "qs": 3, "gs": 3, "hs": 1, "bs": 1}
    feeds = {name: rng.standard_normal((steps, heads, size)).astype(np.float32) / 2 for name, size in shapes.items()}
    feeds |= {name: -np.abs(feeds[name]) for name in ("gs", "hs")} | {"bs": np.abs(feeds["bs"])}
    return feeds | {"S0": rng.standard_normal((heads, 3, 4)).astype(np.float32)}


def attended(text: str, feeds: dict[str, np.ndarray], opset: int = 18) -> tuple[str, list[str]]:
    """Return the update rule and the operators of the rewritten model, and check that its results equal the loop's."""
    before = model_from_text(text, opset)
    feeds = {info.name: feeds[info.name] for info in before.graph.input}
    after, report = apply(before, RULES, feeds=feeds)
    assert "linear-attention" in patches(report)
    (node,) = [node for node in after.graph.node if node.op_type == "LinearAttention"]
    assert not any(node.op_type == "Scan" for node in after.graph.node)
    for mine, loops, oracle in zip(ort_run(after, feeds), ort_run(before, feeds), run_model(before, feeds), strict=True):
        np.testing.assert_allclose(mine, loops, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mine, oracle, rtol=1e-5, atol=1e-6)
    (rule,) = [attribute.s.decode() for attribute in node.attribute if attribute.name == "update_rule"]
    return rule, [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("update", UPDATES)
def test_every_form_becomes_one_operator(update: str, decay: str) -> None:
    step, rule = UPDATES[update]
    expected = rule if decay == "none" else {"linear": "gated", "delta": "gated_delta"}[rule]
    assert attended(written(step, DECAYS[decay], READ), data())[0] == expected


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("sizes", [(6, 2), ("T", 2), (6, "B"), ("T", "B"), (6, 1)])
def test_unknown_sizes_and_other_forms_of_queries(sizes: tuple[int | str, int | str], read: str) -> None:
    text = written(PLAIN, DECAYS["by key"], READS[read], steps=sizes[0], heads=sizes[1])
    attended(text, data(heads=1 if sizes[1] == 1 else 2))


@pytest.mark.parametrize("start", ["", ", ".join("0" * 24)])
@pytest.mark.parametrize("update", ["a product of matrices", "the delta rule"])
def test_a_loop_from_the_last_step_to_the_first(update: str, start: str) -> None:
    attended(written(UPDATES[update][0], DECAYS["by head"], READ, ways=1, start=start), data())


@pytest.mark.parametrize("name", ["ks", "vs", "qs", "gs", "bs", "S0"])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("update", ["a product of matrices", "the delta rule"])
def test_infinities_and_nan_affect_the_same_steps_as_in_the_loop(update: str, number: float, name: str) -> None:
    if update == "a product of matrices" and name == "bs":
        update = "scaled twice"
    feeds = data()
    feeds[name][3 if name != "S0" else 1, 0, 0] = number
    attended(written(UPDATES[update][0], DECAYS["by key"], READ), feeds)


def test_heads_with_shared_keys_and_a_transposed_state() -> None:
    text = """g (float[T,B,2,3] xs, float[T,B,2] ds, float[T,B,4] bs, float[T,B,4] cs, float[B,2,3,4] S0, float[2] A)
        => (float[B,2,3,4] end, float[T,B,2,3] ys) {
        end, ys = Scan <num_scan_inputs = 4, body = b (float[B,2,3,4] S, float[B,2,3] x, float[B,2] d, float[B,4] bb, float[B,4] c)
            => (float[B,2,3,4] S1, float[B,2,3] y) {
            l = Constant <value = int64[1] {-1}> ()  m = Constant <value = int64[2] {1, 2}> ()  o = Constant <value = int64[2] {2, 3}> ()
            e = Mul (d, A)  a = Exp (e)  au = Unsqueeze (a, o)  du = Unsqueeze (d, l)  dx = Mul (du, x)  dxu = Unsqueeze (dx, l)
            bu = Unsqueeze (bb, m)  u = Mul (dxu, bu)  k = Mul (au, S)  S1 = Add (k, u)
            cu = Unsqueeze (c, m)  p = Mul (S1, cu)  y = ReduceSum <keepdims = 0> (p, l) }> (S0, xs, ds, bs, cs) }"""
    rng = np.random.default_rng(0)
    shapes = {"xs": (5, 2, 2, 3), "ds": (5, 2, 2), "bs": (5, 2, 4), "cs": (5, 2, 4), "S0": (2, 2, 3, 4), "A": (2,)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    assert attended(text, feeds | {"ds": np.abs(feeds["ds"]), "A": -np.abs(feeds["A"])})[0] == "gated"


def test_a_matrix_of_which_only_the_last_value_is_read() -> None:
    text = written(PLAIN, DECAYS["by key"], "y = Identity (v)")
    attended(text, data())


def test_a_sum_beside_the_matrix_stays_for_its_own_rule() -> None:
    text = """g (float[6,3] ks, float[6,4] vs, float[6,3] qs, float[3,4] S0, float[3] z0) => (float[6,4] ys) {
        end, z, ys = Scan <num_scan_inputs = 3, body = b (float[3,4] S, float[3] z, float[3] k, float[3] q, float[4] v)
            => (float[3,4] S1, float[3] z1, float[4] y) { last = Constant <value = int64[1] {1}> ()  kc = Unsqueeze (k, last)
            kv = Mul (kc, v)  S1 = Add (S, kv)  z1 = Add (z, k)  n = MatMul (q, S1)  m = MatMul (q, z1)  y = Div (n, m) }>
            (S0, z0, ks, qs, vs) }"""
    feeds = {name: np.abs(array[:, 0]) for name, array in data().items() if name in ("ks", "vs", "qs")}
    feeds |= {"S0": data()["S0"][0], "z0": np.ones(3, np.float32)}
    before = model_from_text(text, 18)
    after, report = apply(before, RULES, feeds=feeds)
    assert [len(node.output) for node in after.graph.node if node.op_type == "Scan"] == [2]
    assert "linear-attention" in patches(report)


NEAR = {
    "a decay that may be negative": ({"decay": "au = Unsqueeze (g, last)  d = Mul (S, au)"}, ["ATTENTION-DECAY"]),
    "a state that is returned": ({"read": "v0 = ReduceMax <axes = [1], keepdims = 0> (S1)  y = Add (v0, v)"}, []),
    "the state as it was": ({"read": READ.replace("S1", "S")}, []),
    "what was taken away before it decayed": (
        {"update": UPDATES["the delta rule"][0].replace("(d)", "(S)"), "decay": DECAYS["by key"]},
        [],
    ),
    "another key that is taken away": ({"update": UPDATES["the delta rule, in full"][0].replace("(d, k)", "(d, q)")}, []),
    "twice what was written": (
        {"update": PLAIN.replace("Add (d, kv)", "Add (d2, kv)").replace("kv =", "d2 = Add (d, kc)  kv =")},
        [],
    ),
    "a sum of squares": ({"read": "r = Mul (S1, S1)  y = ReduceSum <keepdims = 0> (r, first)"}, []),
    "keys that depend on the state": ({"update": PLAIN.replace("kc = Unsqueeze (k, last)", "kc = ReduceMax <axes = [2]> (S)")}, []),
}


OTHERS = {
    "a decay by value": {"decay": "a = Exp (v)  au = Unsqueeze (a, first)  d = Mul (S, au)"},
    "a decay of the whole matrix": {
        "decay": "kx = Unsqueeze (g, last)  vx = Unsqueeze (v, first)  ax = Mul (kx, vx)  a = Exp (ax)  d = Mul (S, a)"
    },
    "no query": {"read": "y = ReduceSum <keepdims = 0> (S1, first)"},
}


@pytest.mark.parametrize("case", OTHERS)
def test_matrices_of_one_value_and_queries_of_ones(case: str) -> None:
    attended(
        written(OTHERS[case].get("update", PLAIN), OTHERS[case].get("decay", DECAYS["none"]), OTHERS[case].get("read", READ)),
        data(),
    )


@pytest.mark.parametrize("case", NEAR)
def test_unsupported_matrices_stay_in_the_loop(case: str) -> None:
    parts, codes = NEAR[case]
    text = written(parts.get("update", PLAIN), parts.get("decay", DECAYS["none"]), parts.get("read", READ))
    _, report = (
        apply(model_from_text(text, 17), [fold_constants, linear_attention])
        if "ReduceMax" in text
        else apply(text, [linear_attention])
    )
    assert "linear-attention" not in patches(report)
    assert reasons(report) == codes


def test_refusals_for_target_type_and_memory() -> None:
    text = written(PLAIN, DECAYS["none"], READ)
    for options, given, code in (
        (Options(domains=frozenset()), text, "ATTENTION-TARGET"),
        (None, text.replace("float", "double"), "ATTENTION-TYPE"),
        (Options(memory_budget=100), text, "MEMORY-BUDGET"),
        (None, text.replace("[6,2,4]", "[6,2,V]").replace("[2,4]", "[2,V]").replace("[2,3,4]", "[2,3,V]"), "ATTENTION-SHAPE"),
    ):
        _, report = apply(given, [linear_attention], options=options)
        assert reasons(report) == [code]


def scanned_matrix(rows: int, keys: int, steps: int | str) -> str:
    """Return a selective state space model: a matrix of ``rows`` by ``keys`` elements, each with its own decay."""
    return f"""g (float[{steps},{rows}] xs, float[{steps},{rows}] ds, float[{steps},{keys}] bs, float[{steps},{keys}] cs,
            float[{rows},{keys}] A, float[{rows},{keys}] S0) => (float[{rows},{keys}] end, float[{steps},{rows}] ys) {{
        end, ys = Scan <num_scan_inputs = 4, body = b (float[{rows},{keys}] S, float[{rows}] x, float[{rows}] d, float[{keys}] bb,
            float[{keys}] c) => (float[{rows},{keys}] S1, float[{rows}] y) {{ {AXES}
            zero = Constant <value = int64[1] {{0}}> ()  du = Unsqueeze (d, last)  e = Mul (du, A)  a = Exp (e)  dx = Mul (d, x)  dxu = Unsqueeze (dx, last)
            bu = Unsqueeze (bb, zero)  u = Mul (dxu, bu)  k = Mul (a, S)  S1 = Add (k, u)
            cu = Unsqueeze (c, last)  p = MatMul (S1, cu)  y = Squeeze (p, last) }}> (S0, xs, ds, bs, cs) }}"""


@pytest.mark.parametrize("steps", [64, 1024, "T"])
@pytest.mark.parametrize(
    ("rows", "keys", "is_faster"), [(16, 16, True), (64, 4, True), (64, 16, False), (16, 64, False), (128, 8, False)]
)
def test_many_rows_of_one_value_stay_if_the_loop_is_faster(rows: int, keys: int, is_faster: bool, steps: int | str) -> None:
    _, report = apply(scanned_matrix(rows, keys, steps), [linear_attention])
    assert reasons(report) == ([] if is_faster else ["ATTENTION-COST"])


def test_the_same_rows_leave_if_the_model_had_unrolled_them() -> None:
    before = model_from_text(scanned_matrix(64, 16, 24), 18)
    written_out, _ = apply(before, [unroll], options=Options(unroll=UnrollLimits(24, 10_000)))
    assert not any(node.op_type == "Scan" for node in written_out.graph.node)
    after, report = apply(written_out, [roll_up, fold_constants, linear_attention, loop_fission])
    assert "linear-attention" in patches(report)
    assert "LinearAttention" in {node.op_type for node in after.graph.node}
