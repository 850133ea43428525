import itertools
from collections.abc import Callable

import pytest

from tests.rewrites.batching.harness import BOOL, F32, I32, I64, Arg, Case, case, check, const, refusal, same, steps

Kind = Callable[..., Arg]
KINDS = [(steps, same), (same, steps), (steps, steps)]


def _gather(one: Kind, other: Kind, shape: tuple[int, ...], axis: int, indices: tuple[int, ...], dtype: str = I64) -> Case:
    limit = shape[axis]
    return case(f"y = Gather <axis={axis}> (x, i)", x=one(F32, *shape), i=other(dtype, *indices, low=-limit, high=limit))


@pytest.mark.parametrize("opset", [8, 11, 13])
def test_gather_along_every_axis(opset: int) -> None:
    cases = []
    for (one, other), shape, indices in itertools.product(KINDS, [(4,), (4, 2), (3, 2, 5)], [(), (3,), (2, 3), (1,)]):
        if one is other and opset < 12:
            continue
        for axis in range(-len(shape), len(shape)):
            if opset >= 11 or axis >= 0:
                case_of = _gather(one, other, shape, axis, indices, I64 if axis % 2 else I32)
                if opset < 11:
                    case_of.args["i"].data %= shape[axis]
                cases.append(case_of)
    check(cases, opset)


def test_gather_refuses_strings_and_pairs_before_opset_12() -> None:
    assert refusal(case("y = Gather (x, i)", x=steps("str", 4), i=same(I64, 2))) == "STRING-GATHER"
    pair = case("y = Gather (x, i)", x=steps(F32, 4), i=steps(I64, 2))
    assert refusal(pair, opset=11) == "NO-BATCHING-RULE"
    unknown = case("y = Gather <axis=1> (x, i)", x=same(F32, 4, 4), i=steps(I64, 2), unknown_rank=True)
    assert refusal(unknown) == "RANK-UNKNOWN"
    check([case("y = Gather (x, i)", x=same(F32, 4), i=steps(I64, 2, high=4), unknown_rank=True)])


@pytest.mark.parametrize("opset", [11, 13])
def test_gather_elements(opset: int) -> None:
    cases = [
        case(f"y = GatherElements <axis={axis}> (x, i)", x=one(F32, 3, 3), i=other(I64, 2, 3, low=-2, high=2))
        for one, other in KINDS
        for axis in (0, 1, -1)
    ]
    check([*cases, case("y = GatherElements (x, i)", x=steps(F32, 3), i=same(I32, 2, low=0, high=3))], opset)


def _gather_nd(one: Kind, other: Kind, shape: tuple[int, ...], indices: tuple[int, ...], batch_dims: int) -> Case:
    attribute = f"<batch_dims={batch_dims}>" if batch_dims else ""
    return case(f"y = GatherND {attribute} (x, i)", x=one(F32, *shape), i=other(I64, *indices, low=-2, high=2))


def test_gather_nd() -> None:
    cases = [
        _gather_nd(one, other, shape, indices, batch_dims)
        for one, other in KINDS
        for shape, indices, batch_dims in [((2, 3), (2,), 0), ((2, 3), (4, 1), 0), ((2, 2, 3), (2, 4, 1), 1), ((2, 3), (2, 1), 1)]
    ]
    check(cases, opset=12)
    check([_gather_nd(same, steps, (2, 3), (4, 1), 0)], opset=11)
    assert refusal(_gather_nd(steps, same, (2, 3), (4, 1), 0), opset=11) == "NO-BATCHING-RULE"


@pytest.mark.parametrize("opset", [9, 11, 16, 18])
def test_scatter_elements(opset: int) -> None:
    operator = "Scatter" if opset < 11 else "ScatterElements"
    axes = (0, 1) if opset < 11 else (0, 1, -1)
    cases = []
    for kinds, axis in itertools.product(itertools.product((steps, same), repeat=3), axes):
        if steps in kinds:
            args = {"x": kinds[0](F32, 3, 3), "u": kinds[2](F32, 2, 3)}
            cases.append(case(f"y = {operator} <axis={axis}> (x, i, u)", **args, i=_distinct(kinds[1], axis)))
    if opset >= 18:
        for reduction in ("add", "mul", "max", "min"):
            args = {"x": steps(F32, 3, 3), "i": steps(I64, 2, 3, low=0, high=3), "u": steps(F32, 2, 3)}
            cases.append(case(f'y = ScatterElements <axis=0, reduction="{reduction}"> (x, i, u)', **args))
    check(cases, opset)


def _distinct(kind: Kind, axis: int) -> Arg:
    arg = kind(I64, 2, 3)
    arg.data[...] = [[2, 0, 1], [0, 1, 2]]
    return arg


@pytest.mark.parametrize("opset", [11, 16, 18])
def test_scatter_nd(opset: int) -> None:
    cases = []
    for kinds in itertools.product((steps, same), repeat=3):
        if steps not in kinds:
            continue
        for index, update in [((1,), (3,)), ((2,), ()), ((1, 1), (1, 3)), ((1, 1, 2), (1, 1))]:
            args = {"x": kinds[0](F32, 3, 3), "i": kinds[1](I64, *index, low=0, high=3), "u": kinds[2](F32, *update)}
            cases.append(case("y = ScatterND (x, i, u)", **args))
    if opset >= 16:
        args = {"x": steps(F32, 3, 3), "i": steps(I64, 4, 1, low=0, high=3), "u": steps(F32, 4, 3)}
        cases.append(case('y = ScatterND <reduction="add"> (x, i, u)', **args))
    check(cases, opset)


@pytest.mark.parametrize("opset", [9, 11])
def test_one_hot(opset: int) -> None:
    values = const([0.5, 2.0], F32)
    cases = [
        case(f"y = OneHot <axis={axis}> (i, d, v)", i=steps(I64, 2, 3, low=0), d=const([5]), v=values) for axis in (0, 1, 2, -1)
    ]
    if opset >= 11:
        cases.append(case("y = OneHot <axis=-2> (i, d, v)", i=steps(I64, 2), d=const(5), v=values))
    check([*cases, case("y = OneHot (i, d, v)", i=steps(I64, 3, low=0), d=const([5]), v=values)], opset)
    deep = case("y = OneHot (i, d, v)", i=same(I64, 2), d=steps(I64, 1), v=values)
    assert refusal(deep, opset) == "BATCHED-STRUCTURE"


def test_triangles() -> None:
    cases = [case(f"y = Trilu <upper={upper}> (x, k)", x=steps(F32, 2, 3), k=const(1)) for upper in (0, 1)]
    check([*cases, case("y = Trilu (x)", x=steps(BOOL, 4, 2, 3)), case("y = com.microsoft.Trilu (x)", x=steps(F32, 3, 3))])
    assert refusal(case("y = Trilu (x, k)", x=steps(F32, 3, 3), k=steps(I64))) == "BATCHED-STRUCTURE"


@pytest.mark.parametrize("opset", [9, 11])
def test_compress_with_the_same_condition_in_every_step(opset: int) -> None:
    keep = const([True, False, True], BOOL)
    axes = (0, 1, *((-1,) if opset >= 11 else ()))
    cases = [case(f"y = Compress <axis={axis}> (x, c)", x=steps(F32, 4, 3), c=keep) for axis in axes]
    cases += [case("y = Compress (x, c)", x=steps(F32, *shape), c=keep) for shape in ((4,), (2, 3))]
    check(cases, opset)
