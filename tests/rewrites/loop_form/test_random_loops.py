"""Loops put together at random from the idioms compute on onnxruntime what they computed before, without a step too."""

from collections import Counter

import onnx
import pytest

from rewrites.registry import RULES
from tests.rewrites.apply import apply, read
from tests.rewrites.loop_form.random_loops import random_loop
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run


def operators(graph: onnx.GraphProto) -> Counter[str]:
    found = Counter(node.op_type for node in graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += operators(attribute.g)
    return found


def runs(model: onnx.ModelProto, feeds: dict) -> list | None:
    given = {info.name for info in model.graph.input}
    try:
        return ort_run(model, {name: value for name, value in feeds.items() if name in given})
    except Exception:
        return None


@pytest.mark.parametrize("seed", range(40))
def test_a_random_loop_keeps_its_numbers(seed: int) -> None:
    for size in (0, 1, 2, 5):
        loop = random_loop(seed, size)
        model = read(loop.text, check=False)
        after, _ = apply(model, RULES, check=False)
        expected = runs(model, loop.feeds)
        if expected is not None:
            found = runs(after, loop.feeds)
            assert found is not None, loop.text
            assert_same_numbers(found, expected, why=f"{loop.kinds}: ")


@pytest.mark.long
def test_most_random_loops_become_scans() -> None:
    left = [
        seed
        for seed in range(40)
        if operators(apply(read(random_loop(seed, 5).text, check=False), RULES, check=False)[0].graph)["Loop"]
    ]
    assert len(left) < 10
