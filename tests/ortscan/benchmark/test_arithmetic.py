"""The arithmetic of benchmarks, on invented seconds and profiles: nothing is measured."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ortscan.benchmark.result import Bench, BenchedModel, SizeResult, Timing
from ortscan.benchmark.rounds import Clock, clock_for, time_in_turns, timed_in_rounds
from ortscan.benchmark.timed_session import loop_times
from ortscan.report.ratio import duration, gain, noise, ratio_of


class Machine:
    """A clock that models advance. ``speed``: the seconds that a second of work takes on this machine."""

    def __init__(self):
        self.seconds, self.speed, self.ran = 0.0, 1.0, []

    def clock(self):
        return Clock(lambda: self.seconds, lambda: self.seconds)

    def model(self, name, takes, loads=0.0):
        def run(feed=None):
            self.ran.append(name)
            self.seconds += takes * self.speed

        def load():
            self.seconds += loads
            return SimpleNamespace(run=run, load_seconds=loads)

        return load


@pytest.mark.parametrize(
    ("rounds", "low", "high"),
    [([2.0] * 9, 2, 2), ([1, 2, 3, 4, 5, 6, 7, 8, 900], 2, 8), ([1, 2, 3, 4, 5, 600], 1, 600), ([3], 3, 3)],
)
def test_interval_drops_as_many_rounds_as_possible(rounds, low, high):
    ratio = ratio_of(rounds)
    assert (ratio.low, ratio.high, ratio.rounds) == (low, high, len(rounds))


def test_confidence_equals_the_binomial_probability():
    assert ratio_of([1.0] * 6).confidence == pytest.approx(1 - 2 / 2**6)
    assert ratio_of([1.0] * 9).confidence == pytest.approx(1 - 2 * (1 + 9) / 2**9)
    assert ratio_of([1.0] * 5).confidence < 0.95


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([3.0, 3.1, 3.2] * 3, "3.1 x faster"),
        ([0.5, 0.52, 0.48] * 3, "2.0 x slower"),
        ([0.9, 1.0, 1.2] * 3, "no measurable difference"),
        ([1.01] * 9, "no measurable difference"),
        ([3.15, 3.16], "3.2 x faster"),
        ([0.3, 0.4], "2.9 x slower"),
        ([1.1] * 5, "no measurable difference"),
        ([3.0], "no measurable difference"),
        ([1.1, 1.1, 1.11] * 3, "1.10 x faster"),
    ],
)
def test_difference_needs_rounds_that_agree(rounds, said):
    assert gain(ratio_of(rounds)) == said


def test_interval_of_a_slower_model_is_inverted():
    assert noise(ratio_of([0.5, 0.5, 0.4] * 3)) == "2.00 to 2.50"
    assert noise(ratio_of([1.1] * 5)).endswith("in 5 rounds, too few to tell")
    assert noise(ratio_of([3.15, 3.16])) == "3.15 to 3.16"


@pytest.mark.parametrize(
    ("seconds", "said"), [(2.5e-7, "250 ns"), (1.5e-6, "1.50 µs"), (0.0123, "12.3 ms"), (0.5, "500 ms"), (123.0, "123 s")]
)
def test_durations_have_units(seconds, said):
    assert duration(seconds) == said


def test_turns_alternate_and_are_equally_many():
    machine = Machine()
    loads = [machine.model("a", 0.004), machine.model("b", 0.003)]
    taken = time_in_turns([load().run for load in loads], 0.02, machine.clock())
    assert [len(turns) for turns in taken] == [3, 3]
    assert "".join(machine.ran) == "abbaab"
    assert taken[0] == [[pytest.approx(0.004)]] * 3


def test_short_model_runs_several_times_a_turn_without_the_first():
    machine = Machine()
    ((turn,),) = time_in_turns([machine.model("a", 0.0005)().run], 0.001, machine.clock())
    assert len(machine.ran) == 4
    assert turn == [pytest.approx(0.0005)] * 3


def test_each_round_has_new_sessions_and_another_model_first():
    machine = Machine()
    made = []
    loads = [lambda name=name: made.append(name) or machine.model(name, 0.01)() for name in "ab"]
    timed_in_rounds(loads, [{}], 3, 0.1, machine.clock())
    assert made == ["a", "b", "b", "a", "a", "b"]


def test_a_machine_that_slows_down_changes_no_ratio():
    machine = Machine()
    loads = [machine.model("a", 0.03), machine.model("b", 0.01)]

    def slower(done, rounds):
        machine.speed *= 2

    first, second = timed_in_rounds(loads, [{}, {}], 6, 100.0, machine.clock(), slower)
    assert first.gains == [[1.0] * 6] * 2
    assert second.gains == [[pytest.approx(3.0)] * 6] * 2
    assert second.medians[0][5] == pytest.approx(32 * second.medians[0][0])


@pytest.mark.parametrize(("loads", "rounds"), [(50.0, 2), (0.6, 6), (0.0, 9)])
def test_rounds_end_in_time_but_six_may_take_longer(loads, rounds):
    machine = Machine()
    records = timed_in_rounds([machine.model("a", 0.1, loads)], [{}], 9, 2.5, machine.clock())
    assert records[0].loads == [loads] * rounds


def test_several_threads_use_the_wall_clock():
    assert clock_for(2).own is clock_for(2).now


def bench_of(*gains):
    results = [
        SizeResult({"T": size}, [Timing(1, 1, [1] * 9, [1.0] * 9), Timing(1 / g, 1 / g, [1 / g] * 9, [g] * 9)]) for size, g in gains
    ]
    return Bench([BenchedModel("a", 1, 1, [1]), BenchedModel("b", 1, 1, [1])], results, 1, 9, "1")


def test_slower_means_slower_at_a_size_and_faster_at_none():
    assert bench_of((16, 0.5), (64, 1.0)).is_slower
    assert not bench_of((16, 0.5), (64, 2.0)).is_slower
    assert not bench_of((16, 1.0)).is_slower


def test_the_ratio_is_the_quotient_of_the_times_beside_it():
    gains = [1.8] * 5 + [1.9] * 4
    bench = replace(bench_of((64, 1.0)), results=[SizeResult({"T": 64}, [Timing(4, 4, [4], [1.0] * 9), Timing(2, 2, [2], gains)])])
    (result,) = bench.results
    assert str(result.speedup()) == "2.0 x faster (2.00 s instead of 4.00 s, T=64)"
    assert (result.ratio().low, result.ratio().value, result.ratio().high) == (1.8, 2.0, 2.0)
    assert bench.card()[0] == "2.0 x faster"
    assert "2.00 s · 2.0 x faster (1.80 to 2.00)" in bench.section()


def test_advice_starts_from_the_time_of_the_first_line():
    first, tried = (bench_of((64, gain)).results[0].speedup() for gain in (2.0, 4.0))
    assert tried.after_same_start(first).times == "125 ms instead of 500 ms"
    assert tried.after_same_start(bench_of((16, 2.0)).results[0].speedup()) == tried


def test_summary_has_a_line_for_each_size():
    assert bench_of((16, 2.0), (64, 1.0)).summary().splitlines() == [
        "b is 2.0 x faster than a (T=16: 2.00 to 2.00)",
        "b is not measurably faster or slower than a (T=64: 1.00 to 1.00 times as fast)",
    ]


def test_the_dict_has_the_ratios():
    plain = bench_of((16, 2.0)).to_dict()
    assert plain["results"][0]["ratios"][0]["value"] == 2.0
    assert plain["summary"].startswith("b is 2.0 x faster")


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
    """Return the events of a first run, which does not count, and of a second run."""
    return run(0, 1) + run(1000, takes, *nodes)


def test_profiler_overhead_is_subtracted_by_records():
    steps = [node("step", "Add", 1011 + 9 * n, 9) for n in range(9)]
    (loop,) = loop_times(twice(node("other", "MatMul", 1000, 10), node("cell", "Scan", 1010, 90), *steps), 45e-6)
    assert (loop.name, loop.op_type) == ("cell", "Scan")
    assert loop.seconds == pytest.approx(90e-6 - 9 * 5e-6)


def test_loop_includes_its_body_and_an_if_with_a_loop_is_skipped():
    nodes = [
        node("outer", "Loop", 1000, 20),
        node("inner", "Scan", 1001, 5),
        node("if", "If", 1030, 20),
        node("", "LSTM", 1031, 10),
        node("plain", "If", 1060, 5),
    ]
    results = {(loop.name, loop.op_type) for loop in loop_times(twice(*nodes), 1.0)}
    assert results == {("outer", "Loop"), ("LSTM 1", "LSTM"), ("plain", "If")}


def test_runs_of_a_loop_in_a_run_are_added():
    nodes = [node("cell", "Scan", 1000, 10), node("cell", "Scan", 1020, 10)]
    (loop,) = loop_times(twice(*nodes), 100e-6)
    assert loop.seconds == pytest.approx(20e-6)
    assert loop.share == pytest.approx(0.2)


def test_unnamed_loops_are_numbered():
    nodes = [node("", "Scan", 1000, 10, "0"), node("", "Scan", 1020, 30, "1")]
    assert [(loop.name, round(loop.seconds * 1e6)) for loop in loop_times(twice(*nodes), 1.0)] == [("Scan 2", 30), ("Scan 1", 10)]


def test_times_of_loops_add_up_to_at_most_the_time_of_a_run():
    nodes = [node("outer", "Loop", 1000, 60), node("inner", "Scan", 1001, 50), node("other", "Scan", 1060, 60)]
    times = loop_times(twice(*nodes, takes=120), 50e-6)
    assert sum(loop.seconds for loop in times) == pytest.approx(50e-6)
    assert sum(loop.share for loop in times) == pytest.approx(1)
    assert [loop.name for loop in times] == ["other", "outer"]


def test_a_profile_without_loops_has_none():
    assert loop_times(twice(node("a", "Add", 1000, 10)), 1.0) == []
