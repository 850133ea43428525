"""Random integer programs in the body of a Loop, every value of which the Loop also stacks, and what each is in each step."""

import random
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, Dim
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.analysis.induction.integers import Integers
from rewrites.graph.context import Context
from rewrites.loops import LoopView, view
from tests.rewrites.apply import one_loop, prepared, read
from tests.support.runtime import ort_run

__all__ = ["Program", "affine_in", "random_program"]

KINDS = {"int32": 6, "int64": 7, "float": 1, "float16": 10}
GIVEN = "float[B,3,T] x, int64 m, int64[1] n"
OUTSIDE = """sx = Shape (x)  sy = Shape <start = 1> (x)  all_x = Size (x)  t = Gather (sx, k2)  b = Gather (sx, k0)  half = Div (m, k2)
    t1 = Sub (t, k1)  up_to_t = Range (k0, t, k1)  odd = Range (k1, k9, k2)  nn = Neg (n)"""
KNOWN_OUTSIDE = {
    "sx": (3,),
    "sy": (2,),
    "all_x": (),
    "t": (),
    "b": (),
    "half": (),
    "t1": (),
    "odd": (4,),
    "n": (1,),
    "nn": (1,),
    "m": (),
}


@dataclass
class Program:
    """``inside`` names what the Loop stacks: the Loop read, the integers, and for each name the array of each step."""

    loop: LoopView
    ctx: Context
    integers: Integers
    steps: dict[str, np.ndarray]
    outside: dict[str, np.ndarray]
    x: np.ndarray
    text: str


@dataclass
class _Drawn:
    rng: random.Random
    known: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    weights: dict[str, str] = field(default_factory=dict)

    def add(self, text: str, kind: str, shape: tuple[int, ...]) -> str:
        name = f"v{len(self.inside)}"
        self.inside.append(f"{name} = {text}")
        self.known[name] = (kind, shape)
        return name

    def number(self, kind: str, *numbers: int, rank: int = 1) -> str:
        name = f"c{len(self.weights)}"
        size = f"[{len(numbers)}]" if rank else ""
        self.weights[name] = f"{kind}{size} {name} = {{{', '.join(map(str, numbers))}}}"
        return name

    def one(self, *kinds: str) -> str | None:
        fitting = [name for name, (kind, _) in self.known.items() if kind in kinds]
        return self.rng.choice(fitting[-6:] if self.rng.random() < 0.6 else fitting) if fitting else None


def _joinable(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def _calculation(d: _Drawn, kinds: tuple[str, ...] = tuple(KINDS)) -> None:
    one = d.one(*kinds)
    if one is None:
        return
    kind, shape = d.known[one]
    fitting = [name for name, (other, size) in d.known.items() if other == kind and _joinable(shape, size) is not None]
    other = d.rng.choice(fitting)
    if d.rng.random() < 0.5:
        other = d.number(kind, d.rng.choice([-3, -1, 0, 1, 2, 5]), rank=d.rng.randint(0, 1))
        d.known[other] = (kind, (1,) if "[" in d.weights[other] else ())
    both = _joinable(shape, d.known[other][1])
    assert both is not None
    op = d.rng.choice(["Add", "Sub", "Mul", "Min", "Max", "Neg", "Where", "Clip", "Div", "Mod", "Compare"])
    sides = [one, other] if d.rng.random() < 0.5 else [other, one]
    if kind == "float16" and op in ("Where", "Div", "Mod"):
        op = "Add"
    if op in ("Div", "Mod"):
        fmod = "<fmod = 1>" if op == "Mod" and kind.startswith("float") else ""
        d.add(f"{op} {fmod} ({one}, {d.number(kind, d.rng.choice([-2, 2, 3]), rank=0)})", kind, shape)
    elif op == "Neg":
        d.add(f"Neg ({one})", kind, shape)
    elif op == "Clip":
        low, high = d.rng.choice([-99, -9, 0]), d.rng.choice([4, 99, 99])
        bounds = [d.number(kind, low, rank=0) if d.rng.random() < 0.7 else "", d.number(kind, high, rank=0)]
        d.add(f"Clip ({one}, {', '.join(bounds)})", kind, shape)
    elif op == "Where":
        compare = d.rng.choice(["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
        condition = d.add(f"{compare} ({sides[0]}, {sides[1]})", "bool", both)
        condition = d.add(f"Not ({condition})", "bool", both) if d.rng.random() < 0.3 else condition
        d.add(f"Where ({condition}, {one}, {other})", kind, both)
    elif op == "Compare":
        d.add(f"{d.rng.choice(['Less', 'GreaterOrEqual', 'Equal'])} ({sides[0]}, {sides[1]})", "bool", both)
    else:
        d.add(f"{op} ({sides[0]}, {sides[1]})", kind, both)


def _movement(d: _Drawn) -> None:
    one = d.one("int32", "int64", "float")
    if one is None:
        return
    kind, shape = d.known[one]
    rank = len(shape)
    op = d.rng.choice(
        ["Identity", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Transpose", "Slice", "Concat", "Gather", "Cast", "Table"]
    )
    if op == "Identity":
        d.add(f"Identity ({one})", kind, shape)
    elif op == "Cast":
        to = d.rng.choice(list(KINDS))
        d.add(f"Cast <to = {KINDS[to]}> ({one})", to, shape)
    elif op == "Unsqueeze" and rank < 3:
        axis = d.rng.randint(-rank - 1, rank)
        d.add(f"Unsqueeze ({one}, {d.number('int64', axis)})", kind, np.expand_dims(np.zeros(shape), axis).shape)
    elif op == "Squeeze" and 1 in shape:
        axis = shape.index(1) - d.rng.choice([0, rank])
        d.add(f"Squeeze ({one}, {d.number('int64', axis)})", kind, np.squeeze(np.zeros(shape), axis).shape)
    elif op == "Reshape" and rank:
        wanted = d.rng.choice([[-1], [1, -1], [0, -1], [-1, 1]])
        after = np.zeros(shape).reshape([shape[i] if dim == 0 else dim for i, dim in enumerate(wanted)])
        d.add(f"Reshape ({one}, {d.number('int64', *wanted)})", kind, after.shape)
    elif op == "Expand" and rank < 3:
        wanted = [d.rng.choice([1, 2]), *shape]
        d.add(f"Expand ({one}, {d.number('int64', *wanted)})", kind, tuple(wanted))
    elif op == "Transpose":
        perm = f"<perm = [{', '.join(map(str, d.rng.sample(range(rank), rank)))}]>" if rank and d.rng.random() < 0.5 else ""
        axes = [int(a) for a in perm[9:-2].split(",")] if perm else list(range(rank))[::-1]
        d.add(f"Transpose {perm} ({one})", kind, tuple(shape[axis] for axis in axes))
    elif op == "Slice" and rank and max(shape) > 1:
        axis = shape.index(max(shape))
        start, end, step = d.rng.choice([0, 1, -1, -2]), d.rng.choice([2, 99, -1, 2**62]), d.rng.choice([1, 1, 2])
        size = len(range(shape[axis])[start:end:step])
        if size:
            numbers = ", ".join(d.number("int64", n) for n in (start, end, axis, step))
            d.add(f"Slice ({one}, {numbers})", kind, (*shape[:axis], size, *shape[axis + 1 :]))
    elif op == "Concat" and rank:
        axis = d.rng.randint(-rank, rank - 1)
        rest = [*shape[: axis % rank], *shape[axis % rank + 1 :]]
        other = d.rng.choice(
            [
                name
                for name, (k, s) in d.known.items()
                if k == kind and len(s) == rank and [*s[: axis % rank], *s[axis % rank + 1 :]] == rest
            ]
        )
        d.add(
            f"Concat <axis = {axis}> ({one}, {other})",
            kind,
            (*shape[: axis % rank], shape[axis % rank] + d.known[other][1][axis % rank], *shape[axis % rank + 1 :]),
        )
    elif op == "Gather" and rank and shape[0]:
        at = [d.rng.randint(-shape[0], shape[0] - 1) for _ in range(d.rng.randint(1, 3))]
        d.add(f"Gather ({one}, {d.number('int64', *at)})", kind, (len(at), *shape[1:]))
    elif op == "Table":
        place = d.one("int64", "int32")
        if place is not None:
            table = d.rng.choice(["up_to_t", "odd", d.number("int64", 5, 3, 1, -1), d.number("int64", 0, 1, 5)])
            d.add(f"Gather ({table}, {place})", "int64", d.known[place][1])


def random_program(seed: int, length: int = 10) -> Program | None:
    """The program of `seed`, run; None where onnxruntime refuses it or an index is out of range."""
    d = _Drawn(random.Random(seed))
    d.known |= {"i": ("int64", ()), "e": ("int64", ()), "w": ("int32", (1,)), **{k: ("int64", s) for k, s in KNOWN_OUTSIDE.items()}}
    step = d.rng.choice([1, 2, -1])
    for _ in range(length):
        d.rng.choice([_calculation, _calculation, _movement])(d)
    stacked = [name for name in d.known if name[0] == "v"]
    limit = d.rng.choice(["k5", "t", "t1", "m"])
    weights = [f"int64 k{n} = {{{n}}}" for n in (0, 1, 2, 5, 9)] + [
        f"int64 step = {{{step}}}",
        "int32[1] three = {3}",
        *d.weights.values(),
    ]
    states = "e1 = Add (e, step) w1 = Sub (w, three)"
    outputs = ", ".join(["bool go1", "int64 e1", "int32[1] w1", *(f"{d.known[name][0]}[] {name}o" for name in stacked)])
    copies = " ".join(f"{name}o = Identity ({name})" for name in stacked)
    outside = ["all_x", "t", "b", "half", "t1", "nn", "up_to_t"]
    results = [*(f"{d.known[name][0]}[] {name}s" for name in stacked), *(f"int64[] {name}o" for name in outside)]
    text = f"""g ({GIVEN}) => ({", ".join(results)}) <{", ".join(weights)}> {{ {OUTSIDE}
        {" ".join(f"{name}o = Identity ({name})" for name in outside)}
        ee, we, {", ".join(f"{name}s" for name in stacked)} = Loop <body = body (int64 i, bool go, int64 e, int32[1] w) => ({outputs}) {{
            go1 = Identity (go) {states} {" ".join(d.inside)} {copies} }}> ({limit}, , m, three) }}"""
    x = np.zeros((d.rng.randint(1, 3), 3, d.rng.randint(2, 6)), np.float32)
    feeds = {"x": x, "m": np.array(d.rng.randint(1, 7)), "n": np.array([d.rng.randint(-3, 3)])}
    ctx = prepared(text, check=False)
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, LoopView)
    try:
        found = ort_run(read(text, check=False), feeds, optimised=False)
    except Exception:
        return None
    steps = dict(zip(stacked, found[: len(stacked)], strict=True))
    out = {**feeds, **dict(zip(outside, found[len(stacked) :], strict=True))}
    return Program(loop, ctx, integers_of(loop, ctx.opset, trip_count(loop, ctx.opset)), steps, out, x, text)


def affine_in(program: Program, found: AffineExpression, step: int) -> np.ndarray:
    """What an expression is in one step."""
    total = found.const.copy()
    for symbol, factors in found.terms.items():
        if symbol == STEP:
            number = step
        elif isinstance(symbol, Dim):
            number = program.x.shape[symbol.axis]
        else:
            assert isinstance(symbol, ir.Value)
            number = int(program.outside[symbol.name or ""].item())
        total = total + factors * number
    return np.asarray(total)
