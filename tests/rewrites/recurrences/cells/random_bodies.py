"""Random steps of a cell as ONNX text, of states and an input with rows, in whatever shapes their features are moved to."""

import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["ROWS", "SHAPES", "Body", "random_body"]

ROWS = 2
SHAPES = {"h": (ROWS, 4), "c": (ROWS, 4), "x": (ROWS, 3)}
UNARY = (
    *("Tanh", "Sigmoid", "Relu", "Neg", "Softsign", "Softplus", "Identity", "LeakyRelu <alpha = 0.25>", "Elu <alpha = 0.5>"),
    *("HardSigmoid <alpha = 0.25, beta = 0.5>", "ThresholdedRelu <alpha = 0.5>", "HardSigmoid"),
)


@dataclass
class Body:
    """``nodes`` of the step, the ``shapes`` of all values, and the ``weights`` that are captured."""

    rng: random.Random
    shapes: dict[str, tuple[int, ...]] = field(default_factory=lambda: dict(SHAPES))
    nodes: list[str] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, text: str, shape: Sequence[int]) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(f"{name} = {text}")
        self.shapes[name] = tuple(shape)
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(np.array([self.rng.randint(-4, 4) for _ in range(int(np.prod(shape)))]).reshape(shape) / np.float32(4))

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array.astype(np.float32) if array.dtype.kind == "f" else array
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))


def _elementwise(b: Body, x: str) -> None:
    shape, op = (
        b.shapes[x],
        b.rng.choice(["Add", "Sub", "Mul", "Mul", "Add", "Div", "Clip", "Max", "Min", "Sum", "unary", "unary", "unary", "sigmoid"]),
    )
    if op == "unary":
        b.add(f"{b.rng.choice(UNARY)} ({x})", shape)
    elif op == "sigmoid":
        e = b.add(f"Exp ({x})", shape)
        one = b.add(f"Add ({e}, {b.constant(np.ones(()))})", shape)
        b.add(b.rng.choice([f"Reciprocal ({one})", f"Div ({x}, {one})"]), shape)
    elif op == "Clip":
        bounds = [b.constant(np.array(bound)) for bound in b.rng.choice([(-1.0, 1.0), (0.0, 1.5), (-0.5, 2.0)])]
        b.add(f"Clip ({x}, {bounds[0]}, {bounds[1]})", shape)
    elif op in ("Max", "Min"):
        b.add(f"{op} ({x}, {b.constant(np.full((1,) * b.rng.randint(0, len(shape)), b.rng.choice([0.0, 0.5])))})", shape)
    elif op == "Div":
        b.add(f"Div ({x}, {b.constant(np.full(b.rng.choice([(), shape[-1:]]), b.rng.choice([2.0, -0.5])))})", shape)
    elif op == "Sum":
        b.add(f"Sum ({x}, {x}, {b.rng.choice([name for name, other in b.shapes.items() if other == shape])})", shape)
    else:
        fitting = [name for name, other in b.shapes.items() if _broadcast(shape, other) is not None]
        sizes = [(), (1,), shape[-1:], (1, *shape[1:]), (shape[0], *(1 for _ in shape[1:])), shape, (1, *shape)]
        other = b.rng.choice(fitting) if b.rng.random() < 0.6 else b.weight(*b.rng.choice(sizes))
        wide = _broadcast(shape, b.shapes[other] if other in b.shapes else b.weights[other].shape)
        assert wide is not None
        b.add(f"{op} ({', '.join(b.rng.sample([x, other], 2))})", wide)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def _product(b: Body, x: str) -> None:
    shape, size = b.shapes[x], b.rng.choice([2, 3, 4])
    op = b.rng.choice(["MatMul", "MatMul", "Gemm", "Einsum", "left", "left Gemm"])
    if op == "MatMul":
        b.add(f"MatMul ({x}, {b.weight(shape[-1], size)})", (*shape[:-1], size))
    elif op == "Einsum" and len(shape) == 2:
        equation, weight = b.rng.choice(
            [("bi,oi->bo", (size, shape[1])), ("bi,io->bo", (shape[1], size)), ("bi,oij->boj", (size, shape[1], 2))]
        )
        b.add(
            f'Einsum <equation = "{equation}"> ({x}, {b.weight(*weight)})',
            (shape[0], *(size, 2)[: len(equation.split("->")[1]) - 1]),
        )
    elif op == "left" and len(shape) <= 2:
        b.add(f"MatMul ({b.weight(size, shape[0])}, {x})", (size, *shape[1:]))
    elif op.endswith("Gemm") and len(shape) == 2:
        attributes = ", ".join([f"alpha = {b.rng.choice(['1.0', '0.5'])}", f"beta = {b.rng.choice(['1.0', '-2.0', '0.0'])}"])
        if op == "Gemm":
            turned, result = b.rng.randint(0, 1), (shape[0], size)
            operands = f"{x}, {b.weight(*((size, shape[1]) if turned else (shape[1], size)))}"
            attributes += f", transB = {turned}"
        else:
            turned, rows = b.rng.randint(0, 1), b.rng.choice([0, 1])
            result = (size, shape[0] if rows else shape[1])
            operands = f"{b.weight(*((shape[rows], size) if turned else (size, shape[rows])))}, {x}"
            attributes += f", transA = {turned}, transB = {rows}"
        fitting = [name for name, other in b.shapes.items() if other == result]
        extra = b.rng.choice([None, b.weight(result[1]), b.weight(1, result[1]), b.weight(result[0], 1), *fitting])
        b.add(f"Gemm <{attributes}> ({operands}{'' if extra is None else f', {extra}'})", result)


def _movement(b: Body, x: str) -> None:
    shape, rank = b.shapes[x], len(b.shapes[x])
    axis = b.rng.randrange(rank)
    written = axis - b.rng.choice([0, rank])
    op = b.rng.choice(["Transpose", "Transpose", "Split", "Slice", "Gather", "Concat", "Concat", "Reshape", "Squeeze", "Unsqueeze"])
    if op == "Transpose":
        perm = b.rng.sample(range(rank), rank)
        b.add(f"Transpose <perm = [{', '.join(map(str, perm))}]> ({x})", [shape[i] for i in perm])
    elif op == "Split" and shape[axis] > 1:
        first = b.rng.randint(1, shape[axis] - 1)
        ends = [(*shape[:axis], size, *shape[axis + 1 :]) for size in (first, shape[axis] - first)]
        name = f"v{len(b.nodes)}"
        b.nodes.append(f"{name}, {name}b = Split <axis = {written}> ({x}, {b.ints(first, shape[axis] - first)})")
        b.shapes |= {name: ends[0], f"{name}b": ends[1]}
    elif op == "Slice":
        start, end, step = b.rng.choice([0, 0, 1, -2]), b.rng.choice([2, 99, -1, 2**31]), b.rng.choice([1, 1, 2])
        size = len(range(shape[axis])[start:end:step])
        if size:
            given = ", ".join(b.ints(number) for number in (start, end, written, step))
            b.add(f"Slice ({x}, {given})", (*shape[:axis], size, *shape[axis + 1 :]))
    elif op == "Gather":
        at = [b.rng.randint(-shape[axis], shape[axis] - 1) for _ in range(b.rng.randint(1, 5))]
        scalar = b.rng.random() < 0.2 and rank > 2
        index = b.constant(np.array(at[0])) if scalar else b.ints(*at)
        b.add(f"Gather <axis = {written}> ({x}, {index})", (*shape[:axis], *([] if scalar else [len(at)]), *shape[axis + 1 :]))
    elif op == "Concat":
        rest = (*shape[:axis], *shape[axis + 1 :])
        other = b.rng.choice([name for name, s in b.shapes.items() if len(s) == rank and (*s[:axis], *s[axis + 1 :]) == rest])
        b.add(
            f"Concat <axis = {written}> ({', '.join(b.rng.sample([x, other], 2))})",
            (*shape[:axis], shape[axis] + b.shapes[other][axis], *shape[axis + 1 :]),
        )
    elif op == "Reshape":
        width = int(np.prod(shape[1:]))
        wanted = b.rng.choice(
            [[0, -1], [-1, width], [shape[0], 1, -1], [-1, 1, width], [shape[0], -1, 2], [1, -1, width], [-1, 2], [0, 2, -1]]
        )
        sizes = [shape[i] if size == 0 and i < rank else size for i, size in enumerate(wanted)]
        with contextlib.suppress(ValueError):
            b.add(f"Reshape ({x}, {b.ints(*wanted)})", np.zeros(shape).reshape(sizes).shape)
    elif op == "Squeeze" and 1 in shape:
        axis = shape.index(1)
        b.add(f"Squeeze ({x}, {b.ints(axis - b.rng.choice([0, rank]))})", (*shape[:axis], *shape[axis + 1 :]))
    elif op == "Unsqueeze" and rank < 4:
        axis = b.rng.randint(-rank - 1, rank)
        b.add(f"Unsqueeze ({x}, {b.ints(axis)})", np.expand_dims(np.zeros(shape), axis).shape)


def _single_step(b: Body, x: str) -> None:
    """A recurrent node that does one step, as TorchScript writes a cell."""
    wide = [name for name, shape in b.shapes.items() if len(shape) == 2 and shape[0] == ROWS]
    kind, size, x = b.rng.choice(["RNN", "GRU", "LSTM"]), 4, b.rng.choice(wide)
    gates, states = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind], [name for name in wide if b.shapes[name] == (ROWS, size)]
    width, zero = b.shapes[x][1], b.ints(0)
    operands = [
        b.add(f"Unsqueeze ({x}, {zero})", (1, ROWS, width)),
        b.weight(1, gates * size, width),
        b.weight(1, gates * size, size),
    ]
    operands += [b.weight(1, 2 * gates * size) if b.rng.random() < 0.7 else "", ""]
    for _ in range(2 if kind == "LSTM" else 1):
        operands.append(b.add(f"Unsqueeze ({b.rng.choice(states)}, {zero})", (1, ROWS, size)))
    extras = [f"hidden_size = {size}"]
    if kind == "GRU":
        extras.append(f"linear_before_reset = {b.rng.randint(0, 1)}")
    if kind == "LSTM":
        operands.append(b.weight(1, 3 * size) if b.rng.random() < 0.5 else "")
        extras.append(f"input_forget = {b.rng.randint(0, 1)}")
    if b.rng.random() < 0.3:
        extras.append("clip = 0.75")
    if b.rng.random() < 0.4:
        names = [b.rng.choice(["Sigmoid", "Tanh", "Relu", "Softsign"]) for _ in range({"RNN": 1, "GRU": 2, "LSTM": 3}[kind])]
        extras.append("activations = [" + ", ".join(f'"{name}"' for name in names) + "]")
    name = f"v{len(b.nodes)}"
    b.nodes.append(f"{name}, {name}b = {kind} <{', '.join(extras)}> ({', '.join(operands)})")
    b.shapes |= {name: (1, 1, ROWS, size), f"{name}b": (1, ROWS, size)}


def _choice(b: Body, x: str) -> None:
    """A choice by the condition `k` of each row, as exporters write it."""
    shape, rank = b.shapes[x], len(b.shapes[x])
    if shape[0] != ROWS or rank != 2:
        return
    fitting = [name for name, other in b.shapes.items() if len(other) == 2 and _broadcast(shape, other) is not None]
    other = b.rng.choice(fitting) if b.rng.random() < 0.7 else b.weight(*b.rng.choice([(), (1,), (1, shape[1]), (shape[1],)]))
    wide = _broadcast(shape, b.shapes.get(other) or b.weights[other].shape)
    assert wide is not None
    how = b.rng.choice(["Where", "Where", "Where not", "product"])
    condition, wide = "k", _broadcast(wide, (ROWS, 1)) or wide
    if how == "Where not":
        condition = "n" + str(len(b.nodes))
        b.nodes.append(f"{condition} = Not (k)")
    if how != "product":
        b.add(f"Where ({condition}, {', '.join(b.rng.sample([x, other], 2))})", wide)
        return
    m = b.add("Cast <to = 1> (k)", (ROWS, 1))
    rest = b.add(f"Sub ({b.constant(np.ones(()))}, {m})", (ROWS, 1))
    one, two = (
        b.add(f"Mul ({m}, {x})", shape),
        b.add(f"Mul ({rest}, {other})", _broadcast((ROWS, 1), b.shapes.get(other) or b.weights[other].shape) or ()),
    )
    b.add(f"Add ({one}, {two})", wide)


def random_body(seed: int, length: int = 9, *, masked: bool = False) -> Body:
    """The step of `seed`: `length` operators or so, each of what was computed last or of anything; with choices where `masked`."""
    b = Body(random.Random(seed))
    for _ in range(length):
        names = list(b.shapes)
        x = b.rng.choice(names[-3:] if b.rng.random() < 0.6 else names)
        choices = [_choice] * 12 if masked else []
        b.rng.choice([*[_elementwise, _product, _movement, _movement] * 5, _single_step, *choices])(b, x)
    return b
