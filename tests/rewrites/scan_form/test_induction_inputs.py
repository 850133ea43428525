import pytest

from rewrites.registry import RULES
from rewrites.scan_form import induction_inputs
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays


def counting(after: str, *, kind: str = "int64", start: str = "0", use: str = "r = Gather (table, k)", **changes) -> str:
    dtype = kind.partition("[")[0]
    return scan(
        f"k1 = {after} {use} a = Add (h, r) h1 = Add (a, x) y = Tanh (h)",
        inputs=f"float[2] h, {kind} k, float[2] x",
        outputs=f"float[2] h1, {kind} k1, float[2] y",
        operands="s, k0, xs",
        outer="z, n, ys",
        **{
            "given": "float[2] s, float[3,2] xs, float[9,2] table",
            "results": f"float[2] z, {kind} n, float[3,2] ys",
            "weights": f"{kind} k0 = {{{start}}}, {dtype} one = {{1}}, {dtype} two = {{2}}",
            **changes,
        },
    )


def test_a_counter_is_scanned() -> None:
    becomes(
        induction_inputs,
        counting("Add (k, one)", results="float[2] z, float[3,2] ys"),
        """g (float[2] s, float[3,2] xs, float[9,2] table) => (float[2] z, float[3,2] ys) <int64[3] n = {0, 1, 2}> {
            z, ys = Scan <num_scan_inputs = 2, body = b (h, x, k) => (h1, y) {
                r = Gather (table, k)  a = Add (h, r)  h1 = Add (a, x)  y = Tanh (h)
            }> (s, xs, n) }""",
    )


@pytest.mark.parametrize("kind", ["int64", "int32", "int64[1]", "int32[1]"])
@pytest.mark.parametrize(("after", "start"), [("Add (k, one)", "0"), ("Add (two, k)", "1"), ("Sub (k, one)", "7")])
def test_every_counter_keeps_its_numbers_and_its_last_value(kind: str, after: str, start: str) -> None:
    use = "g = Gather (table, k) v = Cast <to = 1> (k) q = Add (h, v) " + (
        "r = Add (g, q)" if "[" not in kind else "r = Add (q, q)"
    )
    becomes(induction_inputs, counting(after, kind=kind, start=start, use=use))
    fed = counting(after, kind=kind, use=use, given=f"float[2] s, float[3,2] xs, float[9,2] table, {kind} k0", start=start)
    fed = fed.replace(f"{kind} k0 = {{{start}}}, ", "")
    becomes(induction_inputs, fed, feeds=data(read(fed)))


def test_a_counter_of_several_axes_keeps_them() -> None:
    text = counting("Add (k, one)", kind="int64[1,1,1]", use="v = Cast <to = 1> (k) r = ReduceMax <keepdims = 0> (v)")
    becomes(induction_inputs, text)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_many_numbers_as_there_are_steps_are_scanned(size: int) -> None:
    text = counting(
        "Add (k, two)", given="float[2] s, float[T,2] xs, float[9,2] table", results="float[2] z, int64 n, float[T,2] ys"
    )
    becomes(induction_inputs, text, T=size)


def test_what_the_counter_alone_decides_leaves_the_loop() -> None:
    text = counting("Add (k, one)")
    after, _ = apply(text, [rule for rule in RULES if rule.phase != "native"], feeds=data(read(text)))
    inside = [node.op_type for node in next(n for n in after.graph.node if n.op_type == "Scan").attribute[0].g.node]
    assert "Gather" not in inside


STAYING = {
    "by a scan input": counting("Add (k, w)", use="w = Cast <to = 7> (c) c = ReduceMax <keepdims = 0> (x)").replace("k1 = Add (k, w) w = Cast <to = 7> (c) c = ReduceMax <keepdims = 0> (x)", "c = ReduceMax <keepdims = 0> (x) w = Cast <to = 7> (c) k1 = Add (k, w) r = Identity (x)"),
    "never": counting("Identity (k)"),
    "twice": counting("Add (k, k)"),
    "in floats": counting("Cast <to = 7> (e)").replace("k1 = ", "d = Cast <to = 1> (k) e = Add (d, d) k1 = "),
}  # fmt: skip


@pytest.mark.parametrize("case", STAYING)
def test_what_does_not_count_evenly_stays(case: str) -> None:
    stays(induction_inputs, STAYING[case])


def test_loops_and_scans_of_rows_are_left_alone() -> None:
    stays(induction_inputs, loop("h1 = Add (h, h) y = Tanh (h)"))
