"""Random Loops that count, read and write in the ways exporters do, as ONNX text."""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["RandomLoop", "random_loop"]

WIDTH = 2


@dataclass
class RandomLoop:
    """A model's text, and what to feed it for a number of rows `size` of its tensors."""

    text: str
    feeds: dict[str, Any]
    kinds: list[str]


@dataclass
class _Parts:
    rng: random.Random
    size: int
    weights: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    states: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    """Type in the body, name in the body, initial value, next value, name outside."""
    outputs: list[tuple[str, str, str]] = field(default_factory=list)
    """Type of one step, name in the body, name outside."""
    results: list[tuple[str, str]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def number(self, value: int, dtype: str = "int64", rank: int = 0) -> str:
        name = f"k_{dtype}_{rank}_{value}".replace("-", "m")
        self.weights[name] = f"{dtype}{'[1]' * rank} {name} = {{{value}}}"
        return name

    def op(self, text: str, stem: str = "v", to: list[str] | None = None) -> str:
        name = self.name(stem)
        (self.inside if to is None else to).append(f"{name} = {text}")
        return name


def random_loop(seed: int, size: int) -> RandomLoop:
    """The loop of `seed`, its tensors with `size` rows."""
    p = _Parts(random.Random(seed), size)
    count = p.op(f"Gather (shape, {p.number(0)})", "n", p.before)
    p.before.insert(0, "shape = Shape (x)")
    how = p.rng.choice(["rows", "rows", "fed", "constant"])
    bound = {"rows": count, "fed": "m", "constant": p.number(min(size, 3) if size else 0)}[how]
    p.kinds.append(how)
    counters = [_counter(p, i) for i in range(p.rng.randint(0, 2))]
    go_on, limit, start = _control(p, bound, counters)
    rows = _reads(p, bound, counters)
    mix = rows[0]
    for row in rows[1:]:
        mix = p.op(f"Add ({mix}, {row})")
    half = p.op(f"Mul (h, {_half(p)})")
    new = p.op(f"Add ({half}, {mix})")
    p.states.append((f"float[{WIDTH}]", "h", "s", p.op(f"Tanh ({new})"), "h_end"))
    p.results.append((f"float[{WIDTH}]", "h_end"))
    for _ in range(p.rng.randint(0, 2)):
        _writes(p, p.rng.choice([new, mix]), counters, bound)
    if p.rng.random() < 0.5:
        p.outputs.append((f"float[{WIDTH}]", p.op(f"Neg ({new})"), "stack"))
        p.results.append((f"float[P,{WIDTH}]", "stack"))
    return RandomLoop(_text(p, go_on, limit, start), _feeds(p, size), p.kinds)


def _half(p: _Parts) -> str:
    p.weights["half"] = "float half = {0.5}"
    return "half"


def _counter(p: _Parts, index: int) -> tuple[str, str, int, int, str]:
    """Name, next, start, step, type."""
    dtype, start, step = p.rng.choice(["int32", "int64"]), p.rng.choice([0, 0, 0, 1, 2, -1]), p.rng.choice([1, 1, 1, 2, -1])
    inner = f"c{index}"
    after = p.op(f"Add ({inner}, {p.number(step, dtype)})", "next")
    p.states.append((dtype, inner, p.number(start, dtype), after, f"c{index}_end"))
    if p.rng.random() < 0.4:
        p.results.append((dtype, f"c{index}_end"))
    return inner, after, start, step, dtype


def _control(p: _Parts, bound: str, counters: list[tuple[str, str, int, int, str]]) -> tuple[str, str, str]:
    """The next condition, the trip count, and the first condition."""
    kind = p.rng.choice(["count", "count", "less", "less", "both", "two", "not", "float"])
    p.kinds.append(kind)
    rising = [c for c in counters if c[3] > 0]
    if kind == "count":
        return p.op(f"Identity ({p.rng.choice(['go', 'yes'])})"), bound, p.rng.choice(["", "yes"])
    huge = p.rng.choice(["", p.number(2**63 - 1)])
    first = p.op(f"Less ({p.number(0)}, {bound})", "first", p.before)
    one = p.op(f"Add (i, {p.number(1)})")
    parts = []
    if rising and kind in ("less", "two", "float"):
        _, after, start, _, dtype = rising[0]
        last = bound if dtype == "int64" else p.op(f"Cast <to = 6> ({bound})", "n", p.before)
        first = p.op(f"Less ({p.number(start, dtype)}, {last})", "first", p.before)
        if kind == "float":
            after, last = p.op(f"Cast <to = 1> ({after})"), p.op(f"Cast <to = 1> ({last})", "n", p.before)
        parts.append(p.op(f"Less ({after}, {last})"))
    elif kind == "not":
        parts.append(p.op(f"Not ({p.op(f'GreaterOrEqual ({one}, {bound})')})"))
    else:
        parts.append(p.op(p.rng.choice([f"Less ({one}, {bound})", f"Greater ({bound}, {one})"])))
    if kind in ("both", "two"):
        parts.append(p.op(f"LessOrEqual ({one}, {p.number(p.rng.choice([2, 4]))})"))
        return p.op(f"And ({parts[0]}, {parts[1]})"), huge, first
    return parts[0], p.rng.choice([huge, bound]), first


def _reads(p: _Parts, bound: str, counters: list[tuple[str, str, int, int, str]]) -> list[str]:
    return [_read(p, bound, counters) for _ in range(p.rng.randint(1, 2))]


def _place(p: _Parts, counters: list[tuple[str, str, int, int, str]], bound: str) -> str:
    kind = p.rng.choice(["i", "i", "counter", "offset", "back"])
    p.kinds.append(f"at {kind}")
    if kind == "counter" and counters:
        name, _, _, _, dtype = p.rng.choice(counters)
        return name if dtype == "int64" else p.op(f"Cast <to = 7> ({name})")
    if kind == "offset":
        return p.op(f"Add (i, {p.number(p.rng.choice([1, 2]))})")
    if kind == "back":
        last = p.op(f"Sub ({bound}, {p.number(1)})", "last", p.before)
        return p.op(f"Sub ({last}, i)")
    return "i"


def _read(p: _Parts, bound: str, counters: list[tuple[str, str, int, int, str]]) -> str:
    kind = p.rng.choice(["gather", "gather", "slice", "window", "normal", "nd", "sequence", "axis"])
    p.kinds.append(kind)
    place = _place(p, counters, bound)
    if kind == "gather":
        return p.op(f"Gather (wide, {place})")
    if kind == "axis":
        return p.op(f"Gather <axis = 1> (turned, {place})")
    if kind == "nd":
        return p.op(f"GatherND (wide, {p.op(f'Unsqueeze ({place}, {p.number(0, rank=1)})')})")
    if kind == "sequence":
        if "sequence = SplitToSequence <axis = 0, keepdims = 0> (wide)" not in p.before:
            p.before.append("sequence = SplitToSequence <axis = 0, keepdims = 0> (wide)")
        return p.op(f"SequenceAt (sequence, {place})")
    if kind == "normal":
        size = p.op(f"Gather ({p.op('Shape (wide)', 'sh', p.before)}, {p.number(0)})", "n", p.before)
        low = p.op(f"Less ({place}, {p.number(0)})")
        place = p.op(f"Where ({low}, {p.op(f'Add ({place}, {size})')}, {place})")
        last = p.op(f"Sub ({size}, {p.number(1)})", "last", p.before)
        place = p.op(f"Min ({p.op(f'Max ({place}, {p.number(0)})')}, {last})")
    start = p.op(f"Unsqueeze ({place}, {p.number(0, rank=1)})")
    width = 2 if kind == "window" else 1
    end = p.op(f"Add ({start}, {p.number(width, rank=1)})")
    cut = p.op(f"Slice (wide, {start}, {end}, {p.number(0, rank=1)})")
    if width == 1:
        return p.op(f"Squeeze ({cut}, {p.number(0, rank=1)})")
    return p.op(f"ReduceSum <keepdims = 0> ({cut}, {p.number(0, rank=1)})")


def _writes(p: _Parts, row: str, counters: list[tuple[str, str, int, int, str]], bound: str) -> None:
    kind = p.rng.choice(["nd", "elements", "where", "append", "front", "sequence", "add", "functional"])
    p.kinds.append(f"write {kind}")
    t, end = p.name("t"), p.name("end")
    type_ = f"float[T{t},{WIDTH}]"
    one = p.op(f"Unsqueeze ({row}, {p.number(0, rank=1)})")
    if kind in ("append", "front"):
        added = one if p.rng.random() < 0.5 else p.op(f"Concat <axis = 0> ({one}, {one})")
        after = p.op(f"Concat <axis = 0> ({t}, {added})" if kind == "append" else f"Concat <axis = 0> ({added}, {t})")
        p.states.append((type_, t, p.rng.choice(["none", "buffer"]), after, end))
    elif kind == "sequence":
        p.before.append(f"q{t} = SequenceEmpty ()")
        after = p.op(f"SequenceInsert ({t}, {row})")
        p.states.append((f"seq(float[{WIDTH}])", t, f"q{t}", after, f"q{end}"))
        p.after.append(f"{end} = ConcatFromSequence <axis = {p.rng.choice([0, 1])}, new_axis = 1> (q{end})")
        p.results.append((f"float[R{t},S{t}]", end))
        return
    else:
        place = _place(p, counters, bound)
        index = p.op(f"Unsqueeze ({place}, {p.number(0, rank=1)})")
        if kind == "nd":
            after = p.op(f"ScatterND ({t}, {p.op(f'Unsqueeze ({index}, {p.number(0, rank=1)})')}, {one})")
        elif kind == "add":
            old = p.op(f"Unsqueeze ({p.op(f'Gather ({t}, {place})')}, {p.number(0, rank=1)})")
            new = p.op(f"Add ({old}, {one})")
            after = p.op(f"ScatterND ({t}, {p.op(f'Unsqueeze ({index}, {p.number(0, rank=1)})')}, {new})")
        elif kind == "elements":
            p.weights["ones"] = f"int64[1,{WIDTH}] ones = {{{', '.join('1' * WIDTH)}}}"
            after = p.op(f"ScatterElements <axis = 0> ({t}, {p.op(f'Mul (ones, {index})')}, {one})")
        elif kind == "where":
            numbers = p.op(f"Range ({p.number(0)}, {p.number(p.size + 3)}, {p.number(1)})", "r", p.before)
            mask = p.op(f"Equal ({p.op(f'Unsqueeze ({numbers}, {p.number(1, rank=1)})')}, {place})")
            after = p.op(f"Where ({mask}, {one}, {t})")
        else:
            next_ = p.op(f"Add ({index}, {p.number(1, rank=1)})")
            head = p.op(f"Slice ({t}, {p.number(0, rank=1)}, {index}, {p.number(0, rank=1)})")
            tail = p.op(f"Slice ({t}, {next_}, {p.number(2**63 - 1, rank=1)}, {p.number(0, rank=1)})")
            after = p.op(f"Concat <axis = 0> ({head}, {one}, {tail})")
        p.states.append((type_, t, "buffer", after, end))
    p.results.append((f"float[R{t},{WIDTH}]", end))


def _text(p: _Parts, go_on: str, limit: str, start: str) -> str:
    p.weights["yes"] = "bool yes = {1}"
    p.weights["none"] = f"float[0,{WIDTH}] none = {{}}"
    rows = p.size + 3
    inputs = ", ".join(["int64 i", "bool go", *(f"{kind} {name}" for kind, name, _, _, _ in p.states)])
    outputs = ["bool", *(kind for kind, *_ in p.states), *(kind for kind, *_ in p.outputs)]
    values = [go_on, *(after for _, _, _, after, _ in p.states), *(name for _, name, _ in p.outputs)]
    returned = ", ".join(f"{kind} {name}" for kind, name in zip(_fresh(outputs), values, strict=True))
    body = f"b ({inputs}) => ({returned}) {{ {' '.join(p.inside)} }}"
    outer = ", ".join([*(end for *_, end in p.states), *(end for *_, end in p.outputs)])
    operands = ", ".join([limit, start, *(initial for _, _, initial, _, _ in p.states)])
    given = f"float[T,{WIDTH}] x, float[{rows},{WIDTH}] wide, float[{WIDTH},{rows}] turned, float[{rows},{WIDTH}] buffer"
    public = f"{given}, float[{WIDTH}] s, int64 m"
    results = ", ".join(f"{kind} {name}" for kind, name in p.results)
    nodes = f"{' '.join(p.before)} {outer} = Loop <body = {body}> ({operands}) {' '.join(p.after)}"
    return f"g ({public}) => ({results}) <{', '.join(p.weights.values())}> {{ {nodes} }}"


def _fresh(types: list[str]) -> list[str]:
    """The same types with other symbols: what a body returns need not have the size it was given."""
    return [kind.replace("[T", "[U") for kind in types]


def _feeds(p: _Parts, size: int) -> dict[str, Any]:
    numbers = np.random.default_rng(p.rng.randrange(2**31))
    rows = size + 3

    def some(*shape: int) -> np.ndarray:
        return numbers.standard_normal(shape).astype(np.float32)

    tensors = {"x": some(size, WIDTH), "wide": some(rows, WIDTH), "turned": some(WIDTH, rows), "buffer": some(rows, WIDTH)}
    return {**tensors, "s": some(WIDTH), "m": np.array(size, np.int64)}
