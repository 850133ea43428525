"""Measured sets against plain sets and sums."""

import random

import onnx_ir as ir

from rewrites.fission.profitability import EMPTY, MeasuredSets


def test_a_union_holds_each_value_once_and_knows_the_sum() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        values = [ir.Value(name=f"v{i}") for i in range(rng.randint(1, 70))]
        sizes = {value: rng.choice([0, 1, 1, 8, 1000]) for value in values}
        measured = MeasuredSets(sizes.__getitem__)
        plain, sets = [set[ir.Value]()], [EMPTY]
        for _ in range(25):
            if rng.random() < 0.4:
                chosen = [rng.choice(values) for _ in range(rng.randint(0, 9))]
                plain.append(set(chosen))
                sets.append(measured.set_of(chosen))
            else:
                which = [rng.randrange(len(sets)) for _ in range(rng.randint(0, 4))]
                plain.append(set().union(*(plain[i] for i in which)))
                sets.append(measured.union(sets[i] for i in which))
            assert sets[-1].size == sum(sizes[value] for value in plain[-1])
            assert sets[-1].members.bit_count() == len(plain[-1])
        for mine, one in zip(sets, plain, strict=True):
            assert all((mine.members == theirs.members) == (one == other) for theirs, other in zip(sets, plain, strict=True))


def test_each_value_is_measured_once() -> None:
    asked: list[ir.Value] = []
    value = ir.Value(name="v")
    measured = MeasuredSets(lambda one: asked.append(one) or 3)
    assert measured.set_of([value, value]) == measured.union([measured.set_of([value]), measured.set_of([value])])
    assert asked == [value]
