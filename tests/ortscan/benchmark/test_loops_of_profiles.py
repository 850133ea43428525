import pytest

from ortscan.benchmark.timed_session import loop_times


def node(name, op_type, start, dur, index="0"):
    return {
        "cat": "Node",
        "name": f"{name}_kernel_time",
        "ts": start,
        "dur": dur,
        "args": {"op_name": op_type, "node_index": index},
    }


def run(start, dur, *nodes):
    return [{"cat": "Session", "name": "model_run", "ts": start, "dur": dur}, *nodes]


def twice(*nodes, takes=100):
    """A first run that does not count, and another."""
    return run(0, 1) + run(1000, takes, *nodes)


def test_what_the_profiler_takes_is_taken_from_where_it_noted_most():
    steps = [node("step", "Add", 1011 + 9 * n, 9) for n in range(9)]
    (loop,) = loop_times(twice(node("other", "MatMul", 1000, 10), node("cell", "Scan", 1010, 90), *steps), 45e-6)
    assert (loop.name, loop.op_type) == ("cell", "Scan")
    assert loop.seconds == pytest.approx(90e-6 - 9 * 5e-6)


def test_what_a_loop_holds_is_its_own_and_an_if_gives_way_to_the_loop_it_holds():
    nodes = [
        node("outer", "Loop", 1000, 20),
        node("inner", "Scan", 1001, 5),
        node("if", "If", 1030, 20),
        node("", "LSTM", 1031, 10),
        node("plain", "If", 1060, 5),
    ]
    found = {(loop.name, loop.op_type) for loop in loop_times(twice(*nodes), 1.0)}
    assert found == {("outer", "Loop"), ("LSTM 1", "LSTM"), ("plain", "If")}


def test_a_loop_that_runs_several_times_counts_as_often():
    nodes = [node("cell", "Scan", 1000, 10), node("cell", "Scan", 1020, 10)]
    (loop,) = loop_times(twice(*nodes), 100e-6)
    assert loop.seconds == pytest.approx(20e-6)
    assert loop.share == pytest.approx(0.2)


def test_loops_without_names_are_told_apart():
    nodes = [node("", "Scan", 1000, 10, "0"), node("", "Scan", 1020, 30, "1")]
    assert [(loop.name, round(loop.seconds * 1e6)) for loop in loop_times(twice(*nodes), 1.0)] == [("Scan 2", 30), ("Scan 1", 10)]


def test_a_profile_without_loops_has_none():
    assert loop_times(twice(node("a", "Add", 1000, 10)), 1.0) == []
