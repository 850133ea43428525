"""What leaves at the end: work on states that no state needs, and what is not worth moving."""

import onnx
import pytest

from tests.rewrites.apply import read, reasons
from tests.rewrites.fission.harness import body_ops, data, loops_of, scan, split


def outputs(model: onnx.ModelProto) -> int:
    (loop,) = loops_of(model)
    return len(loop.output)


@pytest.mark.parametrize(("direction", "count"), [(0, 2), (1, 3)])
def test_a_result_that_the_loop_gives_anyway_is_read_again(direction, count):
    text = scan(
        "b = Add(x, h)  h_next = Tanh(b)  y = Identity(h_next)  z = Softmax(h_next)",
        "y z",
        states="h",
        attributes=f", scan_output_directions: ints = [{direction}, 0]",
    )
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Tanh"]
    assert outputs(after) == count


def test_work_on_the_recurrence_and_on_inputs_leaves():
    text = scan("a = Exp(x)  b = Add(a, h)  h_next = Tanh(b)  c = Mul(h_next, a)  y = Cos(c)  z = Sin(a)", "y z", states="h")
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Tanh"]
    assert outputs(after) == 2


def test_a_states_old_value_is_stacked():
    after, _ = split(scan("b = Add(x, h)  h_next = Tanh(b)  y = Exp(h)", "y", states="h"))
    assert body_ops(after) == ["Add", "Tanh"]


@pytest.mark.parametrize("attributes", ["", ", scan_input_directions: ints = [1]", ", scan_output_directions: ints = [1]"])
def test_a_copy_of_a_states_old_value_stays(attributes):
    after, report = split(scan("b = Add(x, h)  h_next = Tanh(b)  y = Identity(h)", "y", states="h", attributes=attributes))
    assert body_ops(after) == ["Add", "Tanh"]
    assert reasons(report) == ["RECURRENCE"]


def test_many_operators_that_cannot_leave_do_not_hold_back_those_that_can():
    stuck = "  ".join(f"n{i} = RandomUniformLike(h_next)  m{i} = Sub(n{i}, n{i})  y{i} = Add(m{i}, h_next)" for i in range(12))
    text = scan(
        f"b = Add(x, h)  h_next = Tanh(b)  {stuck}  z = Exp(h_next)", " ".join(f"y{i}" for i in range(12)) + " z", states="h"
    )
    after, _ = split(text)
    assert "Exp" not in body_ops(after)


def test_many_refusals_of_the_table_do_not_hold_back_the_rest():
    stuck = "  ".join(
        f"n{i} = NonZero(h_next)  s{i} = Shape(n{i})  f{i} = Cast <to: int = 1> (s{i})  "
        f"g{i} = ReduceMax <keepdims: int = 0> (f{i})  y{i} = Add(g{i}, h_next)"
        for i in range(12)
    )
    text = scan(
        f"b = Add(x, h)  h_next = Tanh(b)  {stuck}  z = Exp(h_next)", " ".join(f"y{i}" for i in range(12)) + " z", states="h"
    )
    after, report = split(text)
    assert "Exp" not in body_ops(after)
    assert reasons(report) == ["DATA-DEPENDENT-SHAPE"]


def test_work_that_sums_up_what_it_reads_stays():
    text = """main (float[9, 9] s0, float[5, 9] xs) => (float[9, 9] last, float[5, 9] ys) {
        last, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[9, 9] s, float[9] x)
            => (float[9, 9] s_next, float[9] y) {
            a = Exp(x)  s_next = Add(s, a)  p = Mul(s_next, s)  one = Constant <value_ints: ints = [1]> ()
            q = ReduceSum <keepdims: int = 0> (p, one)  y = Cos(q)
        }> (s0, xs)
    }"""
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Mul", "ReduceSum"]


def test_work_on_what_the_loop_gives_anyway_leaves_however_it_sums_up():
    text = """main (float[9, 9] s0, float[5, 9] xs) => (float[9, 9] last, float[5, 9, 9] all, float[5] ys) {
        last, all, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[9, 9] s, float[9] x)
            => (float[9, 9] s_next, float[9, 9] c, float y) {
            a = Exp(x)  s_next = Add(s, a)  c = Identity(s_next)  y = ReduceSum <keepdims: int = 0> (s_next)
        }> (s0, xs)
    }"""
    after, _ = split(text)
    assert body_ops(after) == ["Add"]


def test_sizes_of_the_body_never_name_sizes_outside():
    text = """main (float[M] h0, float[T, N] xs) => (float[M] h, float[T, M] ys) {
        h, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[N] h_in, float[N] x) => (float[N] h_out, float[N] y) {
            b = Add(x, h_in)  h_out = Tanh(b)  c = Sin(h_out)  y = Exp(c)
        }> (h0, xs)
    }"""
    after, _ = split(text, feeds=data(read(text)))
    (loop,) = loops_of(after)
    stacks = {info.name: info for info in after.graph.value_info if info.name in loop.output}
    assert all(not dim.dim_param or dim.dim_param == "T" for info in stacks.values() for dim in info.type.tensor_type.shape.dim)


@pytest.mark.parametrize(("width", "stays"), [(3, False), (30000, True)])
def test_two_large_values_are_not_stacked_instead_of_what_is_made_of_them(width, stays):
    text = scan("b = Add(x, h)  h_next = Tanh(b)  g_next = Mul(g, h_next)  c = Sub(g_next, h_next)  y = Exp(c)", "y", states="g h")
    after, _ = split(text.replace("float[5, 3]", f"float[5, {width}]").replace("float[3]", f"float[{width}]"))
    assert ("Sub" in body_ops(after)) == stays
