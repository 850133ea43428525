"""Choose the sizes and inputs for timing models.

If the caller passes no sizes or inputs, usual sizes and generated values are used.
"""

import itertools
import numbers
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import onnx
import onnx_ir as ir

from ortscan.running.analysis import Analysis, analyse, if_readable
from ortscan.running.budget import FULL_BYTES, FULL_SECONDS, LARGE_FOLDED, Budget
from ortscan.running.specs import SessionSpec, input_specs, output_specs, overridable_names
from ortscan.verification.inputs.axis import Axis
from ortscan.verification.inputs.cases import Inputs
from ortscan.verification.inputs.given_inputs import Given, read_inputs
from ortscan.verification.inputs.point import Point
from ortscan.verification.inputs.prepare import InputPlan, prepare
from ortscan.verification.inputs.shapes import with_shapes
from rewrites.analysis.induction.affine_expression import Dim
from rewrites.analysis.induction.integers import Integers
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown
from rewrites.graph.walk import all_nodes
from rewrites.loops import LoopView, is_loop, view

__all__ = ["BenchInputs", "bench_inputs", "check_effort", "dims_of_steps", "given_sizes"]

_USUAL = ((64, 1), (256, 1), (64, 8))
"""Pairs of a trip count and the size of every other free dimension."""
_MOST_CHOICES = 64
"""The most combinations of sizes."""
_MOST_NUMBER, _MOST_SECONDS = 1000, 10**6
"""The upper limits. The first holds for the length of a list of sizes, the threads and the rounds, the second for the seconds."""
_RECURRENT = ("RNN", "GRU", "LSTM")


def given_sizes(sizes: Any) -> dict[str, list[int]]:
    """Return the option ``sizes`` with a list for each name.

    For ``{"T": [16, 64], "B": 1}``, return ``{"T": [16, 64], "B": [1]}``. Raise OptionError if ``sizes`` has another form.
    """
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise OptionError(f"sizes must be a dict such as {{'T': [16, 64]}}, not {shown(sizes)}.")
    return {str(name): _sizes(name, values) for name, values in sizes.items()}


def _sizes(name: Any, values: Any) -> list[int]:
    many = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    try:
        sizes = [operator.index(size) for size in (itertools.islice(values, _MOST_NUMBER) if many else [values])]
    except TypeError:
        sizes = []
    if not sizes or min(sizes) < 0 or any(isinstance(size, bool) for size in (values if many else [values])):
        raise OptionError(
            f"sizes: {shown(name)} must have a whole number of at least 0, or a list of such numbers, not {shown(values)}."
        )
    return list(dict.fromkeys(sizes))


def check_effort(threads: Any, rounds: Any, seconds: Any) -> None:
    """Raise OptionError unless the numbers of threads, rounds and seconds are valid."""
    if not _is_within(threads, numbers.Integral, 0, _MOST_NUMBER):
        raise OptionError(f"threads must be a whole number of 0 to {_MOST_NUMBER}, not {shown(threads)}.")
    if not _is_within(rounds, numbers.Integral, 1, _MOST_NUMBER):
        raise OptionError(f"rounds must be a whole number of 1 to {_MOST_NUMBER}, not {shown(rounds)}.")
    if not _is_within(seconds, numbers.Real, 0, _MOST_SECONDS) or not seconds:
        raise OptionError(f"seconds must be a number above 0 and up to {_MOST_SECONDS}, not {shown(seconds)}.")


def _is_within(value: Any, kind: type, least: int, most: int) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and bool(least <= value <= most)  # type: ignore[operator]


class BenchInputs:
    """The inputs of the models for each combination of sizes.

    ``may_crash`` is True if a run may crash the process.

    Args:
        prepared: the facts that are needed to generate inputs.
        points: the combinations of sizes.
        usual: True if the caller chose no sizes.
    """

    def __init__(self, prepared: InputPlan, points: Sequence[Point], usual: bool) -> None:
        self.inputs, self.usual = prepared.inputs, usual
        self.points = [self.inputs.completed(point) for point in points]
        self._learned = prepared.learned
        self.may_crash = prepared.may_crash or self.inputs.inner_sizes.largest_fixed()[0] > LARGE_FOLDED

    def fallbacks(self) -> Iterator[Point]:
        """Yield the small sizes at which ``verify`` tries models.

        They are used if the models reject all usual sizes.
        """
        for planned in self.inputs.planned_cases(self._learned):
            if planned.point.kind == "normal" and not planned.point.override:
                yield planned.point


def bench_inputs(
    models: Sequence[onnx.ModelProto],
    shapes: Mapping[str, Sequence[int | None]],
    sizes: Mapping[str, Sequence[int]],
    inputs: Given | None,
    usual: Sequence[tuple[int, int]] = _USUAL,
) -> BenchInputs:
    """Choose the sizes and the inputs with which ``models`` are timed.

    Args:
        models: models with the same interface.
        shapes: the caller's shapes of inputs.
        sizes: the caller's sizes of free dimensions.
        inputs: the caller's inputs.
        usual: pairs of a trip count and the size of every other free dimension.

    Raises:
        OptionError: inputs cannot be generated, or a name or size does not fit the models.
    """
    first = models[0]
    specs, fixed = with_shapes(input_specs(first.graph), shapes)
    values: Mapping[str, Any] = {}
    if inputs is not None:
        (values, *others), _ = read_inputs(inputs, specs, overridable_names(first), output_specs(first.graph))
        if others:
            raise OptionError("inputs: only one set of inputs can be timed.")
    budget = Budget(FULL_SECONDS, FULL_BYTES)
    prepared = prepare((first, models[-1]), (set(), set()), specs, fixed, values, 0, "full", budget)
    for problem in (*prepared.problems, *prepared.too_large):
        raise OptionError(f"The models cannot be timed: {problem}.")
    axes = prepared.inputs.axes(prepared.learned)
    _check_names(sizes, axes, prepared.inputs)
    steps = set[str]().union(*(dims_of_steps(model, specs) for model in models))
    return BenchInputs(prepared, _unique([*_points(axes, steps, sizes, usual)]), usual=not sizes)


def _check_names(sizes: Mapping[str, Sequence[int]], axes: Sequence[Axis], inputs: Inputs) -> None:
    known = [name for axis in axes for name in axis.names]
    for name in sizes:
        if name not in known:
            free = ", ".join(map(shown, known))
            raise OptionError(f"sizes has {shown(name)}, which is no free dimension; the free dimensions are: {free or 'none'}.")
        if name in inputs.sizes:
            raise OptionError(f"sizes gives {shown(name)} a size, and so do shapes or inputs; name it only once.")


def _points(
    axes: Sequence[Axis], steps: Set[str], sizes: Mapping[str, Sequence[int]], usual: Sequence[tuple[int, int]]
) -> Iterator[Point]:
    usual = usual[:1] if sizes else usual
    chosen = list(itertools.islice(itertools.product(*sizes.values()), _MOST_CHOICES + 1))
    if len(chosen) > _MOST_CHOICES:
        raise OptionError(f"sizes has more than {_MOST_CHOICES} combinations.")
    for combination in chosen:
        fixed = dict(zip(sizes, combination, strict=True))
        for many, few in usual:
            yield _point(
                axes,
                fixed,
                {id(axis): many if axis.is_trip_count or not steps.isdisjoint(axis.names) else few for axis in axes},
            )


def _point(axes: Sequence[Axis], fixed: Mapping[str, int], usual: Mapping[int, int]) -> Point:
    dims: dict[str, int] = {}
    trips: dict[str, int] = {}
    for axis in axes:
        for part in axis.parts:
            own = usual[id(axis)] if axis.can_have_any_size or axis.is_trip_count else axis.values[0]
            size = next((fixed[name] for name in part if name in fixed), own)
            (trips if axis.is_trip_count else dims).update({name: fixed.get(name, size) for name in part})
    return Point(dims, trips)


def _unique(points: Sequence[Point]) -> list[Point]:
    """Return ``points`` without repetitions, which occur if no dimension is free."""
    return [point for number, point in enumerate(points) if point not in points[:number]]


def dims_of_steps(proto: onnx.ModelProto, specs: Sequence[SessionSpec]) -> set[str]:
    """Return the names of the free dimensions over which loops iterate.

    Return an empty set if the graph cannot be read.
    """

    def read() -> set[str]:
        analysis = analyse(proto, specs)
        return {name for node in all_nodes(analysis.model.graph) for name in _dims(node, analysis) if isinstance(name, str)}

    return if_readable(read) or set()


def _dims(node: ir.Node, analysis: Analysis) -> list[int | str | None]:
    if node.op_type in _RECURRENT:
        return [analysis.dim(node.inputs[0], 0)]
    if not is_loop(node):
        return []
    opset = analysis.model.opset_imports[""]
    loop = view(node, opset)
    if not isinstance(loop, LoopView):
        return [analysis.dim(scan.outer, scan.axis) for scan in loop.scan_inputs]
    limit = None if loop.limit is None else Integers(opset).scalar(loop.limit)
    return [] if limit is None else [analysis.dim(term.value, term.axis) for term in limit.terms if isinstance(term, Dim)]
