"""The sizes and inputs that models are timed at: what the caller asks for, else usual ones; values as comparisons make them up."""

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import onnx

from ortscan.benchmark.steps import dims_of_steps
from ortscan.running.budget import FULL_BYTES, FULL_SECONDS, Budget
from ortscan.running.specs import input_specs, output_specs, overridable_names
from ortscan.verification.cases.planned_cases import Inputs
from ortscan.verification.cases.preparing import Prepared, prepare
from ortscan.verification.given.inputs import Given, read_inputs, with_shapes
from ortscan.verification.given.recorded import read_recorded
from ortscan.verification.sizes.axis import Axis
from ortscan.verification.values.point import Point
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = ["BenchInputs", "bench_inputs"]

_USUAL = ((64, 1), (256, 1), (64, 8))
"""Steps, and each other free size."""
_MOST = 64
"""So many choices of sizes at most."""


class BenchInputs:
    """What to feed the models at each choice of sizes. ``usual``: the sizes were chosen here, and others will do as well."""

    def __init__(self, prepared: Prepared, points: Sequence[Point], usual: bool) -> None:
        self.inputs, self.usual = prepared.inputs, usual
        self.points = [self.inputs.completed(point) for point in points]
        self._learned = prepared.learned

    def fallbacks(self) -> Iterator[Point]:
        """Yield what to try where the models take none of the usual sizes: small ones, as comparisons do."""
        for planned in self.inputs.planned_cases(self._learned):
            if planned.point.kind == "normal" and not planned.point.override:
                yield planned.point


def bench_inputs(
    models: Sequence[onnx.ModelProto],
    shapes: Mapping[str, Sequence[int | None]],
    sizes: Mapping[str, Sequence[int]],
    inputs: Given | None,
) -> BenchInputs:
    """Choose what to time ``models`` at.

    Raises OptionError where inputs cannot be made up, and for names and sizes that are not the model's.
    """
    first = models[0]
    specs, fixed = with_shapes(input_specs(first.graph), shapes)
    given: Mapping[str, Any] = {}
    if inputs is not None:
        inputs, _ = read_recorded(inputs, specs, output_specs(first.graph))
        given, *others = read_inputs(inputs, specs, overridable_names(first))
        if others:
            raise OptionError("inputs: one set of inputs can be timed, not several.")
    budget = Budget(FULL_SECONDS, FULL_BYTES)
    prepared = prepare((first, models[-1]), (set(), set()), specs, fixed, given, 0, "full", budget)
    for problem in (*prepared.problems, *prepared.too_large):
        raise OptionError(f"The models cannot be timed: {problem}.")
    axes = prepared.inputs.axes(prepared.learned)
    _check_names(sizes, axes, prepared.inputs)
    steps = set[str]().union(*(dims_of_steps(model, specs) for model in models))
    return BenchInputs(prepared, _unique([*_points(axes, steps, sizes)]), usual=not sizes)


def _check_names(sizes: Mapping[str, Sequence[int]], axes: Sequence[Axis], inputs: Inputs) -> None:
    known = [name for axis in axes for name in axis.names]
    for name in sizes:
        if name not in known:
            free = ", ".join(map(shown, known))
            raise OptionError(f"sizes has {shown(name)}, but what is free to choose is {free or 'nothing'}.")
        if name in inputs.sizes:
            raise OptionError(f"sizes gives {shown(name)} a size, and so do shapes or inputs.")


def _points(axes: Sequence[Axis], steps: Set[str], sizes: Mapping[str, Sequence[int]]) -> Iterator[Point]:
    usual = _USUAL[:1] if sizes else _USUAL
    chosen = list(itertools.islice(itertools.product(*sizes.values()), _MOST + 1))
    if len(chosen) > _MOST:
        raise OptionError(f"sizes asks for more than {_MOST} choices of sizes.")
    for combination in chosen:
        asked = dict(zip(sizes, combination, strict=True))
        for many, few in usual:
            yield _point(axes, asked, {id(axis): many if axis.trips or not steps.isdisjoint(axis.names) else few for axis in axes})


def _point(axes: Sequence[Axis], asked: Mapping[str, int], usual: Mapping[int, int]) -> Point:
    found: dict[str, int] = {}
    trips: dict[str, int] = {}
    for axis in axes:
        for part in axis.parts:
            own = usual[id(axis)] if axis.any_size or axis.trips else axis.values[0]
            size = next((asked[name] for name in part if name in asked), own)
            (trips if axis.trips else found).update({name: asked.get(name, size) for name in part})
    return Point(found, trips)


def _unique(points: Sequence[Point]) -> list[Point]:
    """Without choices that come to the same, as where nothing is free."""
    return [point for place, point in enumerate(points) if point not in points[:place]]
