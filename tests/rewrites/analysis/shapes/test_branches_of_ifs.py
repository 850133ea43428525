"""Before opset 11 onnx takes the sizes of one branch for those of both; they are not believed."""

import pytest

from tests.rewrites.apply import prepared


def _shape_of(name: str, opset: int, then: str, otherwise: str) -> list[object] | None:
    text = f"""g (bool c, float[T,3] x) => (float[?,?] y) {{
        r = If (c) <then_branch = t () => (float[?,?] p) {{ {then} }}, else_branch = e () => (float[?,?] q) {{ {otherwise} }}>
        y = Neg (r) }}"""
    graph = prepared(text, opset=opset, check=False).model.graph
    (value,) = [value for node in graph.all_nodes() for value in node.outputs if value.name == name]
    return None if value.shape is None else [dim if isinstance(dim, int) else dim.value for dim in value.shape.dims]


ONE, TWO = ("{v} = Constant <value = float[1,3] {{1,2,3}}> ()", "{v} = Constant <value = float[2,3] {{1,2,3,4,5,6}}> ()")
FREE = "{v} = Relu (x)"
INNER = """d = Not (c) {v} = If (d) <then_branch = a () => (float[?,?] m) {{ m = Relu (x) }},
    else_branch = b () => (float[?,?] n) {{ n = Constant <value = float[1,3] {{1,2,3}}> () }}>"""


@pytest.mark.parametrize("opset", [8, 9, 10, 11, 18])
@pytest.mark.parametrize(("then", "otherwise"), [(ONE, FREE), (FREE, ONE), (ONE, INNER), (INNER, ONE), (INNER, FREE)])
def test_a_size_that_one_branch_tells_is_not_that_of_both(opset: int, then: str, otherwise: str) -> None:
    shape = _shape_of("r", opset, then.format(v="p"), otherwise.format(v="q"))
    assert shape is not None
    assert shape[1] == 3
    assert not isinstance(shape[0], int)


@pytest.mark.parametrize("opset", [8, 10, 11])
@pytest.mark.parametrize("name", ["r", "p", "q"])
def test_sizes_that_both_branches_tell_are_kept(opset: int, name: str) -> None:
    assert _shape_of(name, opset, TWO.format(v="p"), TWO.format(v="q")) == [2, 3]


def test_what_is_inside_of_the_branches_keeps_its_sizes() -> None:
    assert _shape_of("p", 9, ONE.format(v="p"), FREE.format(v="q")) == [1, 3]
    assert _shape_of("q", 9, ONE.format(v="p"), FREE.format(v="q")) == ["T", 3]
