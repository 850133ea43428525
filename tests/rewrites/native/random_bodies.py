"""Random Scans out of the operators that plans have: shapes that broadcast, parts and joins, results in several places."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Dims", "RandomScan", "random_scan"]

Dims = list[int | str]
Drawn = tuple[str, Dims]

_UNARY = [
    "Tanh",
    "Sigmoid",
    "Abs",
    "Neg",
    "Relu",
    "Softsign",
    "Erf",
    "Floor",
    "Round",
    "Sign",
    "Softplus",
    "HardSigmoid",
    "Elu",
    "LeakyRelu",
    "Gelu",
    "Sin",
    "Cos",
    "Identity",
]
_BINARY = ["Add", "Sub", "Mul", "Add", "Mul", "Max", "Min"]
_COMPARE = ["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"]
_REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1"]


def random_scan(seed: int) -> onnx.ModelProto:
    """A Scan with up to two states, whose sizes are 2, 3, 4, 1 and often a free B."""
    return RandomScan(random.Random(seed)).model()


class RandomScan:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.dims: Dims = [2, 3, 4, 1, draw.choice([5, "B"])]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.states = [(f"s{i}", self.shape()) for i in range(draw.randint(0, 2))]
        alike = [dims for _, dims in self.states] * 2
        self.rows = [(f"x{i}", draw.choice([*alike, self.shape()])) for i in range(draw.randint(1, 2))]
        self.captured = [(f"c{i}", draw.choice([self.shape(), [4, 4], [3, 4], [20, 20]])) for i in range(draw.randint(0, 2))]
        self.pool: list[Drawn] = [*self.states, *self.rows, *self.captured]
        self.bools: list[Drawn] = []

    def kinds(self) -> list[Callable[[str, Dims], None]]:
        """What may be added to the body, given a value."""
        once: list[Callable[[str, Dims], None]] = [self.unary, self.moved, self.part, self.joined, self.indexed, self.product]
        return [*once, *[self.binary] * 3, self.chosen, self.recurrent]

    def shape(self) -> Dims:
        return [self.draw.choice(self.dims) for _ in range(self.draw.randint(0, 3))]

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def constant(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, f"k{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op: str, inputs: Sequence[str], dims: Dims, **attributes: object) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        (self.bools if op in (*_COMPARE, "Not", "And", "Or", "Xor") else self.pool).append((name, dims))

    def partner(self, dims: Dims, among: Sequence[Drawn]) -> tuple[str, Dims]:
        fitting = [(name, both) for name, own in among if (both := _broadcast(dims, own)) is not None]
        return self.draw.choice(fitting) if fitting else ("", dims)

    def model(self) -> onnx.ModelProto:
        kinds = self.kinds()
        for _ in range(self.draw.randint(1, 14)):
            self.draw.choice(kinds)(*self.draw.choice(self.pool[-4:] if self.draw.random() < 0.5 else self.pool))
        finals = [self.result(f"n{i}", [one for one in self.pool if one[1] == dims]) for i, (_, dims) in enumerate(self.states)]
        stacked = [self.result(f"y{i}", self.pool[-6:]) for i in range(self.draw.randint(0 if finals else 1, 3))]
        body = helper.make_graph(self.nodes, "body", _infos(self.states + self.rows), _infos(finals + stacked), self.constants)
        inputs = [*((f"S{name}", dims) for name, dims in self.states), *((f"X{name}", ["T", *dims]) for name, dims in self.rows)]
        outputs = [*((f"Z{name}", dims) for name, dims in finals), *((f"Y{name}", ["T", *dims]) for name, dims in stacked)]
        directions = {
            "scan_input_directions": [self.draw.randint(0, 1) for _ in self.rows],
            "scan_output_directions": [self.draw.randint(0, 1) for _ in stacked],
        }
        given, made = [name for name, _ in inputs], [name for name, _ in outputs]
        node = helper.make_node(
            "Scan",
            given,
            made,
            body=body,
            num_scan_inputs=len(self.rows),
            **{key: each for key, each in directions.items() if each},
        )
        graph = helper.make_graph([node], "g", _infos([*inputs, *self.captured]), _infos(outputs))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def result(self, name: str, among: Sequence[Drawn]) -> Drawn:
        read, dims = self.draw.choice(among)
        self.nodes.append(helper.make_node(self.draw.choice(["Tanh", "Identity"]), [read], [name]))
        self.pool.append((name, dims))
        return name, dims

    def unary(self, x: str, dims: Dims) -> None:
        self.add(self.draw.choice(_UNARY), [x], dims)

    def binary(self, x: str, dims: Dims) -> None:
        other, both = self.partner(dims, self.pool)
        self.add(self.draw.choice(_BINARY), [x, other] if self.draw.random() < 0.5 else [other, x], both)

    def chosen(self, x: str, dims: Dims) -> None:
        other, both = self.partner(dims, self.pool)
        self.add(self.draw.choice(_COMPARE), [x, other], both)
        condition, all_of = self.partner(both, self.bools)
        self.add("Not", [condition], next(own for name, own in self.bools if name == condition))
        self.add("Where", [condition, x, other], all_of)
        self.add("Cast", [self.bools[-1][0]], self.bools[-1][1], to=1)

    def moved(self, x: str, dims: Dims) -> None:
        order = self.draw.sample(range(len(dims)), len(dims))
        axis = self.draw.randint(0, len(dims))
        if dims and self.draw.random() < 0.5:
            self.add("Transpose", [x], [dims[axis] for axis in order], perm=order)
        elif self.draw.random() < 0.5 or "B" in dims:
            self.add("Unsqueeze", [x, self.ints(axis)], [*dims[:axis], 1, *dims[axis:]])
        else:
            count = int(np.prod([int(dim) for dim in dims]))
            self.add("Reshape", [x, self.ints(-1, count)], [1, count])

    def part(self, x: str, dims: Dims) -> None:
        axes = [axis for axis, dim in enumerate(dims) if isinstance(dim, int)]
        if axes:
            axis = self.draw.choice(axes)
            size = int(dims[axis])
            if self.draw.random() < 0.5:
                start = self.draw.randrange(size)
                self.add(
                    "Slice",
                    [x, self.ints(start), self.ints(size), self.ints(axis)],
                    [*dims[:axis], size - start, *dims[axis + 1 :]],
                )
            else:
                rows = [self.draw.randrange(size) for _ in range(self.draw.randint(1, 4))]
                self.add("Gather", [x, self.ints(*rows)], [*dims[:axis], len(rows), *dims[axis + 1 :]], axis=axis)

    def joined(self, x: str, dims: Dims) -> None:
        axes = [axis for axis, dim in enumerate(dims) if isinstance(dim, int)]
        if axes:
            axis = self.draw.choice(axes)
            others = [one for one in self.pool if _without(one[1], axis) == _without(dims, axis) and one[1][axis] != "B"]
            parts = [(x, dims), *(self.draw.choice(others) for _ in range(self.draw.randint(1, 2)))]
            size = sum(int(own[axis]) for _, own in parts)
            self.add("Concat", [name for name, _ in parts], [*dims[:axis], size, *dims[axis + 1 :]], axis=axis)

    def indexed(self, x: str, dims: Dims) -> None:
        if dims and self.draw.random() < 0.5:
            axis = self.draw.randrange(len(dims))
            self.add(self.draw.choice(["Softmax", "LogSoftmax"]), [x], dims, axis=axis)
        elif dims and dims[-1] != "B" and self.draw.random() < 0.3:
            scale = self.constant(np.linspace(0.5, 1.5, int(dims[-1]), dtype=np.float32))
            self.add("LayerNormalization", [x, scale], dims)
        elif dims:
            axes = self.draw.sample(range(len(dims)), self.draw.randint(1, len(dims)))
            self.add(
                self.draw.choice(_REDUCE), [x, self.ints(*axes)], [1 if axis in axes else dim for axis, dim in enumerate(dims)]
            )

    def product(self, x: str, dims: Dims) -> None:
        fitting = [(name, own) for name, own in self.pool if dims and len(own) == 2 and own[0] == dims[-1]]
        if fitting:
            other, own = self.draw.choice(fitting)
            self.add("MatMul", [x, other], [*dims[:-1], own[1]])

    def recurrent(self, x: str, dims: Dims) -> None:
        sizes = [dim for dim in dims[:-1] if dim != 1]
        if not dims or "B" in dims[-1:] or ("B" in sizes and len(sizes) > 1):
            return
        rows = sizes[0] if "B" in sizes else int(np.prod([int(size) for size in sizes]))
        self.add("Reshape", [x, self.ints(1, -1, int(dims[-1]))], [1, rows, dims[-1]])
        kind, gates = self.draw.choice([("RNN", 1), ("GRU", 3), ("LSTM", 4)])
        direction, ways = self.draw.choice([("forward", 1), ("reverse", 1), ("bidirectional", 2)])
        shapes = [(ways, 2 * gates, int(dims[-1])), (ways, 2 * gates, 2), (ways, 4 * gates)][: self.draw.randint(2, 3)]
        weights = [self.constant(np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)) for shape in shapes]
        self.add(kind, [self.nodes[-1].output[0], *weights], [1, ways, rows, 2], hidden_size=2, direction=direction)


def _infos(drawn: Sequence[Drawn]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in drawn]


def _without(dims: Dims, axis: int) -> Dims | None:
    return [*dims[:axis], *dims[axis + 1 :]] if axis < len(dims) else None


def _broadcast(one: Dims, other: Dims) -> Dims | None:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    pairs = list(zip(longer, [1] * (len(longer) - len(shorter)) + shorter, strict=True))
    return [b if a == 1 else a for a, b in pairs] if all(a == b or 1 in (a, b) for a, b in pairs) else None
