import numpy as np
import pytest

from rewrites.cleanup import dead_code
from tests.rewrites.harness import becomes, loop, scan, stays


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_nodes_that_nobody_reads_go(opset: int) -> None:
    becomes(
        dead_code, scan("a = Exp (x) b = Neg (a) h1 = Add (h, x) y = Tanh (h)"), scan("h1 = Add (h, x) y = Tanh (h)"), opset=opset
    )


def test_a_dead_branch_goes_with_what_only_it_reads() -> None:
    branches = "then_branch = p () => (float[2] u) { u = Neg (a) }, else_branch = q () => (float[2] v) { v = Abs (x) }"
    given = "float[2] s, float[3,2] xs, bool t"
    becomes(
        dead_code,
        scan(f"a = Exp (x) d = If (t) <{branches}> h1 = Add (h, x) y = Tanh (h)", given=given),
        scan("h1 = Add (h, x) y = Tanh (h)", given=given),
    )
    stays(dead_code, scan(f"a = Exp (x) h1 = Add (h, x) y = If (t) <{branches}>", given=given))


def test_a_node_with_one_result_in_use_stays() -> None:
    stays(dead_code, scan("h1 = Add (h, x) v, k = TopK (x, two) y = Neg (v)", weights="int64[1] two = {2}"))


def test_what_a_loops_condition_needs_stays() -> None:
    text = loop("h1 = Add (h, h) y = Tanh (h)", go_on="two = Constant <value_int = 2> () c1 = Less (i, two)")
    stays(dead_code, text)
    becomes(dead_code, text.replace("y = Tanh", "d = Exp (h) y = Tanh"), text)


def test_what_may_fail_stays_where_a_condition_may_not_be_one_element() -> None:
    def stopping(limit: str, dead: str) -> str:
        given = f"{limit} limit, float s, float[2] t"
        sizes = {"inputs": "float h", "outputs": "float h1, float y", "results": "float z, float[N] ys"}
        return loop(f"{dead} h1 = Add (h, h) y = Neg (h)", go_on="c1 = Less (h, limit)", given=given, **sizes).replace(
            "bool c1,", "c1,"
        )

    few = {"limit": np.array(9, np.float32)}
    becomes(dead_code, stopping("float", "d = Add (t, h) e = Exp (d)"), stopping("float", ""), feeds=few)
    unsure = stopping("float[K]", "d = Add (t, h)")
    stays(dead_code, unsure)
    becomes(dead_code, stopping("float[K]", "d = Add (t, h) e = Exp (d)"), unsure, feeds={"limit": np.array([9], np.float32)})


def test_a_dead_loop_within_a_body_goes() -> None:
    inner = "d = Scan <num_scan_inputs = 1, body = e (float[2] g, float[2] k) => (float[2] g1) { g1 = Add (g, k) }> (h, xs)"
    becomes(dead_code, scan(f"{inner} h1 = Add (h, x) y = Tanh (h)"), scan("h1 = Add (h, x) y = Tanh (h)"))


def test_what_nobody_reads_in_a_branch_goes() -> None:
    branches = "then_branch = p () => (float[2] u) {{ {} u = Neg (x) }}, else_branch = q () => (float[2] v) {{ v = Abs (x) }}"
    given = {"given": "float[2] s, float[3,2] xs, bool t"}
    dead, live = (f"h1 = Add (h, x) y = If (t) <{branches.format(more)}>" for more in ("a = Exp (h) b = Neg (a)", ""))
    becomes(dead_code, scan(dead, **given), scan(live, **given), feeds={"t": np.array(True)})
