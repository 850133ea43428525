"""Random Scans whose values are of all types that plans have: counters, masks, choices, casts to and fro."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["typed_feeds", "typed_loop", "typed_scan"]

Drawn = tuple[str, int, list[int | str]]

_TYPES = [TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE]
_FLOATING = {TensorProto.FLOAT, TensorProto.DOUBLE}
_WHOLE = {TensorProto.INT32, TensorProto.INT64}
_UNARY = ["Neg", "Abs", "Sign", "Identity"]
_BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
_COMPARE = ["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"]
_LOGIC = ["And", "Or", "Xor", "Equal"]
_SIZES: list[int | str] = [1, 3, 4]


def typed_scan(seed: int) -> onnx.ModelProto:
    """A Scan with up to three states of any types."""
    return _Typed(random.Random(seed)).model()


def typed_loop(seed: int, *, growing: bool = False) -> onnx.ModelProto:
    """A Loop that stops after some steps, or when a state has become large, or at a limit; with states that grow if asked."""
    return _Typed(random.Random(seed), scans=False).loop(growing)


def typed_feeds(model: onnx.ModelProto, seed: int, **sizes: int) -> dict[str, np.ndarray]:
    """Small whole numbers and large ones, of all types, for the inputs of a model."""
    rng = np.random.default_rng(seed)
    given = {tensor.name for tensor in model.graph.initializer}
    return {
        info.name: np.asarray(_numbers(info.type.tensor_type, rng, sizes)) for info in model.graph.input if info.name not in given
    }


def _numbers(kind: onnx.TypeProto.Tensor, rng: np.random.Generator, sizes: dict[str, int]) -> np.ndarray:
    shape = [dim.dim_value or sizes[dim.dim_param] for dim in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if kind.elem_type == TensorProto.BOOL:
        return rng.random(shape) < 0.5
    small = rng.integers(-5, 6, shape)
    if kind.elem_type in _WHOLE:
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.2, wide, small).astype(dtype)
    return (small + rng.choice([0, 0.5, 0.25], shape)).astype(dtype)


class _Typed:
    def __init__(self, draw: random.Random, *, scans: bool = True) -> None:
        self.draw = draw
        self.dims = [3, 4, draw.choice([5, "B"])]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.states = [(f"s{i}", draw.choice(_TYPES), self.shape()) for i in range(draw.randint(0 if scans else 1, 3))]
        self.rows = [(f"x{i}", draw.choice(_TYPES), self.shape()) for i in range(draw.randint(1, 2) if scans else 0)]
        self.captured = [(f"c{i}", draw.choice(_TYPES), self.shape()) for i in range(draw.randint(0, 2))]
        self.pool: list[Drawn] = [*self.states, *self.rows, *self.captured]

    def shape(self) -> list[int | str]:
        full: list[int | str] = [self.draw.choice([size, size, 1]) for size in self.dims]
        return full[self.draw.randint(0, 3) :]

    def constant(self, kind: int) -> str:
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        number = self.draw.choice([0, 1, 2, -3, 7]) if kind != TensorProto.BOOL else self.draw.random() < 0.5
        return self.tensor(np.array(number, dtype))

    def tensor(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, f"k{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op: str, inputs: list[str], kind: int, dims: list[int | str], **attributes: object) -> Drawn:
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        self.pool.append((self.nodes[-1].output[0], kind, dims))
        return self.pool[-1]

    def pick(self, kind: int | None = None) -> Drawn:
        fitting = [one for one in self.pool if kind is None or one[1] == kind]
        if fitting:
            return self.draw.choice(fitting[-6:] if self.draw.random() < 0.6 else fitting)
        assert kind is not None
        return self.cast(self.pick(), kind)

    def cast(self, one: Drawn, kind: int) -> Drawn:
        return self.add("Cast", [one[0]], kind, one[2], to=kind)

    def step(self) -> None:
        x = self.pick()
        name, kind, dims = x
        y = self.pick(kind)
        both = _joined(dims, y[2])
        chance = self.draw.random()
        if chance < 0.15:
            self.cast(x, self.draw.choice(_TYPES))
        elif chance < 0.3:
            self.moved(x)
        elif kind == TensorProto.BOOL:
            if chance < 0.5:
                self.add("Not", [name], kind, dims)
            elif chance < 0.7:
                one = self.pick(self.draw.choice(_TYPES[:4]))
                other = self.pick(one[1])
                self.add("Where", [name, one[0], other[0]], one[1], _joined(dims, _joined(one[2], other[2])))
            else:
                self.add(self.draw.choice(_LOGIC), [name, y[0]], kind, both)
        elif chance < 0.4:
            self.add(self.draw.choice(_UNARY), [name], kind, dims)
        elif chance < 0.5 and dims:
            op = self.draw.choice(["ReduceSum", "ReduceMax", "ReduceMin"])
            if op == "ReduceSum" and kind in _WHOLE:
                name, _, dims = self.cast(self.pick(TensorProto.BOOL), kind)
            if not dims:
                return
            self.add(op, [name, self.tensor(np.array([-1], np.int64))], kind, [*dims[:-1], 1])
        elif chance < 0.65:
            self.add(self.draw.choice(_COMPARE), [name, y[0]], TensorProto.BOOL, both)
        elif chance < 0.75:
            op = self.draw.choice(["Add", "Mul", "Div", "Mod"] if kind in _WHOLE else ["Add", "Mul", "Div", "Sub"])
            divisor = self.tensor(np.array(self.draw.choice([1, 2, -3, 7]), helper.tensor_dtype_to_np_dtype(kind)))
            self.add(op, [name, divisor], kind, dims)
        elif chance < 0.8:
            self.add("Clip", [name, self.constant(kind)], kind, dims)
        else:
            self.add(self.draw.choice(_BINARY), [name, y[0]], kind, both)

    def moved(self, x: Drawn) -> None:
        name, kind, dims = x
        if len(dims) > 1 and self.draw.random() < 0.5:
            self.add("Transpose", [name], kind, dims[::-1], perm=list(range(len(dims)))[::-1])
            self.add("Transpose", [self.pool.pop()[0]], kind, dims, perm=list(range(len(dims)))[::-1])
        elif dims and dims[-1] != "B":
            self.add("Concat", [name, self.pick_like(x)[0]], kind, [*dims[:-1], 2 * int(dims[-1])], axis=-1)
            starts = [self.tensor(np.array([each], np.int64)) for each in (1, int(dims[-1]) + 1, -1)]
            self.add("Slice", [self.pool.pop()[0], *starts], kind, dims)
        else:
            self.add("Identity", [name], kind, dims)

    def pick_like(self, x: Drawn) -> Drawn:
        return self.draw.choice([one for one in self.pool if one[1:] == x[1:]])

    def result(self, name: str, kind: int, dims: list[int | str] | None) -> Drawn:
        fitting = [one for one in self.pool if one[1] == kind and dims in (None, one[2])]
        one = fitting[-1 - int(self.draw.random() * self.draw.random() * len(fitting))]
        self.nodes.append(helper.make_node("Identity", [one[0]], [name]))
        return name, kind, one[2]

    def grow(self, index: int) -> tuple[Drawn, Drawn] | None:
        """Add a state that grows by a value of the body, and a value that reads all of it. Return the state before and after."""
        name, kind, dims = self.pick()
        axes = [axis for axis, size in enumerate(dims) if size != "B"]
        if not axes:
            return None
        axis = self.draw.choice(axes)
        state, joined = f"g{index}", f"j{index}"
        kept = state
        others = [other for other in axes if other != axis]
        order = self.draw.choice(["", "", "before", "after"]) if others else ""
        other = self.draw.choice(others) if others else 0
        chosen = self.tensor(np.array([self.draw.randrange(int(dims[other])) for _ in range(int(dims[other]))])) if order else ""
        if order == "before":
            kept = f"p{index}"
            self.nodes.append(helper.make_node("Gather", [state, chosen], [kept], axis=other))
        self.nodes.append(helper.make_node("Concat", [kept, name], [joined], axis=axis))
        final = helper.make_node("Gather", [joined, chosen], [f"m{index}"], axis=other)
        self.nodes.append(final if order == "after" else helper.make_node("Identity", [joined], [f"m{index}"]))
        number = self.draw.choice([TensorProto.FLOAT, TensorProto.INT64])
        whole = self.add("Cast", [self.draw.choice([joined, f"m{index}"])], number, dims, to=number)[0]
        self.pool.pop()
        op = self.draw.choice(["ReduceMax", "ReduceMin"])
        self.add(op, [whole, self.tensor(np.array([axis], np.int64))], number, [*dims[:axis], 1, *dims[axis + 1 :]])
        before, after = ([*dims[:axis], size, *dims[axis + 1 :]] for size in (f"L{index}", f"E{index}"))
        return (state, kind, before), (f"m{index}", kind, after)

    def loop(self, growing: bool) -> onnx.ModelProto:
        self.pool.append(("i", TensorProto.INT64, []))
        for _ in range(self.draw.randint(2, 10)):
            self.step()
        grown = [pair for index in range(self.draw.randint(1, 2) if growing else 0) if (pair := self.grow(index)) is not None]
        for _ in grown:
            self.step()
        _, kind, dims = self.pick(self.draw.choice([TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64]))
        name = self.pool[-1][0] if self.pool[-1][1:] == (kind, dims) else self.pick(kind)[0]
        self.add("ReduceMax", [name], kind, [], keepdims=0)
        self.add("Less", [self.pool[-1][0], self.tensor(np.array(50, helper.tensor_dtype_to_np_dtype(kind)))], TensorProto.BOOL, [])
        small = self.pool[-1][0]
        early = self.draw.choice([1, 2, 5, 70])
        self.add("Less", ["i", self.tensor(np.array(early - 1))], TensorProto.BOOL, [])
        self.nodes.append(helper.make_node(self.draw.choice(["And", "And", "Identity"]), [self.pool[-1][0], small], ["on"]))
        if self.nodes[-1].op_type == "Identity":
            del self.nodes[-1].input[1]
        finals = [self.result(f"n{i}", kind, dims) for i, (_, kind, dims) in enumerate(self.states)]
        finals += [after for _, after in grown]
        self.states += [before for before, _ in grown]
        stacked = [self.result(f"y{i}", self.pick()[1], None) for i in range(self.draw.randint(0, 2))]
        scalars: list[Drawn] = [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, [])]
        body = helper.make_graph(
            self.nodes,
            "body",
            _infos([*scalars, *self.states]),
            _infos([("on", TensorProto.BOOL, []), *finals, *stacked]),
            self.constants,
        )
        limit, condition = self.draw.choice(["M", "M", ""]), self.draw.choice(["C", ""])
        inputs = [("S" + name, *rest) for name, *rest in self.states]
        outputs = [*(("Z" + name, *rest) for name, *rest in finals), *(_scanned("Y", one) for one in stacked)]
        given = [limit, condition, *(name for name, *_ in inputs)]
        node = helper.make_node("Loop", given, [name for name, *_ in outputs], body=body)
        around: list[Drawn] = [("M", TensorProto.INT64, []), ("C", TensorProto.BOOL, [])]
        public = [*(one for one in around if one[0] in given), *inputs, *self.captured]
        graph = helper.make_graph([node], "g", _infos(public), _infos(outputs))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def model(self) -> onnx.ModelProto:
        for _ in range(self.draw.randint(2, 14)):
            self.step()
        finals = [self.result(f"n{i}", kind, dims) for i, (_, kind, dims) in enumerate(self.states)]
        kinds = [self.pick()[1] for _ in range(self.draw.randint(0 if finals else 1, 3))]
        stacked = [self.result(f"y{i}", kind, None) for i, kind in enumerate(kinds)]
        body = helper.make_graph(self.nodes, "body", _infos(self.states + self.rows), _infos(finals + stacked), self.constants)
        inputs = [*(("S" + name, *rest) for name, *rest in self.states), *(_scanned("X", one) for one in self.rows)]
        outputs = [*(("Z" + name, *rest) for name, *rest in finals), *(_scanned("Y", one) for one in stacked)]
        node = helper.make_node(
            "Scan",
            [name for name, *_ in inputs],
            [name for name, *_ in outputs],
            body=body,
            num_scan_inputs=len(self.rows),
            scan_input_directions=[self.draw.randint(0, 1) for _ in self.rows],
            **({"scan_output_directions": [self.draw.randint(0, 1) for _ in stacked]} if stacked else {}),
        )
        graph = helper.make_graph([node], "g", _infos([*inputs, *self.captured]), _infos(outputs))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _scanned(letter: str, one: Drawn) -> Drawn:
    name, kind, dims = one
    return letter + name, kind, ["T", *dims]


def _infos(drawn: list[Drawn]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in drawn]


def _joined(one: list[int | str], other: list[int | str]) -> list[int | str]:
    """The shape of both together: trailing axes are of one size or 1 by the way they are drawn."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    pairs = zip(longer, [1] * (len(longer) - len(shorter)) + shorter, strict=True)
    return [b if a == 1 else a for a, b in pairs]
