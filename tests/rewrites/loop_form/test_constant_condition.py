import pytest

from rewrites.loop_form import constant_condition
from tests.rewrites.harness import becomes, loop, stays

WEIGHTS = "int64 three = {3}, int64 two = {2}, int64 four = {4}, int64 seven = {7}, int64 k0 = {1}, int64[4] table = {0, 0, 1, 0}"
COUNTED = {"inputs": "float[2] h", "outputs": "float[2] h1, float[2] y", "given": "float[2] s", "weights": WEIGHTS}
BODY = "h1 = Add (h, h) y = Neg (h)"


@pytest.mark.parametrize(
    ("go_on", "steps"),
    [
        ("q = Mod (i, three) e = Equal (q, two) c1 = Not (e)", 3),
        ("q = Mul (i, i) c1 = Less (q, seven)", 4),
        ("q = Gather (table, i) c1 = Cast <to = 9> (q)", 1),
        ("q = Mul (i, i) c0 = Less (q, seven) c1 = And (c, c0)", 4),
    ],
)
def test_conditions_that_the_number_of_the_step_decides_become_trip_counts(go_on: str, steps: int) -> None:
    text = loop(BODY, steps=9, go_on=go_on, **COUNTED)
    after, report = becomes(constant_condition, text)
    assert f"{steps} steps" in report.patches[0].what
    assert after.graph.node[0].op_type == "Loop"


def test_a_trip_count_below_that_counts() -> None:
    _, report = becomes(constant_condition, loop(BODY, steps=2, go_on="q = Mul (i, i) c1 = Less (q, seven)", **COUNTED))
    assert "2 steps" in report.patches[0].what


def test_states_made_from_constants_alone_may_decide_too() -> None:
    text = loop(
        "h1 = Add (h, h) y = Neg (h)",
        steps=50,
        inputs="int64 k, float[2] h",
        outputs="int64 k1, float[2] h1, float[2] y",
        given="float[2] s",
        operands="k0, s",
        outer="kT, z, ys",
        weights=WEIGHTS,
        go_on="k1 = Mul (k, two) r = Mod (k1, seven) e = Equal (r, k0) c1 = Not (e)",
    )
    _, report = becomes(constant_condition, text)
    assert "3 steps" in report.patches[0].what


@pytest.mark.parametrize(
    "go_on",
    [
        "m1 = ReduceMax <keepdims = 0> (h) q = Cast <to = 7> (m1) c1 = Less (q, seven)",
        "n = Cast <to = 1> (i) r = Mul (n, n) q = Cast <to = 7> (r) c1 = Less (q, seven)",
        "q = Mod (seven, i) c1 = Less (q, seven)",
        "q = Gather (table, seven) c1 = Cast <to = 9> (q)",
        "q = Mul (i, i) c1 = Less (q, fed)",
    ],
    ids=["data", "floats", "division by what may be 0", "failing", "a bound that is fed"],
)
def test_other_conditions_stay(go_on: str) -> None:
    stays(constant_condition, loop(BODY, steps=9, go_on=go_on, **COUNTED | {"given": "float[2] s, int64 fed"}), check=False)


def test_a_condition_that_holds_for_ever_stays_and_says_so() -> None:
    text = loop(BODY, steps=10**9, go_on="q = Mul (i, i) c1 = GreaterOrEqual (q, k0)", **COUNTED | {"weights": "int64 k0 = {0}"})
    stays(constant_condition, text, "LOOP-CONDITION", detail="still holds after 4096 steps")


def test_names_of_the_body_may_be_any() -> None:
    text = loop(
        "h1 = Add (h, h) y = Neg (h)",
        steps=50,
        inputs="int64 count, float[2] h",
        outputs="int64 after, float[2] h1, float[2] y",
        given="float[2] s",
        operands="k0, s",
        outer="kT, z, ys",
        weights=WEIGHTS,
        go_on="after = Mul (count, two) one = Mod (after, seven) total = Equal (one, k0) c1 = Not (total)",
    )
    becomes(constant_condition, text)
