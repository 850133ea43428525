"""Whatever the order in which the rules on loops are tried, the engine ends, no rule fails, and the numbers stay.

The order in use is chosen for what becomes of the loops; that a model stays right must not hang on it.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

import onnx
import pytest

from rewrites.registry import RULES
from rewrites.rule import Rule
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import loop, scan
from tests.rewrites.loop_form.random_loops import random_loop
from tests.rewrites.recurrences.written_cells import written_cells
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

SEEDS = 20

Drawn = tuple[onnx.ModelProto, Mapping[str, Any]]


def from_text(text: str) -> Drawn:
    model = read(text)
    return model, data(model)


def from_seed(seed: int) -> Drawn:
    drawn = random_loop(seed, 3)
    model = read(drawn.text, check=False)
    given = {info.name for info in model.graph.input}
    return model, {name: value for name, value in drawn.feeds.items() if name in given}


def cell(number: int) -> Drawn:
    written = list(written_cells())[number]
    return written.model(steps="T"), written.feeds()


BACKWARDS = {"attributes": "num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"}
INNER = "Scan <num_scan_inputs = 1, body = inner (float[2] g, float[2] e) => (float[2] g1) { d2 = Exp (e) g1 = Add (g, e) }>"
MODELS: dict[str, Callable[[], Drawn]] = {
    "much that need not be": lambda: from_text(scan("a = Identity (x) d = Exp (a) e = Identity (h) h1 = Add (e, a) y = Tanh (e)")),
    "a loop in a loop": lambda: from_text(scan(f"h1 = Add (h, x) d = Exp (x) y = {INNER} (h, xs)")),
    "work before and after a recurrence": lambda: from_text(
        scan("a = Exp (x) b = Mul (a, h) h1 = Tanh (b) k = Softmax (h1) y = Add (k, a)", **BACKWARDS)
    ),
    "results that are the same, and one that is what it is given": lambda: from_text(
        scan("h1 = Add (h, x) y = Exp (h1) u = Exp (h1) v = Identity (x)", outputs="float[2] h1, float[2] y, float[2] u, float[2] v",
             outer="z, ys, us, vs", results="float[2] z, float[3,2] ys, float[3,2] us, float[3,2] vs")
    ),
    "two states of which one counts": lambda: from_text(
        scan("k1 = Add (k, one) p = Mul (k, x) h1 = Add (h, p) y = Tanh (p)", inputs="float[2] h, float[1] k, float[2] x", outputs="float[2] h1, float[1] k1, float[2] y",
             given="float[2] s, float[1] n, float[3,2] xs", operands="s, n, xs", outer="z, m, ys", results="float[2] z, float[1] m, float[3,2] ys", weights="float[1] one = {1}")
    ),
    "a Loop that reads a row in each step": lambda: from_text(loop("x = Gather (xs, i) h0 = Add (h, x) h1 = Tanh (h0) y = Exp (x)")),
    "a Loop of one step": lambda: from_text(loop("h1 = Tanh (h) y = Neg (h)", steps=1, results="float[2] z, float[1,2] ys")),
    "a Loop of no step": lambda: from_text(loop("h1 = Tanh (h) y = Neg (h)", steps=0, results="float[2] z, float[0,2] ys")),
    "a Scan that only counts": lambda: from_text(
        scan("n1 = Add (n, o)", inputs="int64 n, float[2] x", outputs="int64 n1", given="int64 s, float[3,2] xs", results="int64 z", outer="z", weights="int64 o = {1}")
    ),
    "an LSTM": lambda: cell(0),
    "another cell": lambda: cell(40),
    "a third cell": lambda: cell(75),
    **{f"random loop {seed}": (lambda seed=seed: from_seed(seed)) for seed in (1, 9)},
}  # fmt: skip


def in_any_order(seed: int) -> list[Rule[Any]]:
    """All rules that are used unless left out; those on loops in the order of `seed`, the others where they are."""
    rules = [rule for rule in RULES if rule.use != "asked"]
    on_loops = [rule for rule in rules if rule.subject == "loop"]
    random.Random(seed).shuffle(on_loops)
    return [on_loops.pop() if rule.subject == "loop" else rule for rule in rules]


@pytest.mark.parametrize("name", MODELS)
def test_rules_in_any_order_end_and_keep_the_numbers(name: str) -> None:
    model, feeds = MODELS[name]()
    expected = ort_run(model, feeds, optimised=False)
    seen: set[bytes] = set()
    for seed in range(SEEDS):
        after, report = apply(model, in_any_order(seed), check=False)
        assert report.patches, f"seed {seed}"
        assert not [reason for one in report.loops for reason in one.reasons if reason.code == "RULE-LIMIT"], f"seed {seed}"
        if after.SerializeToString() not in seen:
            onnx.checker.check_model(after)
            assert_same_numbers(ort_run(after, feeds, optimised=False), expected, why=f"seed {seed}, ")
            seen.add(after.SerializeToString())
