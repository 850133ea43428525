"""Plans of random bodies compute what the Scan does, for several sizes of a batch, one and none too."""

from collections.abc import Callable

import onnx
import pytest

from rewrites.native.compiling import CompiledLoop
from tests.rewrites.native.finding_bodies import finding_scan
from tests.rewrites.native.harness import compiled, same_numbers
from tests.rewrites.native.random_bodies import random_scan

BLOCK = 20


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 100, BLOCK))
@pytest.mark.parametrize("drawn", [random_scan, finding_scan])
def test_plans_of_random_bodies_compute_what_the_scan_does(drawn: Callable[[int], onnx.ModelProto], first: int) -> None:
    plans = 0
    for seed in range(first, first + BLOCK):
        model = drawn(seed)
        outcome, again = compiled(model)[1], compiled(model)[1]
        if not isinstance(outcome, CompiledLoop) or not isinstance(again, CompiledLoop):
            assert outcome == again
            continue
        assert outcome.plan == again.plan
        plans += 1
        for size in (3, 1, 2):
            plan = same_numbers(model, seed=seed, close=1e-4, B=size, T=4)
            if not plan.symbols:
                break
    assert plans > BLOCK // 2
