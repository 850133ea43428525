"""Unit tests of the parts of a call."""

import signal
import threading
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ortscan.custom_ops import failures
from ortscan.custom_ops.bodies import OPERATORS, compiled
from ortscan.custom_ops.calls import ScanPlan, run_scan
from ortscan.custom_ops.failures import cause_of, keep_exception, run_safely
from ortscan.custom_ops.signals import deferred
from ortscan.custom_ops.slots import arrays_of, dtype_of, slots_of, slots_of_failure
from rewrites.python_ops.names import ELEMENTWISE, GUARD
from rewrites.python_ops.wire import META, SLOTS, CallSpec, Port, is_packed, meta_offsets, parse_spec
from tests.support.python_calls import survives
from tests.support.text import parsed

KINDS = ("float", "double", "int64", "int32", "bool", "uint8", "uint64", "float16", "bfloat16", "int16")


@st.composite
def values(draw: Any) -> tuple[list[Port], list[np.ndarray]]:
    ports, found = [], []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(KINDS))
        shape = draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
        numbers = draw(st.lists(st.integers(0, 100), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        ports.append(Port(kind, len(shape)))
        found.append(np.array(numbers).reshape(shape).astype(dtype_of(kind)))
    return ports, found


def put_in(ports: list[Port], found: list[np.ndarray]) -> list[np.ndarray]:
    """Return the slots that the nodes before a call make from its inputs."""
    packed = [is_packed(ports, port.slot, results=False) for port in ports]
    shapes = [size for array, one in zip(found, packed, strict=True) if one for size in array.shape]
    slots = []
    for slot in SLOTS:
        here = [(a.astype(dtype_of(slot)), one) for a, port, one in zip(found, ports, packed, strict=True) if port.slot == slot]
        parts = [a.reshape(-1) if one else a for a, one in here]
        if slot == META and shapes:
            parts = [np.array(shapes, np.int64), *parts]
        slots.append(np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.empty(0, dtype_of(slot)))
    return slots


def take_out(ports: list[Port], slots: list[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs that the nodes after a call make from its slots."""
    by_slot = dict(zip(SLOTS, slots, strict=True))
    results = []
    for port, at in zip(ports, meta_offsets(ports), strict=True):
        value, facts = by_slot[port.slot], by_slot[META]
        if is_packed(ports, port.slot, results=True):
            value = value[facts[at] : facts[at + 1]].reshape(facts[at + 2 : at + 2 + port.rank])
        results.append(value.astype(dtype_of(port.kind)))
    return results


@given(values())
def test_values_survive_packing_into_slots(drawn: tuple[list[Port], list[np.ndarray]]):
    ports, found = drawn
    for given_back in (arrays_of(put_in(ports, found), ports), take_out(ports, slots_of(found, ports))):
        for there, here in zip(found, given_back, strict=True):
            assert (here.shape, here.dtype) == (there.shape, there.dtype)
            np.testing.assert_array_equal(here, there)


def test_spec_round_trips():
    spec = CallSpec("scan", (Port("float", 2),), (Port("int64", 0), Port("string", 1)), {"model": "x", "axes": [0, 1]})
    assert parse_spec(spec.text()) == spec


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([np.ones(2)], "1 results were returned, but 2 are declared"),
        ([np.ones((2, 2)), np.array(["a"])], "result 0 has 2 dimensions, but 1 are declared"),
        ([np.array([{}], object), np.array(["a"])], "result 0 is no array of numbers"),
    ],
)
def test_wrong_results_are_refused(results: list[np.ndarray], message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        slots_of(results, [Port("float", 1), Port("string", 1)])


def test_invalid_strings_are_refused():
    with pytest.raises(UnicodeEncodeError):
        slots_of([np.array(["\ud800"], object)], [Port("string", 1)])


def test_a_failed_call_has_every_slot_and_the_number_of_its_exception():
    slots = slots_of_failure(77)
    assert [slot.dtype for slot in slots] == [dtype_of(name) for name in SLOTS]
    assert slots[SLOTS.index(META)].shape == (1, 77)


def test_exception_is_returned_once_and_only_the_latest_are_kept():
    error = ValueError("x")
    message = f"Name:'{GUARD}_3' Status Message: ... Input shape:{{1,{keep_exception(error)}}}, requested shape:{{1}}"
    assert cause_of(message) is error
    assert cause_of(message) is None
    assert cause_of("Name:'another' Input shape:{1,5}") is None
    first = keep_exception(error)
    for _ in range(200):
        keep_exception(ValueError())
    assert len(failures._kept) <= 64
    assert first not in failures._kept


def test_exception_is_kept_until_its_run_ends():
    before = len(failures._kept)
    over = failures.keep_for_run(threading.get_ident())
    mine = keep_exception(ValueError("mine"))
    others = threading.Thread(target=lambda: [keep_exception(ValueError()) for _ in range(500)])
    others.start()
    others.join()
    assert str(cause_of(f"Name:'{GUARD}_3' Input shape:{{1,{mine}}}")) == "mine"
    for _ in range(500):
        left = keep_exception(ValueError())
    assert len(failures._kept) <= 256 + 2 * 16
    over()
    over()
    assert left not in failures._kept
    assert len(failures._kept) <= max(before, 2 * 16)
    assert not failures._active


def test_exception_raised_while_keeping_another_is_kept(monkeypatch: pytest.MonkeyPatch):
    calls = []

    def interrupted(error: BaseException) -> int:
        calls.append(error)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return 5

    monkeypatch.setattr("ortscan.custom_ops.failures.keep_exception", interrupted)

    def work() -> list[np.ndarray]:
        raise ValueError

    assert run_safely(work)[SLOTS.index(META)].shape == (1, 5)
    assert [type(error) for error in calls] == [ValueError, KeyboardInterrupt]


@pytest.fixture
def interruptible():
    """Enable SIGINT as in a terminal, because background processes start with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_handlers_are_restored_after_a_run():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with deferred():
        assert signal.getsignal(signal.SIGINT) is not before[0]
        with deferred():
            pass
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    seen: list[Any] = []

    def elsewhere() -> None:
        with deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before[0]]


def body(text: str, kind: str = "float") -> onnx.ModelProto:
    return parsed(f'<ir_version: 8, opset_import: ["": 18]> b ({kind}[2] a, {kind}[2] c) => ({kind}[2] y) {{ {text} }}')


def test_elementwise_bodies_become_one_function():
    run = compiled(body("p = Mul (a, c) g = Greater (p, c) w = Where (g, a, c) y = Max (w, p)"))
    assert run is not None
    a, c = np.array([2, -3], np.float32), np.array([5, 7], np.float32)
    np.testing.assert_array_equal(run([a, c])[0], np.maximum(np.where(a * c > c, a, c), a * c))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("y = Softmax (a)", "float"),
        ("y = Div (a, c)", "int64"),
        ("y = Max (a, c, a)", "float"),
        ("y = Add (a, W)", "float"),
        ("p = Cast <to = 7> (a) y = Add (a, c)", "float"),
        ("y = Tanh (a)", "int32"),
    ],
)
def test_operators_that_numpy_computes_differently_are_not_compiled(text: str, kind: str):
    assert compiled(body(text, kind)) is None


def test_numpy_operators_are_those_of_whole_scan_calls():
    assert OPERATORS == ELEMENTWISE


def test_infinities_do_not_warn():
    run = compiled(body("y = Div (a, c)"))
    assert run is not None
    np.testing.assert_array_equal(run([np.ones(2, np.float32), np.zeros(2, np.float32)])[0], [np.inf, np.inf])


@pytest.mark.long
def test_array_results_are_used_only_if_the_library_accepts_them():
    code = """
import numpy as np, onnxruntime_extensions._ocos as library
from ortscan.custom_ops import registration
registration.declare()
print(registration._ResultForm.is_array)
from ortscan.custom_ops.slots import takes_array_results
known = library._on_pyop_invocation
library._on_pyop_invocation = lambda number, feed, attributes: [r.reshape(-1) for r in library.Opdef._odlist[number].body()]
print(takes_array_results(registration._declare_once()))
library._on_pyop_invocation = known
registration._ResultForm.is_array = False
print(session(ONE, cache="0").run(None, {"a": np.zeros(2)})[0].tolist())
"""
    assert survives(code).splitlines() == ["True", "False", "[0.0, 0.0]"]


def test_scan_without_steps_has_empty_stacks_of_the_right_shape():
    plan = ScanPlan(1, (0,), (False,), (1, 0), (False, True), (("uint64", (0, 0)), ("bool", (0,))))
    h, c = np.arange(6, dtype=np.uint64).reshape(2, 3), np.ones(3, np.uint64)

    def body(values):
        state, x, captured = values
        return [state + x, np.where(x > captured, state, captured), captured > 0]

    for steps in (0, 2):
        last, ys, zs = run_scan(plan, body, [h, np.zeros((steps, 2, 3), np.uint64), c])
        assert (ys.shape, zs.shape) == ((2, steps, 3), (steps, 3))
        np.testing.assert_array_equal(last, h)

    def fails(values):
        raise ZeroDivisionError

    last, ys, zs = run_scan(plan, fails, [h, np.zeros((0, 2, 3), np.uint64), c])
    assert (ys.shape, ys.dtype, zs.shape, zs.dtype) == ((0, 0, 0), np.uint64, (0, 0), np.bool_)
