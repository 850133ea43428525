"""The work grows in proportion to the length of a body, however often the body reads its values: no walk is exponential."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import ortscan
from tests.support.text import model_from_text

HEADER = '<ir_version: 8, opset_import: ["": 18]>\n'
LADDERS = {
    "doubled sums of the state": ("v0 = Mul(h, tiny)", "{new} = Add({old}, {old})", "h1 = Add({last}, x)"),
    "means of the state and the input": (
        "v0 = Identity(h)",
        "a{i} = Sub(x, {old})  b{i} = Mul(a{i}, half)  {new} = Add({old}, b{i})",
        "",
    ),
    "doubled drives": ("v0 = Mul(x, tiny)", "{new} = Add({old}, {old})", "a = Mul(h, half)  h1 = Add(a, {last})"),
    "products by two gates": (
        "g = Sigmoid(x)  v0 = Identity(h)",
        "a{i} = Mul({old}, g)  b{i} = Mul({old}, x)  {new} = Add(a{i}, b{i})",
        "",
    ),
    "squares": ("v0 = Identity(h)", "{new} = Mul({old}, {old})", ""),
    "squares of the input": ("v0 = Tanh(x)", "{new} = Mul({old}, {old})", "a = Tanh(h)  h1 = Add(a, {last})"),
    "maxima of minima": ("v0 = Identity(h)", "a{i} = Max({old}, x)  b{i} = Min({old}, x)  {new} = Max(a{i}, b{i})", ""),
    "choices": ("v0 = Identity(h)", "c{i} = Less({old}, x)  n{i} = Neg({old})  {new} = Where(c{i}, {old}, n{i})", ""),
    "matrix products": ("v0 = Identity(h)", "a{i} = MatMul({old}, w)  b{i} = MatMul(w, {old})  {new} = Add(a{i}, b{i})", ""),
    "activations": ("v0 = Identity(h)", "a{i} = Tanh({old})  {new} = Mul(a{i}, {old})", ""),
    "branches": (
        "k = ReduceSum<keepdims = 0>(x)  v0 = Identity(h)",
        "c{i} = Less(k, half)  {new} = If(c{i})<then_branch = t{i} () => (float[2,2] p{i}) {{ p{i} = Add({old}, {old}) }}, "
        "else_branch = e{i} () => (float[2,2] q{i}) {{ q{i} = Neg({old}) }}>",
        "",
    ),
}


def ladder(name: str, rungs: int) -> str:
    start, rung, end = LADDERS[name]
    rungs_text = "  ".join(rung.format(old=f"v{i}", new=f"v{i + 1}", i=i) for i in range(rungs))
    return f"{start}  {rungs_text}  {(end or 'h1 = Identity({last})').format(last=f'v{rungs}')}"


def scan(inside: str) -> str:
    return f"""g (float[2,2] s, float[32,2,2] xs, float[2,2] w) => (float[2,2] z, float[32,2,2] ys)
    <float half = {{0.5}}, float tiny = {{0.0000001}}> {{
        z, ys = Scan<num_scan_inputs = 1, body = b (float[2,2] h, float[2,2] x) => (float[2,2] h1, float[2,2] y) {{
            {inside}  y = Identity(h1) }}>(s, xs) }}"""


def runge_kutta(substeps: int) -> str:
    """Return ``h' = x - h`` in ``n`` substeps of the classical method, with 21 nodes each."""
    lines = ["v0 = Identity(h)"]
    for i in range(substeps):
        lines.append(f"k{i}1 = Sub(x, v{i})")
        for stage, step in ((2, "half"), (3, "half"), (4, "tiny")):
            lines.append(f"m{i}{stage} = Mul(k{i}{stage - 1}, {step})  u{i}{stage} = Add(v{i}, m{i}{stage})")
            lines.append(f"k{i}{stage} = Sub(x, u{i}{stage})")
        lines.append(f"a{i} = Add(k{i}2, k{i}2)  b{i} = Add(k{i}3, k{i}3)  c{i} = Add(k{i}1, a{i})  d{i} = Add(b{i}, k{i}4)")
        lines.append(f"e{i} = Add(c{i}, d{i})  f{i} = Mul(e{i}, tiny)  v{i + 1} = Add(v{i}, f{i})")
    return scan(f"{'  '.join(lines)}  h1 = Identity(v{substeps})")


def rungs_of(rung: str, count: int) -> str:
    return "  ".join(rung.format(old=f"v{i}", new=f"v{i + 1}") for i in range(count))


def condition(rungs: int) -> str:
    """Return a Loop that goes on while a comparison holds, which is joined with itself again and again."""
    return f"""g (float[2] s, int64 lim) => (float[2] z, float[N,2] ys) <int64 zero = {{0}}, int64 one = {{1}}, int64 ten = {{10}}> {{
        v0 = Less(lim, ten)  {rungs_of("{new} = And({old}, {old})", rungs)}
        z, last, ys = Loop<body = b (int64 i, bool c, float[2] h, int64 j) => (bool c1, float[2] h1, int64 j1, float[2] y) {{
            h1 = Tanh(h)  y = Identity(h1)  j1 = Add(j, one)
            w0 = Less(j1, lim)  {rungs_of("{new} = And({old}, {old})", rungs).replace("v", "w")}  c1 = Identity(w{rungs})
        }}>(, v{rungs}, s, zero) }}"""


def places(rungs: int) -> str:
    """Return a Scan over rows that a Gather takes by a Range, which is added to itself again and again."""
    return f"""g (float[2] s, float[T,2] xs) => (float[2] z, float[T,2] ys) <int64 zero = {{0}}, int64 one = {{1}}> {{
        shape = Shape(xs)  steps = Gather(shape, zero)  v0 = Range(zero, steps, one)
        {rungs_of("{new} = Add({old}, {old})", rungs)}  rows = Gather(xs, v{rungs})
        z, ys = Scan<num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1, float[2] y) {{
            a = Add(h, x)  h1 = Tanh(a)  y = Identity(h1) }}>(s, rows) }}"""


def counts(rungs: int) -> str:
    """Return a running mean whose divisor is the step number, doubled and halved again and again."""
    numbers = ", ".join(f"{step + 1}.0" for step in range(16))
    rung = "{new}d = Add({old}, {old})  {new} = Mul({new}d, half)"
    return f"""g (float[2] s, float[16,2] xs) => (float[2] z, float[16,2] ys) <float half = {{0.5}}, float[16] js = {{{numbers}}}> {{
        z, ys = Scan<num_scan_inputs = 2, body = b (float[2] h, float[2] x, float v0) => (float[2] h1, float[2] y) {{
            {rungs_of(rung, rungs)}  d = Sub(x, h)  e = Div(d, v{rungs})  h1 = Add(h, e)  y = Identity(h1) }}>(s, xs, js) }}"""


def decays(rungs: int) -> str:
    """Return linear attention whose decay is squared again and again."""
    return f"""g (float[2,4,8] s, float[20,2,4,1] ks, float[20,2,1,8] vs, float[20,2,1,1] gs, float[20,2,1,4] qs)
    => (float[2,4,8] z, float[20,2,1,8] ys) {{
        z, ys = Scan<num_scan_inputs = 4, body = b (float[2,4,8] h, float[2,4,1] k, float[2,1,8] v, float[2,1,1] g, float[2,1,4] q)
        => (float[2,4,8] h1, float[2,1,8] y) {{
            v0 = Sigmoid(g)  {rungs_of("{new} = Mul({old}, {old})", rungs)}
            a = Mul(k, v)  d = Mul(h, v{rungs})  h1 = Add(d, a)  y = MatMul(q, h1) }}>(s, ks, vs, gs, qs) }}"""


class TooMuch(BaseException):
    """Raised if more calls are made than allowed. No error handler catches it."""


def calls(text: str, native: bool, most: float = float("inf")) -> int:
    """Count the calls of Python functions while ``text`` is optimised. Raise TooMuch after ``most``."""
    model, count = model_from_text(HEADER + text), 0

    def counted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"
        if count > most:
            raise TooMuch

    sys.setprofile(counted)
    try:
        ortscan.optimize(model, verify=False, native=native)
    finally:
        sys.setprofile(None)
    return count


def grows_evenly(text: Callable[[int], str], short: int, native: bool) -> bool:
    """Return True if each doubling of a body, starting at ``short``, needs at most three times the calls."""
    calls(text(short), native)  # what a process does once is done
    least = calls(text(short), native)
    return calls(text(2 * short), native, 3 * least) <= 3 * least and calls(text(4 * short), native, 6 * least) <= 6 * least


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", LADDERS)
def test_a_body_that_reads_its_values_twice_takes_no_more_work_than_its_length(name: str, native: bool) -> None:
    assert grows_evenly(lambda rungs: scan(ladder(name, rungs)), 8, native)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("text", [condition, places, counts, decays])
def test_what_a_loop_reads_twice_takes_no_more_work_than_its_length(text: Callable[[int], str], native: bool) -> None:
    assert grows_evenly(text, 8, native)


@pytest.mark.parametrize("native", [False, True])
def test_substeps_of_a_differential_equation_take_work_in_proportion(native: bool) -> None:
    assert grows_evenly(runge_kutta, 2, native)


@pytest.mark.parametrize("text", [counts, decays, condition, places])
def test_a_chain_of_hundreds_of_nodes_is_no_error(text: Callable[[int], str]) -> None:
    ortscan.optimize(model_from_text(HEADER + text(400)), verify=False)
