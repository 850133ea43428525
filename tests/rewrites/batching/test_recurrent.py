"""RNN, LSTM and GRU in each step."""

import itertools

import pytest

from tests.rewrites.batching.harness import F32, I32, Arg, Case, case, check, given, refusal, same, steps

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTH, BATCH, WIDTH, HIDDEN = 4, 2, 3, 5


def _cell(operator: str, direction: str = "forward", inputs: str = "x, w, r", dims: list[str] | None = None, **more: Arg) -> Case:
    ways = 2 if direction == "bidirectional" else 1
    gates = GATES[operator]
    args = {
        "x": steps(F32, LENGTH, BATCH, WIDTH, dims=dims),
        "w": same(F32, ways, gates * HIDDEN, WIDTH),
        "r": same(F32, ways, gates * HIDDEN, HIDDEN),
    } | more
    outputs = "y, h, c" if operator == "LSTM" else "y, h"
    return case(f'{outputs} = {operator} <hidden_size={HIDDEN}, direction="{direction}"> ({inputs})', **args)


@pytest.mark.parametrize("opset", [8, 14, 22])
def test_steps_are_more_rows_of_the_batch(opset: int) -> None:
    cases = []
    for operator, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
        ways = 2 if direction == "bidirectional" else 1
        cases.append(_cell(operator, direction))
        cases.append(_cell(operator, direction, dims=["S", "B", "I"]))
        bias = same(F32, ways, 2 * GATES[operator] * HIDDEN)
        for state, lengths in [(steps, same), (same, steps)]:
            long = given([1, LENGTH], I32) if lengths is same else given([[4, 1], [2, 3], [1, 1]], I32, batched=True)
            args = {"b": bias, "l": long, "h0": state(F32, ways, BATCH, HIDDEN)}
            cases.append(_cell(operator, direction, "x, w, r, b, l, h0", **args))
    check(cases, opset, empty=False)


def test_states_alone_may_differ_between_steps() -> None:
    once = same(F32, LENGTH, BATCH, WIDTH)
    start = {"h0": steps(F32, 1, BATCH, HIDDEN), "c0": same(F32, 1, BATCH, HIDDEN), "p": same(F32, 1, 3 * HIDDEN)}
    cases = [
        _cell("GRU", inputs="x, w, r, , , h0", x=once, h0=steps(F32, 1, BATCH, HIDDEN)),
        _cell("LSTM", inputs="x, w, r, , , h0, c0, p", x=once, **start),
    ]
    check(cases, empty=False)


def test_weights_of_each_step_and_no_rows_are_refused() -> None:
    for operator, gates in GATES.items():
        weights = steps(F32, 1, gates * HIDDEN, WIDTH)
        assert refusal(_cell(operator, w=weights)) == "BATCHED-WEIGHTS"
        assert refusal(_cell(operator), may_be_empty=True) == "EMPTY-STEPS"
    turned = case("y = RNN <hidden_size=5, layout=1> (x, w, r)", x=steps(F32, 2, 4, 3), w=same(F32, 1, 5, 3), r=same(F32, 1, 5, 5))
    assert refusal(turned) == "NO-BATCHING-RULE"
