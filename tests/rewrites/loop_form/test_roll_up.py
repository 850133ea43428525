import pytest

from rewrites.loop_form import roll_up
from tests.rewrites.harness import becomes, stays

STEP = "g{t} = Mul (x{t}, w) h{n} = Add (g{t}, h{t})"
BODY = "g = Mul (x, w) h1 = Add (g, h)"


def written(
    step: str = STEP,
    *,
    steps: int = 4,
    rows: str = "x{t} = Gather (xs, i{t})",
    given: str = "float[4,2] xs, float[2] h0",
    results: str = "float[2] h4",
    weights: str = "float[2] w = {2, 3}",
    before: str = "",
    end: str = "",
    **other: str,
) -> str:
    """A graph of `steps` steps written out; `other` has steps that are not like the rest, such as `s2`."""
    reads = " ".join(rows.format(t=t, e=t + 1) for t in range(steps))
    body = " ".join(other.get(f"s{t}", step).format(t=t, n=t + 1, p=t - 1, r=steps - 1 - t) for t in range(steps))
    numbers = [f"int64 i{t} = {{{t}}}" for t in range(steps)]
    return f"g ({given}) => ({results}) <{', '.join([*numbers, weights])}> {{ {before} {reads} {body} {end} }}"


def rolled(body: str = BODY, node: str = "h4 = Scan <{}> (h0, xs)", **parts: str) -> str:
    inputs, outputs = parts.get("inputs", "float[2] h, float[2] x"), parts.get("outputs", "float[2] h1")
    attributes = f"num_scan_inputs = 1{parts.get('attributes', '')}, body = b ({inputs}) => ({outputs}) {{ {body} }}"
    return (
        f"g ({parts.get('given', 'float[4,2] xs, float[2] h0')}) => ({parts.get('results', 'float[2] h4')}) "
        f"<{parts.get('weights', 'float[2] w = {2, 3}')}> {{ {node.format(attributes)} {parts.get('end', '')} }}"
    )


@pytest.mark.parametrize("opset", [9, 11, 18, 25])
def test_steps_become_a_scan(opset: int) -> None:
    becomes(roll_up, written(), rolled(), opset=opset)


JOINED = "u{n} = Unsqueeze (h{n}, k)"
STACK = "ys = Concat <axis = {axis}> (u1, u2, u3, u4)"


def test_a_concat_of_all_results_is_the_stack() -> None:
    becomes(
        roll_up,
        written(
            f"{STEP} {JOINED}",
            results="float[2] h4, float[4,2] ys",
            weights="float[2] w = {2, 3}, int64[1] k = {0}",
            end=STACK.format(axis=0),
        ),
        rolled(
            f"{BODY} u = Unsqueeze (h1, k)",
            "h4, us = Scan <{}> (h0, xs)",
            outputs="float[2] h1, float[1,2] u",
            results="float[2] h4, float[4,2] ys",
            weights="float[2] w = {2, 3}, int64[1] k = {0}, int64[1] l = {1}",
            end="ys = Squeeze (us, l)",
        ),
    )


@pytest.mark.parametrize("order", ["h1, h2, h3, h4", "h4, h3, h2, h1", "h0, h1, h2, h3, h4, h0"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_concat_side_by_side_is_one_of_the_stack(order: str, axis: int) -> None:
    count = len(order.split(","))
    results = f"float[{2 * count},3] ys" if axis == 0 else f"float[2,{3 * count}] ys"
    text = written(
        given="float[4,2,3] xs, float[2,3] h0",
        results=results,
        weights="float[3] w = {2, 3, 4}",
        end=f"ys = Concat <axis = {axis}> ({order})",
    )
    after, _ = becomes(roll_up, text)
    assert "Scan" in {node.op_type for node in after.graph.node}


ROWS = {
    "slices": ("x{t} = Slice (xs, s{t}, s{e}, k)", "", "float[1,2]", "float[4,2]"),
    "kept by Gather": ("x{t} = Gather (xs, s{t})", "", "float[1,2]", "float[4,2]"),
    "a Split": ("", "x0, x1, x2, x3 = Split <num_outputs = 4> (xs)", "float[1,2]", "float[4,2]"),
    "a Split of several": ("", "x0, x1, x2, x3 = Split <num_outputs = 4> (xs)", "float[3,2]", "float[12,2]"),
    "another axis": ("x{t} = Gather <axis = 1> (xs, i{t})", "", "float[3]", "float[3,4]"),
    "from the end": ("x{t} = Gather (xs, n{t})", "", "float[2]", "float[4,2]"),
    "of more rows": ("x{t} = Gather (xs, s{e})", "", "float[1,2]", "float[7,2]"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_are_read_in_many_ways(case: str) -> None:
    reads, before, state, source = ROWS[case]
    weights = ", ".join(
        [
            "float w = {2}",
            "int64[1] k = {0}",
            *(f"int64[1] s{t} = {{{t}}}" for t in range(5)),
            *(f"int64 n{t} = {{{t - 4}}}" for t in range(4)),
        ]
    )
    text = written(rows=reads, before=before, given=f"{source} xs, {state} h0", results=f"{state} h4", weights=weights)
    after, _ = becomes(roll_up, text)
    assert [node.op_type for node in after.graph.node].count("Scan") == 1


def test_steps_that_go_back_are_a_scan_from_the_end() -> None:
    step = "g{r} = Mul (x{r}, w) b{r} = Add (g{r}, b{t}x)"
    text = (
        written(step)
        .replace("b0x", "h0")
        .replace("b1x", "b3")
        .replace("b2x", "b2")
        .replace("b3x", "b1")
        .replace("float[2] h4", "float[2] b0")
    )
    becomes(roll_up, text, rolled(attributes=", scan_input_directions = [1]").replace("h4", "b0"))


def test_the_first_step_may_be_another() -> None:
    after, report = becomes(roll_up, written(steps=5, s0="h1 = Mul (x0, w)", given="float[5,2] xs", results="float[2] h5"))
    assert report.loops[0].steps == 4
    assert [node.op_type for node in after.graph.node] == ["Gather", "Mul", "Slice", "Scan"]


def test_a_constant_of_each_step_is_scanned() -> None:
    numbers = ", ".join(f"float[2] w{t} = {{{t}, 2}}" for t in range(4))
    after, _ = becomes(roll_up, written("g{t} = Mul (x{t}, w{t}) h{n} = Add (g{t}, h{t})", weights=numbers))
    assert len(next(node for node in after.graph.node if node.op_type == "Scan").input) == 3


def test_equal_constants_are_one() -> None:
    numbers = ", ".join(f"float[2] w{t} = {{7, 2}}" for t in range(4))
    becomes(
        roll_up, written("g{t} = Mul (x{t}, w{t}) h{n} = Add (g{t}, h{t})", weights=numbers), rolled(weights="float[2] w = {7, 2}")
    )


def test_what_the_step_before_read_is_a_state() -> None:
    text = written(
        "g{t} = Mul (x{t}, w) d{t} = Sub (g{t}, {b}) h{n} = Add (d{t}, h{t})".replace("{b}", "x{p}"),
        given="float[4,2] xs, float[2] h0, float[2] first",
    )
    after, _ = becomes(roll_up, text.replace("x-1", "first"))
    assert len(next(node for node in after.graph.node if node.op_type == "Scan").input) == 3


def test_single_results_are_read_from_the_stack() -> None:
    after, _ = becomes(
        roll_up,
        written(f"{STEP} a{{n}} = Tanh (h{{n}}) b{{n}} = Neg (a{{n}})", results="float[2] h4, float[2] z", end="z = Mul (b2, b2)"),
    )
    assert [node.op_type for node in after.graph.node] == ["Scan", "Gather", "Mul"]


LEFT = {
    "three steps": written(steps=3, given="float[3,2] xs, float[2] h0", results="float[2] h3"),
    "one step is another": written(s2="g2 = Sub (x2, w) h3 = Add (g2, h2)"),
    "one step has other operands": written(s2="g2 = Mul (x2, w) h3 = Add (h2, g2)"),
    "one step reads another weight": written(s2="g2 = Mul (x2, v) h3 = Add (g2, h2)", weights="float[2] w = {2, 3}, float[1] v = {2}"),
    "one state is skipped": written(s2="g2 = Mul (x2, w) h3 = Add (g2, h1)"),
    "rows out of order": written(s1="g1 = Mul (x2, w) h2 = Add (g1, h1)", s2="g2 = Mul (x1, w) h3 = Add (g2, h2)"),
    "a first state of another shape": written(given="float[4,2] xs, float[1] h0"),
    "random": written("g{t} = RandomNormalLike (x{t}) h{n} = Add (g{t}, h{t})"),
    "each result is read alone": written(
        "g{t} = Mul (x{t}, w)", results="float[2] a, float[2] b, float[2] c, float[2] d", given="float[4,2] xs",
        end="a = Neg (g0) b = Abs (g1) c = Exp (g2) d = Tanh (g3)",
    ),
    "the way leads out and back": written(s2="o = Tanh (h1) g2 = Mul (o, w) h3 = Add (g2, h2)"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_other_steps_stay(case: str) -> None:
    stays(roll_up, LEFT[case])
