import pytest

from rewrites.normal_form import dead_code, loop_to_scan, own_outputs
from rewrites.rules import RULES
from tests.rewrites.apply import apply, patches, read
from tests.rewrites.fission.harness import data
from tests.rewrites.normal_form.harness import becomes, loop, scan, stays

INSIDE = "x = Gather (xs, i) h1 = Add (h, x) y = Tanh (h)"


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 16, 18, 21, 25])
def test_rows_read_at_the_number_of_the_step_are_a_scan_input(opset: int) -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop(INSIDE),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (h) }> (s, xs) }""",
        opset=opset,
    )


def test_the_number_of_the_step_is_scanned_where_it_is_read_otherwise() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop("f = Cast <to = 1> (i) h1 = Add (h, f) y = Tanh (h)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64[3] n = {0, 1, 2}> {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, i) => (h1, y) {
                f = Cast <to = 1> (i)  h1 = Add (h, f)  y = Tanh (h)
            }> (s, n) }""",
    )


def test_something_is_scanned_where_the_body_reads_nothing_of_the_step() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop("h1 = Add (h, h) y = Tanh (h)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64[3] n = {0, 1, 2}> {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, i) => (h1, y) { h1 = Add (h, h)  y = Tanh (h) }> (s, n) }""",
    )


def test_of_a_longer_tensor_the_first_rows_are_scanned() -> None:
    becomes(
        [loop_to_scan, dead_code],
        loop(INSIDE, given="float[2] s, float[7,2] xs"),
        """g (float[2] s, float[7,2] xs) => (float[2] z, float[N,2] ys) <int64[1] a = {0}, int64[1] b = {3}> {
            x3 = Slice (xs, a, b, a)
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Tanh (h) }> (s, x3) }""",
    )


def test_of_a_tensor_of_unknown_length_the_rows_are_gathered_so_that_too_few_fail() -> None:
    text = loop(INSIDE, given="float[2] s, float[T,2] xs")
    after, _ = becomes(loop_to_scan, text, T=5)
    assert [node.op_type for node in after.graph.node] == ["Gather", "Scan"]
    with pytest.raises(Exception, match=r"out of data bounds|indices element"):
        becomes(loop_to_scan, text, T=2)


def test_rows_that_are_not_there_stay_in_the_loop() -> None:
    stays(
        loop_to_scan,
        loop(INSIDE, given="float[2] s, float[2,2] xs"),
        "LOOP-OUT-OF-RANGE",
        detail="'xs' has 2 rows, but is read at 0..2",
    )


READS = {
    "of another axis": "x = Gather <axis = 1> (xs, i) h1 = Add (h, x) y = Tanh (h)",
    "of a state": "x = Gather (h, i0) i0 = Identity (i) h1 = Add (h, x) y = Tanh (h)",
    "at another number": "j = Mul (i, i) k = Mod (j, three) x = Gather (xs, k) h1 = Add (h, x) y = Tanh (h)",
    "of a number": "x = Gather (pick, i) w = Gather (xs, x) h1 = Add (h, w) y = Tanh (h)",
    "twice": "x = Gather (xs, i) w = Gather (xs, i) h1 = Add (h, x) y = Mul (w, x)",
    "and of its number": "x = Gather (xs, i) f = Cast <to = 1> (i) h1 = Add (h, x) y = Add (x, f)",
    "in a branch": "h1 = Add (h, h) y = If (c) <then_branch = p () => (float[2] u) { u = Gather (xs, i) }, "
    "else_branch = q () => (float[2] v) { v = Identity (h) }>",
    "in a nested loop": "h1 = Add (h, h) y = Loop <body = d (int64 j, bool e, float[2] g) => (bool e, float[2] g1) "
    "{ u = Gather (xs, i) w = Gather (xs, j) a = Add (g, u) g1 = Add (a, w) }> (three, , h)",
    "and returned": "x = Gather (xs, i) h1 = Identity (x) y = Gather (xs, i)",
}


@pytest.mark.parametrize("case", READS)
def test_every_way_to_read_the_step_keeps_its_numbers(case: str) -> None:
    shape = "float[2,3] xs" if "axis" in case else "float[3,2] xs"
    inside = READS[case].replace("x = Gather (h, i0) i0 = Identity (i)", "i0 = Min (i, one) x = Gather (h, i0)")
    text = loop(inside, given=f"float[2] s, {shape}", weights="int64 three = {3}, int64 one = {1}, int64[3] pick = {2, 0, 1}")
    becomes(loop_to_scan, text)
    apply(text, RULES, feeds=data(read(text)))


def test_a_step_number_of_one_element_is_scanned_as_such() -> None:
    text = loop("x = Gather (xs, i) v = Squeeze (x, k) h1 = Add (h, v) y = Tanh (h)", weights="int64[1] k = {0}").replace(
        "int64 i,", "int64[1] i,"
    )
    apply(text, [loop_to_scan], feeds=data(read(text, check=False)), check=False)


def test_returned_inputs_get_nodes_of_their_own() -> None:
    text = loop(
        "x = Gather (xs, i)",
        outputs="float[2] x, float[2] h, bool c, bool c1",
        outer="z, ys, p, q",
        results="float[2] z, float[N,2] ys, bool[N] p, bool[N] q",
    )
    becomes(loop_to_scan, text)


@pytest.mark.parametrize("kind", ["float16", "double", "bool", "int8"])
def test_every_type_is_carried(kind: str) -> None:
    text = loop(
        "x = Gather (xs, i) h1 = Identity (x) y = Identity (h)",
        inputs=f"{kind}[2] h",
        outputs=f"{kind}[2] h1, {kind}[2] y",
        given=f"{kind}[2] s, {kind}[3,2] xs",
        results=f"{kind}[2] z, {kind}[N,2] ys",
    )
    becomes(loop_to_scan, text)


def test_rows_of_strings_are_gathered_as_before() -> None:
    """onnxruntime copies only the first string of each row; strings one by one it reads well."""
    text = loop(
        "x = Gather (xs, i) h1 = StringConcat (h, x) y = Identity (h)",
        inputs="string[2] h",
        outputs="string[2] h1, string[2] y",
        given="string[2] s, string[3,2] xs",
        results="string[2] z, string[N,2] ys",
    )
    after, _ = becomes(loop_to_scan, text, opset=20)
    assert any(node.op_type == "Gather" for node in after.graph.node[-1].attribute[0].g.node)
    one = text.replace("string[3,2] xs", "string[3] xs")
    after, _ = becomes(loop_to_scan, one, opset=20)
    assert not any(node.op_type == "Gather" for node in after.graph.node[-1].attribute[0].g.node)


def test_a_long_count_is_computed_not_stored() -> None:
    text = loop("f = Cast <to = 1> (i) h1 = Mul (h, f) y = Tanh (h)", steps=9000)
    after, _ = apply(text, [loop_to_scan], feeds=data(read(text)))
    assert [node.op_type for node in after.graph.node][-2:] == ["Range", "Scan"]
    assert not any(9000 in tensor.dims for tensor in after.graph.initializer)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (loop(INSIDE, steps=None), "LOOP-TRIP-COUNT"),
        (loop(INSIDE, steps=0), "LOOP-EMPTY"),
        (loop(INSIDE, steps=-3), "LOOP-EMPTY"),
        (loop(INSIDE, go_on="one = Constant <value_int = 1> () c1 = Less (i, one)"), "LOOP-CONDITION"),
        (loop(INSIDE, condition="t", given="float[2] s, float[3,2] xs, bool t"), "LOOP-CONDITION"),
        (loop(INSIDE, condition="t", weights="bool t = {0}"), "LOOP-CONDITION"),
    ],
    ids=["fed", "none", "negative", "computed", "fed condition", "false"],
)
def test_a_loop_without_a_known_number_of_steps_stays(text: str, code: str) -> None:
    stays(loop_to_scan, text, code)


def test_a_count_that_can_be_fed_is_not_known() -> None:
    stays(loop_to_scan, loop(INSIDE, given="float[2] s, float[3,2] xs, int64 m"), "LOOP-TRIP-COUNT")


def test_before_opset_9_there_is_no_such_scan() -> None:
    stays(loop_to_scan, loop(INSIDE), "LOOP-OPSET", opset=8)


def test_a_loop_with_a_sequence_stays() -> None:
    text = loop(
        "x = Gather (xs, i) h1 = SequenceInsert (h, x) y = Tanh (x)",
        inputs="seq(float[2]) h",
        outputs="seq(float[2]) h1, float[2] y",
        before="q = SequenceConstruct (s)",
        operands="q",
        results="seq(float[2]) z, float[N,2] ys",
    )
    stays(loop_to_scan, text, "LOOP-SEQUENCE")


def test_a_state_that_changes_its_shape_stays() -> None:
    text = loop(
        "h1 = Concat <axis = 0> (h, s) y = Gather (xs, i)",
        inputs="float[M] h",
        outputs="float[K] h1, float[2] y",
        results="float[L] z, float[N,2] ys",
    )
    stays(loop_to_scan, text, "LOOP-STATE-SHAPE")


def test_a_scan_is_one_already() -> None:
    stays(loop_to_scan, scan("h1 = Add (h, x) y = Tanh (h)"))


def test_the_result_is_sound_for_the_other_rules() -> None:
    text = loop("", outputs="float[2] h, int64 i, bool c", outer="z, n, k", results="float[2] z, int64[N] n, bool[N] k")
    after, report = apply(text, RULES)
    assert "Loop" not in [node.op_type for node in after.graph.node]
    assert own_outputs.NAME in patches(report)
