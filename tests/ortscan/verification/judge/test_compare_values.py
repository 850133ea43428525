"""Single outputs are compared by their rounding errors, their scales and their values in earlier cases."""

import ml_dtypes
import numpy as np
import pytest

from ortscan.verification.judge.compare_values import as_table, compare_values, is_table
from ortscan.verification.judge.tolerances import History, Tolerances

USUAL = Tolerances()


def floats(*numbers, dtype=np.float32):
    return np.array(numbers, dtype)


def differs(before, after, tolerances=USUAL):
    return compare_values(before, after, tolerances).reason is not None


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_a_few_roundings_are_tolerated_and_a_large_error_is_not(dtype):
    step = float(ml_dtypes.finfo(dtype).eps)
    assert not differs(floats(1, 2, dtype=dtype), floats(1 + step, 2, dtype=dtype))
    assert differs(floats(1, 2, dtype=dtype), floats(2, 1, dtype=dtype))


def test_errors_are_measured_against_the_largest_value_of_the_output():
    assert not differs(floats(1000, 0), floats(1000, 0.05))
    assert differs(floats(1, 0), floats(1, 0.05))


def test_tiny_outputs_are_not_waved_through():
    assert differs(floats(1e-4, 2e-4), floats(2e-4, 1e-4))
    assert not differs(floats(1e-9, 0), floats(0, 0))


def test_an_output_that_was_large_before_may_be_rounded_when_small():
    was_one = History()
    was_one.learn(floats(1))
    assert compare_values(floats(1e-6), floats(6e-6), USUAL).reason is not None
    assert compare_values(floats(1e-6), floats(6e-6), USUAL, was_one).reason is None


def test_an_element_that_was_small_in_all_cases_is_measured_by_itself():
    history = History()
    small, wrong = floats(1000, 2, 1e-3), floats(1000, 2, 2e-3)
    for _ in range(3):
        assert compare_values(small, wrong, USUAL, history).reason is None
    assert compare_values(small, wrong, USUAL, history).index == (2,)
    assert compare_values(small, floats(1000.01, 2.0001, 1e-3), USUAL, history).reason is None


def test_an_element_that_was_large_once_or_had_other_neighbours_is_not():
    once, others = History(), History()
    for case in (floats(1000, 2, 1e-3), floats(1, 2, 500), floats(5, 1, 2), floats(1, 1, 1)):
        once.learn(np.abs(case))
    for size in (3, 3, 4, 3, 3, 3):
        others.learn(np.ones(size) * 1000)
    for history in (once, others):
        assert compare_values(floats(1000, 2, 1e-3), floats(1000, 2, 2e-3), USUAL, history).reason is None


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (-np.inf, np.inf, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, 1e30, False),
        (-0.0, 0.0, True),
    ],
)
def test_special_values(before, after, same):
    assert differs(floats(1, before), floats(1, after)) is not same


def test_an_infinity_does_not_widen_the_tolerance():
    assert differs(floats(np.inf, 1), floats(np.inf, 2))


def test_whole_numbers_must_be_the_same_however_large_the_tolerance():
    before, after = np.array([[1, 2], [3, 4]]), np.array([[1, 2], [5, 9]])
    gap = compare_values(before, after, Tolerances(1.0, 100.0))
    assert (gap.index, gap.before, gap.after, gap.absolute) == ((1, 0), 3, 5, 5)
    assert differs(np.array([2**63], np.uint64), np.array([2**63 + 1], np.uint64))


def test_the_worst_element_is_pointed_at():
    gap = compare_values(floats(1, 2, 3), floats(1.1, 4, 3), USUAL)
    assert (gap.index, float(gap.before), float(gap.after)) == ((1,), 2, 4)


def test_shapes_and_types_must_be_the_same():
    assert "shape (2,) before and (1, 2) after" in compare_values(floats(1, 2), floats(1, 2)[None], USUAL).reason
    assert "float32 before and float64 after" in compare_values(floats(1), floats(1, dtype=np.float64), USUAL).reason
    assert differs(floats(), floats()[None])


def test_strings_of_any_numpy_kind_are_compared_as_text():
    assert not differs(np.array(["a", "é"]), np.array(["a", "é"], object))
    assert compare_values(np.array(["a", "b"]), np.array(["a", "c"], object), USUAL).index == (1,)


def test_sequences_and_maps_are_compared_item_by_item():
    gap = compare_values([floats(1), floats(2, 3)], [floats(1), floats(2, 4)], USUAL)
    assert gap.index == (1, 1)
    assert compare_values([{"a": 1.0, "b": 2.0}], [{"a": 1.0, "b": 2.5}], USUAL).index[0] == 0
    assert differs([floats(1)], floats(1))
    assert differs([], [floats(1)])
    assert not differs([], [])


def test_maps_of_floats_by_the_same_keys_are_rows_of_a_table():
    rows = [{1: 1.0, 2: 2.0}, {1: 3.0, 2: 4.0}]
    assert is_table(rows, rows)
    assert as_table(rows).tolist() == [[1, 2], [3, 4]]
    for other in ([], rows[:1], [rows[0], {1: 3.0}], [rows[0], {2: 4.0, 1: 3.0}], [rows[0], {1: 3.0, 2: "a"}], [1.0, 2.0], rows[0]):
        assert not is_table(rows, other)
    assert compare_values(rows, [rows[0], {1: 3.0, 2: 5.0}], USUAL).index == (1, 1)


def test_an_empty_optional_equals_only_itself():
    assert not differs(None, None)
    assert differs(None, floats(1))
