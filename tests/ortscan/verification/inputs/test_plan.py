"""Which sizes, trip counts and sequence lengths are tried, alone and together, and which are not."""

from itertools import combinations

import numpy as np
import pytest

from ortscan.running.budget import Budget
from ortscan.running.specs import input_specs
from ortscan.verification import verify
from ortscan.verification.inputs.axis import Axis, dimension_values, trip_values
from ortscan.verification.inputs.plan import plan_cases, plan_empty_cases, untried_rows
from ortscan.verification.inputs.prepare import prepare
from tests.support.text import model_from_text


def axis(position, *parts, level="full"):
    return Axis(parts or ((f"d{position}",),), dimension_values(position, level))


def trips(name, level="full"):
    return Axis(((name,),), trip_values(level), is_trip_count=True)


def rows(points):
    return [tuple({**point.sizes, **point.trips}.values()) for point in points if point.seed < 100 or point.seed >= 600]


@pytest.mark.parametrize("level", ["full", "quick"])
@pytest.mark.parametrize("count", range(1, 12))
def test_each_dimension_and_trip_count_takes_each_of_its_values(count, level):
    axes = [*(axis(position, level=level) for position in range(count)), trips("n", level), trips("m", level)]
    found = rows(plan_cases(axes, level=level))
    assert len(found) <= (85 if level == "full" else 6)
    for position, one in enumerate(axes):
        assert {row[position] for row in found} >= set(one.values)
    assert (1,) * len(axes) in found
    if count < 8:
        assert len(set(found[0][:count])) == count


def test_the_sizes_are_those_that_the_manual_promises():
    for position in range(9):
        sizes = sorted(dimension_values(position))
        assert {*range(1, 9), 16} <= set(sizes)
        assert [sum(low < size < high for size in sizes) for low, high in ((8, 16), (16, 128), (128, 1000))] == [1, 1, 1]
        assert axis(position).larger_size > 256
        assert {1, 2, 3} < set(dimension_values(position, "quick"))
    assert {-1, *range(9), 11, 17, 131} == set(trip_values("full"))


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_each_dimension_is_largest_least_and_nothing_beside_others(count):
    axes = [axis(position) for position in range(count)]
    usual = [one.values[0] for one in axes]
    results = {*rows(plan_cases(axes)), *rows(plan_empty_cases(axes))}
    for index, one in enumerate(axes):
        for size, others in ((max(one.values), usual), (1, usual), (one.larger_size, [1] * count), (0, usual), (0, [1] * count)):
            assert (*others[:index], size, *others[index + 1 :]) in results
        if count > 2:
            assert tuple(number * (at == index) for at, number in enumerate(usual)) in results
    assert (2,) * count in results
    assert (4,) * count in results
    assert (0,) * count in results


@pytest.mark.parametrize("count", range(3, 9))
def test_each_two_dimensions_are_equal_where_the_third_is_not(count):
    found = rows(plan_cases([axis(position) for position in range(count)]))
    for left, right in combinations(range(count), 2):
        assert any(row[left] == row[right] > 1 and row.count(row[left]) == 2 for row in found)


def test_two_dimensions_are_1_or_0_where_the_others_are_not():
    axes = [axis(position) for position in range(5)]
    results = [*rows(plan_cases(axes)), *rows(plan_empty_cases(axes))]
    for two in combinations(range(5), 2):
        for size in (0, 1):
            assert any(all((number == size) == (at in two) for at, number in enumerate(row)) for row in results)


def test_the_ninth_dimension_is_nothing_together_with_the_rest_and_that_is_said():
    axes = [axis(position) for position in range(10)]
    assert any(row[8:] == (0, 0) and 0 not in row[:8] for row in rows(plan_empty_cases(axes)))
    said = list(untried_rows(axes, "full"))
    assert said[0] == "other sizes of 'd0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7' and 2 more"
    assert said[1:] == [
        "'d8', 'd9' as the only one that is largest or 1, or equal to only one other",
        "0 for only one of 'd8', 'd9'",
        "only two that are 1 or 0, if one of them is 'd5', 'd6', 'd7', 'd8', 'd9'",
    ]
    assert not list(untried_rows(axes, "quick"))


def test_no_size_is_said_to_be_untried_where_there_is_no_other():
    assert not list(untried_rows([Axis((("a",),), (5,)), Axis((("b",),), (5, 1))], "full"))


def test_trip_counts_are_none_together():
    found = rows(plan_cases([axis(0), trips("n"), trips("m")]))
    assert {(3, 0, 0), (3, -1, -1)} <= set(found)


def test_dimensions_that_may_broadcast_are_once_one_each():
    points = plan_cases([axis(0, ("a", "b"), ("c",))])
    assert all(point.sizes["a"] == point.sizes["b"] for point in points)
    assert {"a": 1, "b": 1, "c": 3} in [point.sizes for point in points]
    assert {"a": 3, "b": 3, "c": 1} in [point.sizes for point in points]


def test_few_dimensions_are_zero_in_a_quick_comparison():
    axes = [axis(0), axis(1), Axis((("n",),), (3, 0), is_trip_count=True)]
    points = plan_empty_cases(axes, "quick")
    assert [point.sizes for point in points] == [{"d0": 0, "d1": 2}, {"d0": 3, "d1": 0}]
    assert {point.trips["n"] for point in points} == {3}
    assert [point.sizes for point in plan_empty_cases(axes)[2:]] == [{"d0": 0, "d1": 1}, {"d0": 1, "d1": 0}, {"d0": 0, "d1": 0}]


def lengths(text, opset=18):
    """Return the sequence lengths that are fed, by the kind of values."""
    proto = model_from_text(text, opset)
    prepared = prepare((proto, proto), [set(), set()], input_specs(proto.graph), {}, {}, 0, "full", Budget(60, 1 << 30))
    feeds = [
        (planned.point, prepared.inputs.feed(planned.point, planned.attempts[0])) for planned in prepared.inputs.planned_cases(None)
    ]
    return {point.kind: (point.sizes, feed["l"]) for point, feed in feeds}


def test_lengths_of_rows_are_none_and_all_and_less():
    found = lengths("""g (float[T, B, 3] x, int32[B] l, float[1, 6, 3] w, float[1, 6, 2] r) => (float[T, 1, B, 2] y) {
      y = GRU <hidden_size = 2> (x, w, r, , l) }""")
    steps = found["full rows"][0]["T"]
    assert not found["no rows but empty ones"][1].any()
    for kind, place in (("an empty first row", 0), ("an empty last row", -1)):
        assert found[kind][1][place] == 0
        assert np.count_nonzero(found[kind][1] == 0) == 1
    assert (found["full rows"][1] == steps).all()
    assert ((found["short rows"][1] > 0) & (found["short rows"][1] < steps)).all()


def test_lengths_that_must_not_be_0_are_not():
    found = lengths(
        """g (int64[B] l, float[B, 2] h, float[B, T, 2] x) => (float[B, 2] y) {
          y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] n) { n = Add(s, e) }> (l, h, x) }""",
        8,
    )
    assert all((fed > 0).all() for _, fed in found.values())
    assert {"full rows", "short rows"} <= set(found)
    assert "no rows but empty ones" not in found


BRANCH = """g (float[T, K] x, float[L, M] w) => (float[U, V] y) {{
  a = Constant <value_ints = [0]> () s = Shape <start = 1, end = 2> (x) t = Shape <start = 0, end = 1> (w) d = Squeeze(s, a) e = Squeeze(t, a)
  {} y = If (c) <then_branch = t () => (float[P, P2] o) {{ o = MatMul(x, w) }}, else_branch = f () => (float[Q, Q2] o2) {{ o2 = {}(x) }}> }}"""
EQUAL = "c = Equal(d, e)"


@pytest.mark.parametrize("level", ["full", "quick"])
def test_sizes_that_one_branch_alone_joins_are_tried_apart(level):
    one, other = (model_from_text(BRANCH.format(EQUAL, kind), 18) for kind in ("Identity", "Neg"))
    outcome = verify(one, one, level=level, time_limit=60)
    assert outcome.ok
    apart = [case for case in outcome.cases if case.dims["K"] != case.dims["L"]]
    assert len(apart) >= (8 if level == "full" else 1)
    assert verify(one, other, level=level, time_limit=60).outcome == "different"


def test_sizes_that_the_original_does_not_take_apart_are_not_tried_for_long():
    always = model_from_text(BRANCH.format("z = Constant <value_int = 0> () c = GreaterOrEqual(d, z)", "Neg"), 18)
    outcome = verify(always, always)
    assert outcome.ok
    assert {case.status for case in outcome.cases if case.dims["K"] != case.dims["L"]} == {"skipped"}
    assert sum(case.status == "skipped" for case in outcome.cases) == 4


def test_sizes_that_the_model_itself_joins_are_never_apart():
    proto = model_from_text("g (float[T, K] x, float[L, M] w) => (float[T, M] y) { y = MatMul(x, w) }", 18)
    outcome = verify(proto, proto)
    assert all(case.dims["K"] == case.dims["L"] for case in outcome.cases)


def test_what_large_inputs_leave_out_is_said():
    proto = model_from_text("g (float[16, 65536] x) => (float[16, 65536] y) { y = Neg(x) }", 18)
    assert verify(proto, proto, memory_limit=10 << 20).limits_hit == ("the memory limit of 10 MiB",)
    assert not verify(proto, proto).limits_hit
