"""Models that compute all prefixes of an operator without a loop, in the forms in which exporters and people write them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from tests.support.text import model_from_text

__all__ = ["FORMS", "OPERATORS", "TreeOperator", "TreeWriter", "prefix_tree"]

_END = 2**63 - 1
Parts = Sequence[str]


@dataclass(frozen=True)
class TreeOperator:
    """An operator on rows with `parts` parts, written as nodes over {a0}, {a1}, ... (earlier) and {b0}, {b1}, ... (later).

    `results` has the names of its results in `text`, where {n} is a number of its own. `neutral` has one number for each part.
    """

    text: str
    results: Parts
    neutral: Sequence[float] | None = None
    parts: int = 1
    kind: str = "float"


def _node(op_type: str, neutral: float, kind: str = "float") -> TreeOperator:
    return TreeOperator(f"r{{n}} = {op_type} ({{a0}}, {{b0}})", ["r{n}"], [neutral], kind=kind)


OPERATORS: Mapping[str, TreeOperator] = {
    "sum": _node("Add", 0),
    "product": _node("Mul", 1),
    "maximum": _node("Max", -float("inf")),
    "minimum": _node("Min", float("inf")),
    "integer sum": _node("Add", 0, "int64"),
    "or": _node("Or", 0, "bool"),
    "linear": TreeOperator(
        "p{n} = Mul ({a0}, {b0}) m{n} = Mul ({b0}, {a1}) r{n} = Add (m{n}, {b1})", ["p{n}", "r{n}"], parts=2
    ),
    "log-sum-exp": TreeOperator("e{n} = Exp ({a0}) f{n} = Exp ({b0}) s{n} = Add (e{n}, f{n}) r{n} = Log (s{n})", ["r{n}"]),
    "gated": TreeOperator(
        "k{n} = Mul ({a0}, {b0}) z{n} = Cast <to = 9> ({b0}) w{n} = Not (z{n}) l{n} = Where (w{n}, {b1}, {a1}) r{n} = Add (l{n}, {b1}) "
        "v{n} = Where (w{n}, {b1}, r{n})",
        ["k{n}", "v{n}"],
        parts=2,
    ),
    "last": TreeOperator("g{n} = Max ({a0}, {b0}) h{n} = Less ({a0}, {b0}) r{n} = Where (h{n}, {b1}, {a1})", ["g{n}", "r{n}"], parts=2),
}  # fmt: skip


@dataclass
class TreeWriter:
    """Collects the nodes of a tree over `axis` of tensors of `rank` axes."""

    operator: TreeOperator
    steps: int
    axis: int = 0
    rank: int = 2
    lines: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def number(self) -> int:
        self._count += 1
        return self._count

    def ints(self, *values: int) -> str:
        name = "i" + "_".join(map(str, values)).replace("-", "m")
        self.constants[name] = f"int64[{len(values)}] {name} = {{{', '.join(map(str, values))}}}"
        return name

    def scalar(self, value: float) -> str:
        name = f"q{str(value).replace('-', 'm').replace('.', '_')}"
        self.constants[name] = f"{self.operator.kind} {name} = {{{value if self.operator.kind == 'float' else int(value)}}}"
        return name

    def emit(self, expression: str) -> str:
        name = f"t{self.number()}"
        self.lines.append(f"{name} = {expression}")
        return name

    def cut(self, rows: Parts, start: int, end: int, step: int = 1) -> list[str]:
        bounds = ", ".join(self.ints(value) for value in (start, end, self.axis, step))
        return [self.emit(f"Slice ({row}, {bounds})") for row in rows]

    def join(self, *tensors: Parts) -> list[str]:
        return [self.emit(f"Concat <axis = {self.axis}> ({', '.join(parts)})") for parts in zip(*tensors, strict=True)]

    def pad(self, rows: Parts, before: int, after: int, numbers: Sequence[float]) -> list[str]:
        widths = [0] * (2 * self.rank)
        widths[self.axis], widths[self.rank + self.axis] = before, after
        return [self.emit(f"Pad ({row}, {self.ints(*widths)}, {self.scalar(n)})") for row, n in zip(rows, numbers, strict=True)]

    def combine(self, earlier: Parts, later: Parts) -> list[str]:
        n = self.number()
        names = {f"a{i}": name for i, name in enumerate(earlier)} | {f"b{i}": name for i, name in enumerate(later)}
        self.lines.append(self.operator.text.format(n=n, **names))
        return [name.format(n=n) for name in self.operator.results]


def doubling(w: TreeWriter, rows: Parts) -> list[str]:
    """Write x[d:] = op(x[:-d], x[d:]) for d = 1, 2, 4, ..."""
    result, distance = list(rows), 1
    while distance < w.steps:
        later = w.combine(w.cut(result, 0, -distance), w.cut(result, distance, _END))
        result, distance = w.join(w.cut(result, 0, distance), later), 2 * distance
    return result


def doubling_from_the_end(w: TreeWriter, rows: Parts) -> list[str]:
    """Write x[:-d] = op(x[:-d], x[d:]) for d = 1, 2, 4, ..., which computes prefixes from the last row on."""
    result, distance = list(rows), 1
    while distance < w.steps:
        earlier = w.combine(w.cut(result, 0, -distance), w.cut(result, distance, _END))
        result, distance = w.join(earlier, w.cut(result, w.steps - distance, _END)), 2 * distance
    return result


def padded_doubling(w: TreeWriter, rows: Parts) -> list[str]:
    """Write x = op(pad(x, d)[:T], x) for d = 1, 2, 4, ..., with the neutral element as padding."""
    assert w.operator.neutral is not None
    result, distance = list(rows), 1
    while distance < w.steps:
        shifted = w.cut(w.pad(result, distance, 0, w.operator.neutral), 0, w.steps)
        result, distance = w.combine(shifted, result), 2 * distance
    return result


def _even_odd(w: TreeWriter, rows: Parts, steps: int, interleave: Callable[[Parts, Parts, int], list[str]]) -> list[str]:
    """Write the algorithm of JAX's and torch's `associative_scan`: prefixes of pairs are the prefixes at odd rows."""
    if steps < 2:
        return list(rows)
    pairs = w.combine(w.cut(rows, 0, -1, 2), w.cut(rows, 1, _END, 2))
    odd = _even_odd(w, pairs, steps // 2, interleave)
    first = w.cut(rows, 0, 1)
    if steps == 2:
        return interleave(first, odd, steps)
    before = w.cut(odd, 0, -1) if steps % 2 == 0 else odd
    even = w.join(first, w.combine(before, w.cut(rows, 2, _END, 2)))
    return interleave(even, odd, steps)


def stacked(w: TreeWriter, rows: Parts) -> list[str]:
    """Write the algorithm as torch exports it: even and odd rows are stacked and reshaped."""

    def interleave(even: Parts, odd: Parts, steps: int) -> list[str]:
        if steps % 2:
            odd = w.pad(odd, 0, 1, [0] * len(odd))
        results = []
        for a, b in zip(even, odd, strict=True):
            axis = w.ints(w.axis + 1)
            stack = w.emit(
                f"Concat <axis = {w.axis + 1}> ({w.emit(f'Unsqueeze ({a}, {axis})')}, {w.emit(f'Unsqueeze ({b}, {axis})')})"
            )
            sizes = [0] * w.rank
            sizes[w.axis : w.axis + 1] = [-1]
            shape = w.ints(*[size if size else SIZES[axis] for axis, size in enumerate(sizes)])
            results.append(w.emit(f"Reshape ({stack}, {shape})"))
        return w.cut(results, 0, steps) if steps % 2 else results

    return _even_odd(w, rows, w.steps, interleave)


def dilated(w: TreeWriter, rows: Parts) -> list[str]:
    """Write the algorithm of JAX with interior padding: zeros between the rows, and the sum of both dilated tensors."""

    def dilate(row: str, count: int, before: int, after: int) -> str:
        widths = [0] * (2 * w.rank + 2)
        widths[w.rank + 1 + w.axis + 1] = 1
        wide = w.emit(f"Pad ({w.emit(f'Unsqueeze ({row}, {w.ints(w.axis + 1)})')}, {w.ints(*widths)}, {w.scalar(0)})")
        shape = w.ints(*[2 * count if axis == w.axis else SIZES[axis] for axis in range(w.rank)])
        cut = w.cut([w.emit(f"Reshape ({wide}, {shape})")], 0, 2 * count - 1)
        return w.pad(cut, before, after, [0])[0]

    def interleave(even: Parts, odd: Parts, steps: int) -> list[str]:
        late = steps // 2
        return [
            w.emit(f"Add ({dilate(a, steps - late, 0, 1 - steps % 2)}, {dilate(b, late, 1, steps % 2)})")
            for a, b in zip(even, odd, strict=True)
        ]

    return _even_odd(w, rows, w.steps, interleave)


FORMS: Mapping[str, Callable[[TreeWriter, Parts], list[str]]] = {
    "doubling": doubling,
    "doubling from the end": doubling_from_the_end,
    "padded doubling": padded_doubling,
    "stacked": stacked,
    "dilated": dilated,
}
SIZES = (3, 3, 2)
"""The sizes of the axes along which no steps lie."""


def prefix_tree(
    form: str,
    operator: str | TreeOperator,
    steps: int,
    *,
    axis: int = 0,
    rank: int = 2,
    opset: int = 18,
    spoil: str = "",
    results: int | None = None,
) -> onnx.ModelProto:
    """Return a model that computes the prefixes of `steps` rows by a tree of the form `form`.

    `spoil` is a text "old>new" that changes the first node that contains `old`. The model returns the last `results` parts.
    """
    chosen = OPERATORS[operator] if isinstance(operator, str) else operator
    w = TreeWriter(chosen, steps, axis, rank)
    inputs = [f"x{i}" for i in range(chosen.parts)]
    outputs = FORMS[form](w, inputs)
    returned = range(chosen.parts)[-(results or chosen.parts) :]
    w.lines += [f"y{i} = Identity ({outputs[i]})" for i in returned]
    text = "\n".join(w.lines)
    if spoil:
        old, new = spoil.split(">")
        assert old in text
        text = text.replace(old, new, 1)
    shape = ",".join(str(steps if i == axis else SIZES[i]) for i in range(rank))
    listed = [", ".join(f"{chosen.kind}[{shape}] {name}" for name in names) for names in (inputs, [f"y{i}" for i in returned])]
    return model_from_text(f"g ({listed[0]}) => ({listed[1]}) <{', '.join(w.constants.values())}> {{ {text} }}", opset)
