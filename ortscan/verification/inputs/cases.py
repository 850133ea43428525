"""Choose the cases to try with the inputs of a model, and generate the values for each case."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx

from ortscan.ort.element_types import numpy_type
from ortscan.running.analysis import KnownSizes
from ortscan.running.budget import Budget, Level
from ortscan.running.constraints import SizeFacts
from ortscan.running.specs import SessionSpec
from ortscan.verification.inputs.axis import Axis, derived_dims, derived_size, sizes_from, trip_values, values_to_try
from ortscan.verification.inputs.integers import AS_NAMED, ATTEMPTS, OTHER_ATTEMPTS
from ortscan.verification.inputs.make_value import is_integer, make_value, shape_of
from ortscan.verification.inputs.named_values import NamedValues
from ortscan.verification.inputs.plan import plan_case, plan_cases, plan_empty_cases, plan_uniform_cases, plan_value_cases
from ortscan.verification.inputs.point import PlannedCase, Point
from ortscan.verification.inputs.roles import Role
from ortscan.verification.inputs.turning_points import Known
from ortscan.verification.inputs.value_kinds import (
    MOST_ALONE,
    cases_of_named,
    fitting,
    other_defaults,
    other_integers,
    steady_kinds,
    useless_kinds,
    value_kinds,
)

__all__ = ["Inputs"]

_MOST_ELEMENTS = 1 << 40
"""The most elements of an input. A size of 0 counts as 1, because numpy multiplies the other sizes even then."""
_SMALL_BYTES = 1 << 20
_MOST_APART: Mapping[Level, int] = {"full": 6, "quick": 1}
"""The number of cases whose sizes only branches of Ifs forbid. A full comparison has as many such cases with a size of 0."""


@dataclass(frozen=True)
class Inputs:
    """All inputs of a model.

    Attributes:
        specs: the declarations of the inputs that must be fed.
        fixed: the values that the caller passed, by input. Values of the other inputs are generated.
        sizes: the sizes of free dimensions that the caller chose.
        defaults: the defaults of inputs, by name. Some cases feed other values instead.
        roles: the `Role` of each input whose possible values are known.
        inner_sizes: the sizes in bytes of the values inside the model.
        large: the integer inputs that may have very large values.
        divided: the inputs that must not be the lowest integer, because dividing it by -1 would crash onnxruntime.
        named: the constants that the models compare inputs with.
        has_loops: True if a model has loops. A loop may add a constant value until the sum overflows.
        avoid_empty: True if no input may be empty, because the model would crash onnxruntime.
        seed: the seed of the values.
        level: how thorough the comparison is.
        budget: the memory limit for the inputs of a case, and for those of all cases together.
        largest_compared_size: the largest number that the rewritten model compares sizes with, or 0.
        smallest_sizes: the smallest sizes of free dimensions that the original accepts, as far as they are known.
        only_named_integers: True to generate only integers from ``named``, because the original rejects other integers.
    """

    specs: Sequence[SessionSpec]
    fixed: Mapping[str, Any]
    sizes: Mapping[str, int]
    defaults: Mapping[str, np.ndarray]
    roles: Mapping[str, Role]
    inner_sizes: KnownSizes
    large: Set[str]
    divided: Set[str]
    named: NamedValues
    has_loops: bool
    avoid_empty: bool
    seed: int
    level: Level
    budget: Budget
    largest_compared_size: int
    smallest_sizes: Mapping[str, int] = field(default_factory=dict)
    only_named_integers: bool = False

    @property
    def missing(self) -> list[SessionSpec]:
        """The inputs whose values are generated."""
        return [spec for spec in self.specs if spec.name not in self.fixed]

    @property
    def unusual_integers(self) -> list[str]:
        """The integer inputs that get unusual values in some cases (see `Role`)."""
        return other_integers(self.missing, self.roles)

    @property
    def names_integers(self) -> bool:
        """True if a model compares an integer input with a number that the input can have."""
        return any(is_integer(spec) and self._named_for(spec, None, near=False) for spec in self.missing)

    @property
    def free_sizes(self) -> list[str]:
        """The free dimensions whose sizes the caller did not choose."""
        return [name for name in self._names() if name not in self.sizes]

    def planned_cases(self, learned: SizeFacts | None) -> list[PlannedCase]:
        """Return the cases to try first. Their sizes agree with the known facts ``learned``."""
        if not self.missing:
            return [PlannedCase(self.completed(Point()), ATTEMPTS[:1])]
        points = plan_cases(self.axes(learned), override=bool(self.defaults), level=self.level)
        alone = [point for point in points if point.override == "zeros" and len(self.defaults) > 1]
        points += [replace(point, only_input=name) for point in alone for name in [*self.defaults][:MOST_ALONE]]
        return self._as_planned(points)

    def unusual_cases(self, learned: SizeFacts | None) -> list[PlannedCase]:
        """Return cases in which a single input, or all inputs, have unusual values."""
        kinds = [*value_kinds(self.missing, self.roles, self.large, self.avoid_empty, self.level)]
        counts = [len(self._named_for(spec, None)) for spec in self.missing]
        if any(counts):
            kinds.append(("named", "", cases_of_named(self.missing, counts, self.level)))
        if self.level == "full" and self.has_loops:
            kinds += [(kind, "", 1) for kind in steady_kinds(self.missing)]
        return self._as_planned(plan_value_cases(self.axes(learned), kinds, self.level))

    def case_of(self, axes: Sequence[Axis], sizes: Sequence[int], kind: str = "normal") -> list[PlannedCase]:
        """Return a list with the case in which ``axes`` have ``sizes``, or [] if memory is insufficient."""
        return self._as_planned([replace(plan_case(axes, sizes), kind=kind)])

    def uniform_cases(self, *, large: bool) -> list[PlannedCase]:
        """Return cases in which all free dimensions have the same size: 2 to 16, or 32 to 256 if ``large``."""
        return self._as_planned(plan_uniform_cases(self.axes(None), large=large)) if self.missing else []

    def contradicting_cases(self, learned: SizeFacts, learned_without_branches: SizeFacts) -> list[PlannedCase]:
        """Return cases whose sizes contradict facts that only come from branches of Ifs (see `InputPlan`)."""
        axes, most = self.axes(learned_without_branches), _MOST_APART[self.level]
        apart, empty = (
            [point for point in points if point.kind == "normal" and not learned.allow(self.completed(point).sizes)][:most]
            for points in (plan_cases(axes, level=self.level), plan_empty_cases(axes, self.level))
        )
        points = [*apart[:2], *empty[:2], *apart[2:], *empty[2:]] if self.level == "full" else apart
        return self._as_planned(points)

    def empty_cases(self, learned: SizeFacts | None) -> list[PlannedCase]:
        """Return cases in which at least one dimension has the size 0."""
        return self._as_planned(plan_empty_cases(self.axes(learned), self.level)) if self.missing else []

    def _as_planned(self, points: Sequence[Point]) -> list[PlannedCase]:
        integers = any(is_integer(spec) or spec.name in self.roles for spec in self.missing)
        risky = self.avoid_empty and any(spec.elem_type == onnx.TensorProto.BOOL for spec in self.missing)
        attempts = (AS_NAMED,) if self.only_named_integers else ATTEMPTS if integers else ATTEMPTS[:1]
        kinds = useless_kinds(self.missing, self.roles) | ({"zeros"} if risky else set())
        completed = [self.completed(point) for point in points if point.kind not in kinds]
        if self.avoid_empty:
            completed = [point for point in completed if all(point.sizes[name] for name in self.free_sizes)]
        special = {"other integers": OTHER_ATTEMPTS, "named": ATTEMPTS[:1]}
        return [PlannedCase(point, special.get(point.kind, attempts)) for point in self._affordable(completed)]

    def _affordable(self, points: Sequence[Point]) -> Iterator[Point]:
        """Yield the cases that fit into memory. If the caller chose sizes, yield the smallest case anyway."""
        total, first = 0, min(points, key=self.bytes_at, default=None) if self.sizes else None
        for point in points:
            size = self.bytes_at(point)
            fits = self.budget.allows(max(size, self.inner_sizes.bytes_at(point.sizes))) and (
                size <= _SMALL_BYTES or self.budget.allows(total + size)
            )
            shapes = (shape_of(spec, point.sizes) for spec in self.missing)
            countable = all(math.prod(max(1, dim) for dim in shape) <= _MOST_ELEMENTS for shape in shapes)
            if (fits and countable) or (point is first and (size > 0 or countable)):
                total += size
                yield point

    def bytes_at(self, point: Point) -> int:
        """Return the size in bytes of all generated inputs of a case."""
        return sum(math.prod(shape_of(spec, point.sizes)) * max(1, numpy_type(spec.elem_type).itemsize) for spec in self.missing)

    def feed(self, point: Point, attempt: str) -> dict[str, Any]:
        """Return the values of all inputs for ``point``. ``attempt`` is the way to draw integers."""
        feed = {}
        for spec in self.missing:
            own = replace(point, kind=self._kind_for(spec, point))
            named = self._named_for(spec, point.sizes) if point.kind == "named" else ()
            if attempt == AS_NAMED and is_integer(spec):
                named = self._named_for(spec, point.sizes, near=False)
            feed[spec.name] = make_value(spec, own, self.roles.get(spec.name), attempt, self.seed, named)
        if point.override:
            others = other_defaults(self.defaults, "replaced" if point.only_input else point.override, self.seed)
            alone = {name: array for name, array in self.defaults.items() if name == point.only_input}
            feed.update(others | other_defaults(alone, point.override, self.seed))
        return {**feed, **self.fixed}

    def _kind_for(self, spec: SessionSpec, point: Point) -> str:
        if point.kind == "alone":
            return "absent" if spec.optional and spec.name != point.only_input else "normal"
        if point.only_input:
            return "normal" if spec.name != point.only_input else "zeros" if point.kind == "zero" else point.kind
        if point.kind != "large integers":
            return point.kind
        return "normal" if spec.name not in self.large else "divided integers" if spec.name in self.divided else point.kind

    def _named_for(self, spec: SessionSpec, sizes: Mapping[str, int] | None, *, near: bool = True) -> list[Known]:
        """Return the named values (see `named_values`) that an input can have at ``sizes``.

        If ``sizes`` is None, the limits in the `Role` of the input are ignored. If ``near`` is True, include the values
        just below and above the named values.
        """
        role, named = self.roles.get(spec.name), self.named.values(spec.name) if near else self.named.exact.get(spec.name, ())
        if role is not None and role.is_trip_count:
            return []
        return fitting(spec, named, None if sizes is None else role, sizes or {}, spec.name in self.large - self.divided)

    def completed(self, point: Point) -> Point:
        """Return ``point`` with the sizes that the caller chose or that are computed from other sizes."""
        sizes = {**self.sizes, **point.sizes}
        sizes.update({name: derived_size(name, sizes) for name in derived_dims(self._names()) if name not in sizes})
        return replace(point, sizes={name: sizes[name] for name in self._names()})

    def _names(self) -> list[str]:
        """Return all free dimensions, in the order of the inputs."""
        dims = [dim for spec in self.specs for dim in spec.dims or () if isinstance(dim, str)]
        generated = {dim for spec in self.missing for dim in spec.dims or ()}
        return [name for name in dict.fromkeys(dims) if name in self.sizes or name in generated]

    def axes(self, learned: SizeFacts | None) -> list[Axis]:
        """Return an `Axis` for each group of equal dimensions, followed by an `Axis` for each trip count."""
        derived = derived_dims(self._names())
        names = [name for name in self._names() if name not in derived]
        groups = [[[name]] for name in names] if learned is None else learned.groups(names)
        axes = [axis for position, group in enumerate(groups) for axis in self._axes_of(group, position, learned)]
        for spec in self.missing:
            if self.roles.get(spec.name, Role()).is_trip_count:
                counts = trip_values(self.level, self.named.values(spec.name))
                kept = tuple(count for count in counts if count > 0 or not self.avoid_empty)
                axes.append(Axis(((spec.name,),), kept, is_trip_count=True))
        return axes

    def _axes_of(self, group: Sequence[Sequence[str]], position: int, learned: SizeFacts | None) -> Iterator[Axis]:
        """Yield an `Axis` for each part in ``group`` whose size the caller chose, and one for the rest."""
        rest, known = [], []
        for part in group:
            size = next((self.sizes[name] for name in part if name in self.sizes), None)
            if size is None:
                rest.append(tuple(part))
            else:
                known.append(size)
                yield Axis((tuple(part),), (size,))
        if rest:
            values = values_to_try(rest, max(known, default=1), position, learned, self.level, self.largest_compared_size)
            least = max(self.smallest_sizes.get(name, 1) for part in rest for name in part)
            yield Axis(tuple(rest), sizes_from(values, least) if len(values) > 1 else values)
