"""An interpreter of loop plans in numpy, step by step as the format specifies. An access outside a value fails."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rewrites.native.operations import BOOL, NARROW, NUMPY, Op, bytes_of, fits, has_kernel
from rewrites.native.plan import Form, InputKind, Instruction, Plan, PlanOperand, Size, Storage, ValueKind

__all__ = ["run_plan"]

Array = npt.NDArray[Any]
_MOST_STEPS = 2000
"""Of a loop with a condition."""


def run_plan(plan: Plan, inputs: Sequence[npt.NDArray[Any]]) -> list[Array]:
    """Return the final states and the stacked outputs of a plan."""
    with np.errstate(all="ignore"):
        return _Run(plan, inputs).outputs()


class _Run:
    def __init__(self, plan: Plan, inputs: Sequence[npt.NDArray[Any]]) -> None:
        self.plan = plan
        assert len(inputs) == len(plan.inputs)
        assert all(array.dtype == {**NUMPY, **NARROW}[each.dtype] for array, each in zip(inputs, plan.inputs, strict=True))
        self.given_shapes = [array.shape for array in inputs]
        self.symbols: list[int] = []
        self.regions: list[Array] = []
        self.take_sizes(0)
        kinds = [each.kind for each in plan.inputs]
        assert sorted(kinds, key=[0, 1, 2, 1].__getitem__) == kinds
        assert kinds.count(InputKind.INITIAL) == len(plan.states)
        steps = {array.shape[0] for array, kind in zip(inputs, kinds, strict=True) if kind == InputKind.SCANNED}
        if plan.form == Form.LOOP:
            steps = {min(max(int(inputs[len(plan.states)].reshape(())), 0), _MOST_STEPS)}
            assert (plan.inputs[0].dtype, inputs[0].size, kinds[len(plan.states)]) == (BOOL, 1, InputKind.LIMIT)
        assert len(steps) == 1
        self.steps = steps.pop()
        for array, each in zip(inputs, plan.inputs, strict=True):
            rows = (self.steps,) if each.kind == InputKind.SCANNED else ()
            assert array.shape == (*rows, *map(self.number, each.dims))
        self.inputs = [np.ascontiguousarray(array).reshape(-1) for array in inputs]
        self.constants = np.frombuffer(plan.constants, np.uint8)
        self.stacked = [np.full(self.steps * self.elements(each.dims), _nothing(each.dtype)) for each in plan.outputs]
        self.step = 0

    def take_sizes(self, steps: int) -> None:
        """Set the symbols to their sizes after this many steps, and make room for what has grown."""
        growing = {index: each for index, each in enumerate(self.plan.states) if each.storage >= Storage.GROWS}
        self.symbols = []
        for symbol in self.plan.symbols:
            axis, state = max(symbol.axis, -1 - symbol.axis), growing.get(symbol.input)
            rows = state.offset.coefficient if state is not None and state.axis == axis else 0
            assert symbol.axis >= 0 or rows
            self.symbols.append(self.given_shapes[symbol.input][axis] + rows * (steps + (symbol.axis < 0)))
        for index, size in enumerate(self.plan.regions):
            kept = self.regions[index] if index < len(self.regions) else np.empty(0, np.uint8)
            room = np.full(max(self.number(size), kept.size // 4), np.nan, np.float32).view(np.uint8)
            room[: kept.size] = kept
            self.regions[index : index + 1] = [room]

    def number(self, size: Size) -> int:
        exponents = size.exponents or (0,) * len(self.symbols)
        return size.coefficient * math.prod(symbol**power for symbol, power in zip(self.symbols, exponents, strict=True))

    def elements(self, dims: Sequence[Size]) -> int:
        return math.prod(map(self.number, dims))

    def outputs(self) -> list[Array]:
        for index, state in enumerate(self.plan.states):
            if state.storage >= Storage.GROWS:
                rows = self.inputs[index].reshape(self.given_shapes[index])
                self.state(index, new=False)[:] = np.moveaxis(rows, state.axis, 0).reshape(-1)
            elif state.storage != Storage.OUTPUT_ROWS:
                self.state(index, new=False)[:] = self.inputs[index]
        for start in range(0, self.steps, self.plan.block):
            if self.plan.form == Form.LOOP:
                self.step = start
                if not self.state(0, new=False).all():
                    self.steps = start
                    break
            block = range(start, min(start + self.plan.block, self.steps))
            for phase in self.plan.phases:
                instructions = phase.of(self.plan.instructions)
                assert len(instructions) == phase.count
                if phase.stepwise:
                    order = [(step, each) for step in block for each in instructions]
                else:
                    order = [(step, each) for each in instructions for step in block]
                for self.step, instruction in order:
                    self.do(instruction)
            self.take_sizes(block.stop)
        self.step = self.steps
        finals = [self.final(index) for index in range(len(self.plan.states))]
        shapes = [(self.steps, *map(self.number, each.dims)) for each in self.plan.outputs]
        rows = [rows[: math.prod(shape)].reshape(shape) for rows, shape in zip(self.stacked, shapes, strict=True)]
        return [*finals[self.plan.form == Form.LOOP :], *rows]

    def stacked_row(self, output: int, step: int) -> Array:
        each = self.plan.outputs[output]
        count = self.elements(each.dims)
        row = self.steps - 1 - step if each.backwards else step
        assert 0 <= row < self.steps
        return self.stacked[output][row * count : (row + 1) * count]

    def final(self, index: int) -> Array:
        state, rows = self.plan.states[index], self.state(index, new=False).copy()
        shape = [*map(self.number, self.plan.inputs[index].dims)]
        if state.storage < Storage.GROWS:
            return rows.reshape(shape)
        return np.moveaxis(rows.reshape(shape.pop(state.axis), *shape), 0, state.axis)

    def state(self, index: int, *, new: bool) -> Array:
        state, count = self.plan.states[index], self.inputs[index].size
        if state.storage >= Storage.GROWS:
            dims = [*map(self.number, self.plan.inputs[index].dims)]
            dims[state.axis] += state.offset.coefficient if new else 0
            second = state.storage == Storage.GROWS_IN_TWO and (self.step % 2 == 1) != new
            return _typed(self.regions[state.region_or_output + second], self.plan.inputs[index].dtype, 0, math.prod(dims))
        if state.storage == Storage.OUTPUT_ROWS:
            if new:
                return self.stacked_row(state.region_or_output, self.step)
            return self.stacked_row(state.region_or_output, self.step - 1) if self.step else self.inputs[index]
        dtype = self.plan.inputs[index].dtype
        offset = self.number(state.offset)
        if state.storage == Storage.TWO_ROWS and (self.step % 2 == 1) != new:
            offset += count
        return _typed(self.regions[state.region_or_output], dtype, offset, count)

    def value(self, index: int) -> Array:
        """Return the elements of a value in this step."""
        value = self.plan.values[index]
        count, offset = self.number(value.count), self.number(value.offset)
        match value.kind:
            case ValueKind.SCANNED:
                assert self.plan.inputs[value.index].kind == InputKind.SCANNED
                size = self.elements(self.plan.inputs[value.index].dims)
                row = self.steps - 1 - self.step if self.plan.inputs[value.index].backwards else self.step
                storage = self.inputs[value.index][row * size : (row + 1) * size]
            case ValueKind.CAPTURED:
                assert self.plan.inputs[value.index].kind == InputKind.CAPTURED
                storage = self.inputs[value.index]
            case ValueKind.CONSTANT:
                storage = _typed(self.constants, value.dtype, offset, count)
                offset = 0
            case ValueKind.TEMPORARY | ValueKind.ROWS:
                if value.kind == ValueKind.ROWS:
                    assert 0 <= offset + self.plan.block * count <= self.regions[value.index].size // bytes_of(value.dtype)
                    offset += self.step % self.plan.block * count
                storage = _typed(self.regions[value.index], value.dtype, offset, count)
                offset = 0
            case ValueKind.STEP_NUMBER:
                assert self.plan.form == Form.LOOP
                storage = np.array([self.step], np.int64)
            case ValueKind.STACKED:
                storage = self.stacked_row(value.index, self.step)
            case ValueKind.OLD | ValueKind.NEW:
                storage = self.state(value.index, new=value.kind == ValueKind.NEW)
            case ValueKind.PACK:
                pack = self.plan.packs[value.index]
                assert self.plan.inputs[pack.input].kind == InputKind.CAPTURED
                wide = (self.number(pack.k), self.number(pack.n))
                strides = (self.number(pack.stride_k), self.number(pack.stride_n))
                storage = _view(self.inputs[pack.input], self.number(pack.offset), wide, strides).reshape(-1).astype(np.float32)
        assert (offset, count, NUMPY[value.dtype]) == (0, storage.size, storage.dtype)
        return storage

    def operand(self, operand: PlanOperand, dims: Sequence[int]) -> Array:
        return _view(self.value(operand.value), self.number(operand.offset), dims, [*map(self.number, operand.strides)])

    def do(self, instruction: Instruction) -> None:
        dims = [self.number(size) for size in instruction.dims]
        m, n, k = (self.number(size) for size in instruction.matrix)
        if instruction.op in (Op.GATHER, Op.SCATTER, Op.LOCATE):
            self.find(instruction, dims, m, n)
            return
        shapes: list[list[int]] = [dims] * len(instruction.operands)
        if instruction.op in (Op.GEMM, Op.MATMUL):
            shapes = [[*dims[:2], *matrix] for matrix in ([m, n], [m, k], [k, n], [m, n])]
        if Op.SUM <= instruction.op <= Op.DOT or instruction.op in _FOUND:
            shapes = [[*dims[:3], m if instruction.op == Op.TOP_K else 1], *shapes[1:]]
        given = instruction.operands
        arrays = [
            None if operand is None else self.matrix(operand) if self.is_pack(operand) else self.operand(operand, shape)
            for operand, shape in zip(given, shapes[: len(given)], strict=True)
        ]
        _check_strides(instruction, dims[3], [None if each is None else self.number(each.strides[3]) for each in given])
        types = {self.plan.values[each.value].dtype for each in given if each is not None}
        assert all(has_kernel(instruction.op, dtype) for dtype in types)
        target, *others = (self.plan.values[each.value].dtype for each in given if each is not None)
        assert fits(instruction.op, target, others)
        destination, *sources = arrays
        assert destination is not None
        assert given[0] is not None
        assert self.plan.values[given[0].value].kind in _WRITABLE
        for source in sources:
            assert source is None or _same(destination, source) or not np.shares_memory(destination, source)
        result = np.asarray(_result(instruction, sources))
        if instruction.op == Op.CAST:
            result = result != 0 if destination.dtype == np.bool_ else result.astype(destination.dtype)
        if Op.SUM <= instruction.op <= Op.DOT or instruction.op in (Op.ARG_MAX, Op.ARG_MIN):
            destination[..., 0] = result
        else:
            destination[...] = result

    def find(self, instruction: Instruction, dims: Sequence[int], axis: int, apart: int) -> None:
        """Read or write elements at indices of this step, or find the positions of elements."""
        target, source, *more = (operand for operand in instruction.operands if operand is not None)
        which = source if instruction.op == Op.LOCATE else more[0]
        if 0 in dims and instruction.op == Op.GATHER and instruction.immediates[0] == 1:
            return
        looked_at = [1 if not dim and not self.number(stride) else dim for dim, stride in zip(dims, which.strides, strict=True)]
        indices = self.operand(which, looked_at)
        if ((indices < -axis) | (indices >= axis)).any():
            raise IndexError(f"{indices} of {axis}")
        if 0 in dims:
            return
        along = np.where(indices < 0, indices + axis, indices) * apart
        if instruction.op == Op.LOCATE:
            self.operand(target, dims)[...] = along + (self.operand(more[0], dims) if more else 0)
            return
        found = source if instruction.op == Op.GATHER else target
        for end in (0, (axis - 1) * apart):
            _view(self.value(found.value), self.number(found.offset) + end, dims, [*map(self.number, found.strides)])
        for place in np.ndindex(*dims):
            to, start = (self.number(each.offset) + self.walked(each, place) for each in (target, source))
            to, start = (to, start + along[place]) if found is source else (to + along[place], start)
            into, number = self.value(target.value), self.value(source.value)[start]
            into[to] = _MEETINGS.get(instruction.immediates[0], _put)(into[to], number) if found is target else number

    def walked(self, operand: PlanOperand, place: Sequence[int]) -> int:
        return sum(index * self.number(stride) for index, stride in zip(place, operand.strides, strict=True))

    def is_pack(self, operand: PlanOperand) -> bool:
        return self.plan.values[operand.value].kind == ValueKind.PACK

    def matrix(self, operand: PlanOperand) -> Array:
        pack = self.plan.packs[self.plan.values[operand.value].index]
        assert (self.number(operand.offset), *map(self.number, operand.strides)) == (0, 0, 0, 0, 0)
        return self.value(operand.value).reshape(self.number(pack.k), self.number(pack.n))


def _put(there: Any, number: Any) -> Any:
    return number


_MEETINGS: dict[float, Callable[[Any, Any], Any]] = {
    1.0: lambda there, number: there + number,
    2.0: lambda there, number: there * number,
    3.0: lambda there, number: there if there > number else number,
    4.0: lambda there, number: there if there < number else number,
}
_FOUND = (Op.ARG_MAX, Op.ARG_MIN, Op.TOP_K)
_WRITABLE = {ValueKind.TEMPORARY, ValueKind.ROWS, ValueKind.STACKED, ValueKind.NEW}


def _view(elements: Array, offset: int, dims: Sequence[int], strides: Sequence[int]) -> Array:
    """Return the elements that the strides select. Fail if any is outside."""
    if 0 in dims:
        return np.zeros(dims, elements.dtype)
    reach = [(dim - 1) * stride for dim, stride in zip(dims, strides, strict=True)]
    low, high = offset + sum(min(0, each) for each in reach), offset + sum(max(0, each) for each in reach)
    assert 0 <= low <= high < elements.size, (offset, dims, strides, elements.size)
    return np.lib.stride_tricks.as_strided(elements[offset:], dims, [elements.itemsize * stride for stride in strides])


def _same(one: Array, other: Array) -> bool:
    return one.ctypes.data == other.ctypes.data and one.shape == other.shape and one.strides == other.strides


def _check_strides(instruction: Instruction, count: int, inner: Sequence[int | None]) -> None:
    """Check that kernels support the innermost strides."""
    op = instruction.op
    if op in (Op.COPY, Op.CAST, Op.GEMM, Op.MATMUL) or count <= 1:
        return
    assert inner[0] == (0 if Op.SUM <= op <= Op.DOT or op in (Op.ARG_MAX, Op.ARG_MIN) else 1), (op, inner)
    assert all(each in (0, 1, None) for each in inner[1:]), (op, inner)


def _result(instruction: Instruction, sources: Sequence[Array | None]) -> npt.NDArray[Any]:
    x = [source for source in sources if source is not None]
    first, second = (np.float32(each) for each in instruction.immediates)
    op = instruction.op
    if op in _ELEMENTWISE:
        return np.asarray(_ELEMENTWISE[op](*x))
    match op:
        case Op.ELU:
            return np.where(x[0] > 0, x[0], first * np.expm1(x[0]))
        case Op.LEAKY_RELU:
            return np.where(x[0] >= 0, x[0], first * x[0])
        case Op.HARD_SIGMOID:
            return np.maximum(np.float32(0), np.minimum(np.float32(1), first * x[0] + second))
        case Op.LAYER_NORMALIZATION:
            centred = x[0] - x[0].mean(-1, keepdims=True, dtype=np.float32)
            normal = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + first) * x[1]
            return normal + x[2] if len(x) == 3 else normal
        case Op.RMS_NORMALIZATION:
            return np.asarray(x[0] / np.sqrt((x[0] * x[0]).mean(-1, keepdims=True) + first) * x[1])
        case Op.ARG_MAX | Op.ARG_MIN:
            return np.apply_along_axis(_best, -1, x[0], op == Op.ARG_MAX, bool(first))
        case Op.TOP_K:
            return np.apply_along_axis(_first_places, -1, x[0], instruction.matrix[0].coefficient, bool(first))
        case Op.GEMM | Op.MATMUL:
            product = np.matmul(x[0], x[1])
            return product + x[2] if len(x) == 3 else product
    raise AssertionError(op)


def _best(row: Array, most: bool, last: bool) -> int:
    best = 0
    for place in range(1, row.size):
        better = row[place] > row[best] if most else row[place] < row[best]
        best = place if better or (last and row[place] == row[best]) else best
    return best


def _first_places(row: Array, count: int, most: bool) -> Array:
    """Return the positions of the largest or smallest elements in order, stably. NaN counts as the largest."""
    nothing = np.isnan(row) if row.dtype.kind == "f" else np.zeros(row.size, np.bool_)
    numbers = [0 if none else each.item() for each, none in zip(row, nothing, strict=True)]
    order = sorted(range(row.size), key=lambda at: (not nothing[at], -numbers[at]) if most else (nothing[at], numbers[at]))
    return np.array(order[:count])


def _typed(memory: Array, dtype: int, offset: int, count: int) -> Array:
    """Return the elements of a type in ``data``. ``offset`` counts elements."""
    each = bytes_of(dtype)
    assert 0 <= offset * each <= (offset + count) * each <= memory.size
    return memory[offset * each : (offset + count) * each].view(NUMPY[dtype])


def _nothing(dtype: int) -> Any:
    """Return a marker for elements that were not written, if the type has a suitable number."""
    kind = NUMPY[dtype]
    return kind.type(np.nan if kind.kind == "f" else True if dtype == BOOL else np.iinfo(kind).max // 3)


def _cut_off(a: Array, b: Array) -> Array:
    whole = np.floor_divide(a, _not_zero(b))
    return np.asarray(whole + ((whole < 0) & (whole * b != a)), a.dtype)


def _not_zero(divisor: Array) -> Array:
    if (divisor == 0).any():
        raise ZeroDivisionError
    return divisor


def _end(dtype: np.dtype, sign: int) -> Any:
    """Return the largest or the smallest number of a type."""
    if dtype.kind == "f":
        return dtype.type(sign * np.inf)
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float32])(x) if x.size else x


def _truth(made: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: made(*x).astype(x[0].dtype)


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _log_add_exp(a: Array, b: Array) -> Array:
    most = np.maximum(a, b)
    return np.asarray(most + np.log(np.exp(a - most) + np.exp(b - most)))


def _log_softmax(x: Array) -> Array:
    below = x - x.max(-1, keepdims=True, initial=-np.inf)
    return np.asarray(below - np.log(np.exp(below).sum(-1, keepdims=True)))


def _to_bfloat16(x: Array) -> Array:
    bits = x.view(np.uint32).astype(np.uint64)
    near = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, near)


_HALF, _ROOT = np.float32(0.5), np.float32(math.sqrt(0.5))
_ELEMENTWISE: dict[Op, Callable[..., Any]] = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.DIV: lambda a, b: a / b if a.dtype.kind == "f" else _cut_off(a, b),
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.GREATER: _truth(np.greater),
    Op.LESS: _truth(np.less),
    Op.GREATER_OR_EQUAL: _truth(np.greater_equal),
    Op.LESS_OR_EQUAL: _truth(np.less_equal),
    Op.EQUAL: _truth(np.equal),
    Op.COPY: lambda x: x.copy(),
    Op.CAST: lambda x: x.copy(),
    Op.MOD: lambda a, b: np.fmod(a, b) if a.dtype.kind == "f" else np.mod(a, _not_zero(b)),
    Op.NEG: np.negative,
    Op.POW: lambda a, b: np.power(a, np.array(np.broadcast_to(b, a.shape), order="C")),  # of one 0.5 numpy takes the root
    Op.ABS: np.abs,
    Op.SQRT: np.sqrt,
    Op.EXP: np.exp,
    Op.TANH: np.tanh,
    Op.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    Op.LOG: np.log,
    Op.RECIPROCAL: np.reciprocal,
    Op.NOT: _truth(lambda x: x == 0),
    Op.SOFTPLUS: lambda x: np.logaddexp(np.float32(0), x),
    Op.RELU: lambda x: np.maximum(x, x.dtype.type(0)),
    Op.ERF: _erf,
    Op.FLOOR: np.floor,
    Op.CEIL: np.ceil,
    Op.ROUND: np.rint,
    Op.SIGN: np.sign,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TO_FLOAT16: lambda x: x.astype(np.float16).astype(np.float32),
    Op.TO_BFLOAT16: _to_bfloat16,
    Op.SOFTSIGN: lambda x: x / (1 + np.abs(x)),
    Op.GELU: lambda x: _HALF * x * (1 + _erf(x * _ROOT)),
    Op.WHERE: lambda c, a, b: np.where(c != 0, a + a.dtype.type(0), b),
    Op.SELECT: lambda c, a, b: np.where(c != 0, a, b),
    Op.MUL_ADD: lambda a, b, c: a * b + c,
    Op.MUL_SUB: lambda a, b, c: a * b - c,
    Op.SUB_MUL: lambda a, b, c: c - a * b,
    Op.MUL_ADD_MUL: lambda a, b, c, e: a * b + c * e,
    Op.MUL_SUB_MUL: lambda a, b, c, e: a * b - c * e,
    Op.LOG_ADD_EXP: _log_add_exp,
    Op.SUM: lambda x: x.sum(-1, dtype=x.dtype),
    Op.MEAN: lambda x: x.mean(-1) if x.shape[-1] else x.sum(-1),
    Op.REDUCE_MAX: lambda x: x.max(-1, initial=_end(x.dtype, -1)),
    Op.REDUCE_MIN: lambda x: x.min(-1, initial=_end(x.dtype, 1)),
    Op.SUM_OF_SQUARES: lambda x: (x * x).sum(-1, dtype=x.dtype),
    Op.DOT: lambda x, y: (x * y).sum(-1, dtype=x.dtype),
    Op.SOFTMAX: _softmax,
    Op.LOG_SOFTMAX: _log_softmax,
}
