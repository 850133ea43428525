"""Integers followed through random bodies against the same bodies run, every value looked at in every step."""

from collections import Counter

import numpy as np
import pytest

from rewrites.analysis.induction.integers import Integers
from tests.rewrites.analysis.induction.programs import affine_in, random_program
from tests.rewrites.apply import prepared


@pytest.mark.long
def test_an_expression_is_what_the_nodes_compute_in_every_step() -> None:
    followed: Counter[str] = Counter()
    for seed in range(200):
        program = random_program(seed)
        if program is None:
            continue
        values = {value.name: value for node in program.loop.body for value in node.outputs}
        for name, stack in program.steps.items():
            value, where = values[name], f"seed {seed}, {name}: {program.text}"
            found, truth = program.integers.of(value), program.integers.truth_in_all_steps(value)
            if truth is not None:
                followed["truth"] += 1
                assert (stack == truth).all(), where
            if found is not None:
                maker = value.producer()
                followed[maker.op_type if maker is not None else ""] += bool(found.terms)
                wanted = [affine_in(program, found, step) for step in range(len(stack))]
                assert [array.shape for array in wanted] == [array.shape for array in stack], where
                for mine, theirs in zip(wanted, stack, strict=True):
                    np.testing.assert_array_equal(mine.astype(np.float64), theirs.astype(np.float64), where)
    often = {
        "Add",
        "Cast",
        "Clip",
        "Concat",
        "Expand",
        "Gather",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Reshape",
        "Slice",
        "Sub",
        "Where",
        "truth",
    }
    assert often <= {name for name, count in followed.items() if count}
    assert not followed["Div"] + followed["Mod"]


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        ("min = -1.0", True),
        ("min = -3.4028235e38", True),
        ("min = 0.5", False),
        ("min = -0.5, max = 9.5", False),
        ("max = -0.5", False),
        ("min = 0.0", True),
    ],
)
def test_a_clip_between_numbers_that_are_not_whole_is_not_followed(bounds: str, kept: bool) -> None:
    ctx = prepared(
        f"g (float[B] x) => (float y) {{ n = Size (x) f = Cast <to = 1> (n) y = Clip <{bounds}> (f) }}", opset=10, check=False
    )
    found = Integers(ctx.opset).of(ctx.model.graph.outputs[0])
    assert (found is not None) == kept


def test_a_clip_to_infinity_is_not_followed() -> None:
    ctx = prepared(
        "g (float[B] x) => (float y) { n = Size (x) f = Cast <to = 1> (n) y = Clip <max = 1.0> (f) }", opset=10, check=False
    )
    clip = ctx.model.graph.node(-1)
    for bound in (np.inf, -np.inf, np.nan):
        clip.attributes.add(type(clip.attributes["max"])("max", clip.attributes["max"].type, float(bound)))
        assert Integers(ctx.opset).of(clip.outputs[0]) is None


@pytest.mark.parametrize(
    "node",
    [
        "y = Max (s, three)",
        "y = Min (s, three)",
        "y = Add (s, three)",
        "y = Where (b, s, three)",
        "y = Concat <axis = 3> (s, three)",
    ],
)
def test_operands_that_do_not_fit_each_other_are_not_followed(node: str) -> None:
    """onnx sees no contradiction behind an operator it does not know."""
    text = f"g (float[2, 4] x, bool[2] b) => (int64[N] y) <int64[3] three = {{1, 1, 1}}> {{ s = Shape (x) {node} }}"
    ctx = prepared(text, check=False)
    assert Integers(ctx.opset).of(ctx.model.graph.outputs[0]) is None
