"""Models that refuse all the sizes that are usually tried: windows, pads, shrunk pages, frames of a fixed size, a table of rows."""

import pytest
from onnx import ModelProto

import ortscan
from tests.support.text import model_from_text

WINDOWS = "x3 = Unsqueeze(x, i1) w = Expand(tenth, sizes) y = Conv<strides = [100]>(x3, w)"
PADDED = 'x3 = Unsqueeze(x, i1) p = Pad<mode = "reflect">(x3, sizes) w = Expand(tenth, window) y = Conv<strides = [99]>(p, w)'
FRAMES = "n1 = Neg(i1) s = Concat<axis = 0>(n1, sizes) f = Reshape(x, s) y = ReduceSum<keepdims = 0>(f, i1)"

MODELS = {
    "windows of 400": (WINDOWS, "1, 1, 400"),
    "windows of 3000": (WINDOWS, "1, 1, 3000"),
    "padded by a mirror image": (PADDED, "0, 0, 310, 0, 0, 310"),
    "frames of 480": (FRAMES, "480"),
}


def model(way: str, sizes: str, last: str = "Identity") -> ModelProto:
    count = sizes.count(",") + 1
    nodes = "\n".join(f"{one.strip()})" for one in way.split(") ")).removesuffix(")")
    return model_from_text(
        f"""m (float[B, N] x) => (float[?] z) {{
            i1 = Constant<value = int64[1] {{1}}>()
            tenth = Constant<value = float[1, 1, 1] {{0.1}}>()
            window = Constant<value = int64[3] {{1, 1, 50}}>()
            sizes = Constant<value = int64[{count}] {{{sizes}}}>()
            {nodes}
            z = {last}(y)
        }}""",
        17,
        check=False,
    )


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize(("way", "sizes"), MODELS.values(), ids=MODELS)
def test_sizes_that_a_model_takes_are_found(way: str, sizes: str, level: str) -> None:
    found = ortscan.verify(model(way, sizes), model(way, sizes), level=level)
    assert found.outcome == "equal"
    assert len({case.dims["N"] for case in found.cases if case.status == "equal"}) >= 3
    assert len({case.dims["B"] for case in found.cases if case.status == "equal"}) >= 3


@pytest.mark.parametrize(("way", "sizes"), MODELS.values(), ids=MODELS)
def test_a_difference_is_seen_at_such_sizes(way: str, sizes: str) -> None:
    assert ortscan.verify(model(way, sizes), model(way, sizes, "Abs"), level="quick").outcome == "different"


PAGE = """m (float[B, 3, H, W] x) => (float[B, ?] z) {
    w = Constant<value = int64[4] {1, 3, 20, 35}>()
    t = Constant<value = float {0.1}>()
    filter = Expand(t, w)
    y = Conv(x, filter)
    z = Flatten(y)
}"""


@pytest.mark.parametrize("level", ["quick", "full"])
def test_two_sizes_that_must_both_be_large_are_found(level: str) -> None:
    page = model_from_text(PAGE, 17)
    found = ortscan.verify(page, page, level=level)
    ran = [case.dims for case in found.cases if case.status == "equal"]
    assert found.outcome == "equal"
    assert min(dims["H"] for dims in ran) == 20
    assert min(dims["W"] for dims in ran) == 35
    assert len({dims["B"] for dims in ran}) > 2


def test_a_model_that_takes_nothing_stays_inconclusive_and_soon() -> None:
    never = model_from_text(
        """m (float[B, N] x) => (float[B, N] z) {
            i = Constant<value = int64[1] {-7}>()
            y = Slice(x, i, i, i)
            s = Constant<value = int64[2] {-1, 0}>()
            e = Expand(y, s)
            o = OneHot(i, i, y)
            z = Add(e, o)
        }""",
        17,
        check=False,
    )
    assert ortscan.verify(never, never, level="quick").outcome == "inconclusive"
