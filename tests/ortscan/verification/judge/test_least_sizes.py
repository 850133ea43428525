"""Models like published voice detectors: a comparison with the rate selects a branch, each with its own front end and cell.

A front end pads by reflection and cuts windows. The cell needs as many states as there are rows. No dimension has a name.
"""

import pytest
from onnx import ModelProto

import ortscan
from ortscan.running.budget import Budget
from ortscan.verification.judge.least_sizes import rows_by_numbers
from tests.support.text import model_from_text

CELLS = {
    "a sum": "s = Squeeze(h, i0) b = Add(t, s)",
    "an LSTM": "b, b_h, b_c = LSTM<hidden_size = 1>(t, four, four, , , h, h)",
    "a GRU": "b, b_h = GRU<hidden_size = 1>(t, three, three, , , h)",
    "an RNN": "b, b_h = RNN<hidden_size = 1>(t, one, one, , , h)",
    "a Scan": """s = Squeeze(h, i0)
        b_h, b = Scan<num_scan_inputs = 1, body = step (s0, x0) => (s1, y0) { s1 = Add(s0, x0) y0 = Identity(s1) }>(s, t)""",
}
ELSEWHERE = "n = Constant<value = int64[2] {7, 7}>() b = Reshape(x, n)"
SLOW, FAST = "0, 64, 0, 64", "0, 0, 0, 32"


def front(pads: str, cell: str) -> str:
    return f"""pads = Constant<value = int64[4] {{{pads}}}>()
        p = Pad<mode = "reflect">(x, pads)
        p3 = Unsqueeze(p, i1)
        f = Conv<strides = [25]>(p3, window)
        t = Transpose<perm = [2, 0, 1]>(f)
        {cell}"""


def model(then: str, other: str, rate: int = 16000, negated: str = "") -> ModelProto:
    shapes = {"one": (1, 1, 1), "three": (1, 3, 1), "four": (1, 4, 1), "window": (1, 1, 150)}
    weights = ", ".join(
        f"float[{', '.join(map(str, shape))}] {name} = {{{', '.join(['0.1'] * max(shape))}}}" for name, shape in shapes.items()
    )
    last = {branch: "Neg" if branch == negated else "Identity" for branch in ("then", "else")}
    return model_from_text(
        f"""m (float[?, ?] x, float[1, ?, 1] h, int64 sr) => (float[?] z) <{weights}> {{
            i0 = Constant<value = int64[1] {{0}}>()
            i1 = Constant<value = int64[1] {{1}}>()
            rate = Constant<value = int64 {{{rate}}}>()
            at_rate = Equal(sr, rate)
            y = If<then_branch = fast () => (u) {{ {then} u = {last["then"]}(b) }},
                else_branch = slow () => (u) {{ {other} u = {last["else"]}(b) }}>(at_rate)
            z = Identity(y)
        }}""",
        17,
        check=False,
    )


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_both_branches_are_compared_at_sizes_that_each_takes(cell: str) -> None:
    both = model(front(SLOW, cell), front(FAST, cell))
    found = ortscan.verify(both, both, level="quick")
    ran = [case for case in found.cases if case.status == "equal"]
    assert found.outcome == "equal"
    assert len({case.dims["x[0]"] for case in ran}) >= 3
    assert all(case.dims["x[0]"] == case.dims["h[1]"] for case in ran)


@pytest.mark.parametrize("wrong", ["then", "else"])
@pytest.mark.parametrize(("then", "other"), [("0, 0, 0, 300", FAST), ("0, 64, 0, 0", "0, 0, 0, 7"), ("0, 5, 0, 5", "0, 300, 0, 1")])
def test_a_branch_that_wants_larger_sizes_is_searched_by_itself(then: str, other: str, wrong: str) -> None:
    branches = front(then, CELLS["a sum"]), front(other, CELLS["a sum"])
    assert ortscan.verify(model(*branches), model(*branches, negated=wrong), level="quick").outcome == "different"


@pytest.mark.parametrize("rate", [16000, 441, 48000])
def test_a_number_that_alone_is_taken_is_fed(rate: int) -> None:
    branches = front(SLOW, CELLS["a sum"]), ELSEWHERE
    found = ortscan.verify(model(*branches, rate), model(*branches, rate, "then"), level="quick", time_limit=0.2)
    assert found.outcome == "different"


@pytest.mark.parametrize("seconds", [0.001, 0.05])
def test_a_search_has_time_of_its_own_where_the_limit_left_none(seconds: float) -> None:
    slow = model(front(SLOW, CELLS["a GRU"]), front(FAST, CELLS["a GRU"]))
    found = ortscan.verify(slow, slow, level="quick", time_limit=seconds)
    assert found.outcome == "equal"
    assert f"the time limit of {seconds:.2g} s was reached" in found.summary()


def test_time_is_granted_as_far_as_it_was_spent() -> None:
    budget = Budget(0.0, 1)
    budget.started -= 1.0
    budget.grant(60.0)
    assert 0.9 < budget.left() <= 1.1
    budget.grant(0.5)
    assert 0.9 < budget.left() <= 1.1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("post-pad (64) exceeds maximum allowed (1) for axis 1", [(64, 2), (3, 64), (65, 2), (3, 65)]),
        ("must have shape {1,3,8}. Actual:{1,2,8}", [(3, 3), (2, 2), (4, 2), (3, 4), (3, 3), (8, 2), (3, 8), (9, 2), (3, 9)]),
        ("running Pad node. Name:'Pad_537'", []),
        ("of 200000 bytes", []),
    ],
)
def test_numbers_that_are_said_become_sizes(said: str, expected: list[tuple[int, int]]) -> None:
    assert sorted(set(rows_by_numbers(said, (3, 2), [0, 1]))) == sorted(set(expected))


WINDOWS = "x3 = Unsqueeze(x, i1) w = Expand(tenth, sizes) y = Conv<strides = [100]>(x3, w)"


PADDED = 'x3 = Unsqueeze(x, i1) p = Pad<mode = "reflect">(x3, sizes) w = Expand(tenth, window) y = Conv<strides = [99]>(p, w)'


FRAMES = "n1 = Neg(i1) s = Concat<axis = 0>(n1, sizes) f = Reshape(x, s) y = ReduceSum<keepdims = 0>(f, i1)"


MODELS = {
    "windows of 400": (WINDOWS, "1, 1, 400"),
    "windows of 3000": (WINDOWS, "1, 1, 3000"),
    "padded by a mirror image": (PADDED, "0, 0, 310, 0, 0, 310"),
    "frames of 480": (FRAMES, "480"),
}


def sized_model(way: str, sizes: str, last: str = "Identity") -> ModelProto:
    count = sizes.count(",") + 1
    nodes = "\n".join(f"{each.strip()})" for each in way.split(") ")).removesuffix(")")
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
    found = ortscan.verify(sized_model(way, sizes), sized_model(way, sizes), level=level)
    assert found.outcome == "equal"
    assert len({case.dims["N"] for case in found.cases if case.status == "equal"}) >= 3
    assert len({case.dims["B"] for case in found.cases if case.status == "equal"}) >= 3


@pytest.mark.parametrize(("way", "sizes"), MODELS.values(), ids=MODELS)
def test_a_difference_is_seen_at_such_sizes(way: str, sizes: str) -> None:
    assert ortscan.verify(sized_model(way, sizes), sized_model(way, sizes, "Abs"), level="quick").outcome == "different"


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
