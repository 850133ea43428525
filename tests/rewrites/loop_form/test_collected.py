"""States that grow by what each step adds, and sequences that collect it."""

import pytest

from rewrites.cleanup import dead_code
from rewrites.loop_form import collected_sequences, grown_by_concat, loop_to_scan, sequence_reads
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays
from tests.support.runtime import ort_run

ROW = "x = Gather (xs, i) h1 = Add (h, x) u = Unsqueeze (h1, zero)"


def growing(inside: str, *, rank: int = 2, **changes) -> str:
    sizes = ",".join(f"T{i}" for i in range(rank))
    back = ",".join(f"U{i}" for i in range(rank))
    return loop(
        f"{ROW} {inside}",
        inputs=f"float[2] h, float[{sizes}] t",
        outputs=f"float[2] h1, float[{back}] t1",
        operands="s, t0",
        **{
            "given": "float[2] s, float[3,2] xs, float[4,2] t0",
            "results": f"float[2] z, float[{','.join(f'R{i}' for i in range(rank))}] ys",
            "weights": "int64[1] zero = {0}, int64[1] one = {1}",
            **changes,
        },
    )


def test_a_tensor_that_grows_from_nothing_is_the_stack() -> None:
    becomes(
        grown_by_concat,
        growing(
            "t1 = Concat <axis = 0> (t, u)",
            given="float[2] s, float[3,2] xs",
            weights="int64[1] zero = {0}, float[0,2] t0 = {}",
            results="float[2] z, float[3,2] ys",
        ),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[?,2] ys) <int64 m = {3}, int64[1] a = {0}, int64[1] d = {0}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, y) {
                c1 = Identity (c)  x = Gather (xs, i)  h1 = Add (h, x)  u = Unsqueeze (h1, a)  y = Squeeze (u, d)
            }> (m, , s) }""",
    )


GROWN = {
    "at its end": growing("t1 = Concat <axis = 0> (t, u)"),
    "in front": growing("t1 = Concat <axis = 0> (u, t)"),
    "by two rows": growing("t1 = Concat <axis = 0> (t, u, u)"),
    "by two rows in front": growing("w = Neg (u) t1 = Concat <axis = 0> (u, w, t)"),
    "along another axis": growing("w = Unsqueeze (h1, one) t1 = Concat <axis = -1> (t, w)", given="float[2] s, float[3,2] xs, float[2,4] t0"),
    "by two columns": growing("w = Unsqueeze (h1, one) t1 = Concat <axis = 1> (t, w, w)", given="float[2] s, float[3,2] xs, float[2,4] t0"),
    "by what is there": growing("t1 = Concat <axis = 0> (t, k)", given="float[2] s, float[3,2] xs, float[4,2] t0, float[1,2] k"),
}  # fmt: skip


@pytest.mark.parametrize("case", GROWN)
@pytest.mark.parametrize("steps", [3, 0])
def test_every_way_to_grow_keeps_its_numbers(case: str, steps: int) -> None:
    text = GROWN[case].replace("m = {3}", f"m = {{{steps}}}")
    becomes(grown_by_concat, text)
    if steps:
        becomes([grown_by_concat, loop_to_scan], text)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_a_growing_tensor_of_any_width_keeps_its_sizes_without_a_step(size: int) -> None:
    text = growing(
        "t1 = Concat <axis = 0> (t, u)",
        steps=None,
        given="float[B] s, float[T,B] xs, float[K,B] t0",
        results="float[B] z, float[R0,B] ys",
        before="n = Shape (xs) m = Gather (n, o)",
        weights="int64[1] zero = {0}, int64 o = {0}",
    )
    text = text.replace(", int64 m) =>", ") =>").replace("float[2] h", "float[B] h")
    becomes(grown_by_concat, text, T=size, B=3, K=2)
    becomes([grown_by_concat, loop_to_scan], text, T=size, B=3, K=2)


@pytest.mark.parametrize(
    "inside", ["t1 = Concat <axis = 0> (t, u)", "t1 = Concat <axis = 0> (u, t)", "t1 = Concat <axis = 0> (t, u, u)"]
)
@pytest.mark.parametrize(("steps", "rows"), [(3, 0), (0, 0), (3, 2), (0, 2)])
def test_a_tensor_without_elements_may_have_other_sizes_than_what_is_added(inside: str, steps: int, rows: int) -> None:
    text = growing(
        inside,
        steps=None,
        given="float[B] s, float[T,B] xs, float[K,C] t0",
        results="float[B] z, float[R0,R1] ys",
        before="n = Shape (xs) m = Gather (n, o)",
        weights="int64[1] zero = {0}, int64 o = {0}",
    )
    text = text.replace(", int64 m) =>", ") =>").replace("float[2] h", "float[B] h")
    becomes(grown_by_concat, text, T=steps, B=3, K=rows, C=3 if rows else 5)


@pytest.mark.parametrize("steps", [3, 0])
def test_a_tensor_known_to_have_no_elements_keeps_its_other_sizes_without_a_step(steps: int) -> None:
    text = growing(
        "t1 = Concat <axis = 0> (t, u)",
        steps=None,
        given="float[2] s, float[T,2] xs, float[0,5] t0",
        results="float[2] z, float[R0,R1] ys",
        before="n = Shape (xs) m = Gather (n, o)",
        weights="int64[1] zero = {0}, int64 o = {0}",
    )
    becomes(grown_by_concat, text.replace(", int64 m) =>", ") =>"), T=steps)


STAYING = {
    "read": growing("t1 = Concat <axis = 0> (t, u) y = ReduceSum <keepdims = 0> (t)").replace("t1)", "t1, float y)", 1).replace("ys)", "ys, float[N] w)", 1).replace("z, ys =", "z, ys, w ="),
    "and its size is asked for": growing("t1 = Concat <axis = 0> (t, u) y = Shape (t1)").replace("t1)", "t1, int64[2] y)", 1).replace("ys)", "ys, int64[3,2] w)", 1).replace("z, ys =", "z, ys, w ="),
    "and is read when it has grown": growing("t1 = Concat <axis = 0> (t, u) y = ReduceSum <keepdims = 0> (t1)").replace("t1)", "t1, float y)", 1).replace("ys)", "ys, float[N] w)", 1).replace("z, ys =", "z, ys, w ="),
    "and a branch reads a copy": growing("t2 = Concat <axis = 0> (u, t) t1 = Identity (t2) y = If (c) <then_branch = p () => (float a) { a = ReduceSum <keepdims = 0> (t2) }, else_branch = q () => (float b) { b = ReduceSum <keepdims = 0> (t1) }>").replace("t1)", "t1, float y)", 1).replace("ys)", "ys, float[N] w)", 1).replace("z, ys =", "z, ys, w ="),
    "by itself": growing("t1 = Concat <axis = 0> (t, t)"),
    "by what has any size": growing("w = Compress <axis = 0> (xs, g) g = Cast <to = 9> (x)").replace("w = Compress <axis = 0> (xs, g) g = Cast <to = 9> (x)", "g = Cast <to = 9> (x) w = Compress <axis = 0> (xs, g) t1 = Concat <axis = 0> (t, w)"),
    "by rows of which there are none": growing("e = ConstantOfShape (none) t1 = Concat <axis = 0> (t, e)", weights="int64[1] zero = {0}, int64[2] none = {0, 4}"),
    "in front by rows of which there are none": growing("e = ConstantOfShape (none) t1 = Concat <axis = 0> (e, t)", weights="int64[1] zero = {0}, int64[2] none = {0, 4}"),
    "twice by rows of which there are none": growing("e = ConstantOfShape (none) t1 = Concat <axis = 0> (t, e, e)", weights="int64[1] zero = {0}, int64[2] none = {0, 2}"),
    "in the middle": growing("t1 = Concat <axis = 0> (u, t, u)"),
    "beside a state that changes": growing("t1 = Concat <axis = 0> (t, u)").replace("h1 = Add (h, x)", "h0 = Concat <axis = 0> (h, h) h1 = Identity (h0) e = Gather (xs, i)").replace("Unsqueeze (h1", "Unsqueeze (e").replace("float[2] h", "float[H] h").replace("float[2] z", "float[Z] z"),
}  # fmt: skip


@pytest.mark.parametrize("case", STAYING)
def test_what_grows_otherwise_stays(case: str) -> None:
    stays(grown_by_concat, STAYING[case], check=False)


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("sizes", ["{0, 4}", "{0, 2}"])
def test_rows_of_which_there_are_none_keep_the_sizes_of_the_tensor(rows: int, sizes: str) -> None:
    weights = f"int64[1] zero = {{0}}, int64[2] none = {sizes}"
    given = f"float[2] s, float[3,2] xs, float[{rows},2] t0"
    text = growing("e = ConstantOfShape (none) t1 = Concat <axis = 0> (t, e)", weights=weights, given=given)
    model = read(text.replace("Unsqueeze (h1, zero)", "Unsqueeze <axes = [0]> (h1)"), 10, check=False)
    after, _ = apply(model, [grown_by_concat, loop_to_scan], check=False)
    feeds = data(model)
    assert (
        [result.shape for result in ort_run(after, feeds)]
        == [result.shape for result in ort_run(model, feeds)]
        == [(2,), (rows, 2)]
    )


def collecting(inside: str, join: str, **changes) -> str:
    return loop(
        f"x = Gather (xs, i) h1 = Add (h, x) {inside}",
        inputs="float[2] h, seq(float[2]) q",
        outputs="float[2] h1, seq(float[2]) q1",
        operands="s, q0",
        before="q0 = SequenceEmpty ()",
        outer="z, qs",
        after=join,
        **{"results": "float[2] z, float[N,M] ys", **changes},
    )


STACKED = "ys = ConcatFromSequence <axis = 0, new_axis = 1> (qs)"


def test_a_sequence_that_is_stacked_is_a_stacked_result() -> None:
    becomes(
        collected_sequences,
        collecting("q1 = SequenceInsert (q, h1)", STACKED),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,M] ys) <int64 m = {3}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, h1) { c1 = Identity (c)  x = Gather (xs, i)  h1 = Add (h, x) }> (m, , s) }""",
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [0, 1])
def test_a_sequence_is_joined_along_any_axis(axis: int, new: int) -> None:
    if axis == 1 and not new:
        axis = -1
    text = collecting("q1 = SequenceInsert (q, h1)", f"ys = ConcatFromSequence <axis = {axis}, new_axis = {new}> (qs)")
    text = text if new else text.replace("float[N,M] ys", "float[N] ys")
    becomes(collected_sequences, text)
    after, _ = becomes([collected_sequences, loop_to_scan], text)
    assert "Scan" in [node.op_type for node in after.graph.node]


OTHERWISE = {
    "at a place": collecting("q1 = SequenceInsert (q, h1, o)", STACKED, weights="int64 o = {0}"),
    "twice": collecting("q2 = SequenceInsert (q, h1) q1 = SequenceInsert (q2, x)", STACKED),
    "and read": collecting("q1 = SequenceInsert (q, h1)", f"{STACKED} l = SequenceLength (qs)", results="float[2] z, float[N,M] ys, int64 l"),
    "joined along no axis": collecting("q1 = SequenceInsert (q, h1)", STACKED.replace("axis = 0", "axis = 3")),
    "not from nothing": collecting("q1 = SequenceInsert (q, h1)", STACKED).replace("SequenceEmpty ()", "SequenceConstruct (s)"),
    "and asked for its new length in the body": collecting("q1 = SequenceInsert (q, h1) l = SequenceLength (q1) y = Cast <to = 1> (l)", STACKED).replace("q1)", "q1, float y)", 1).replace("ys)", "ys, float[3] w)", 1).replace("z, qs =", "z, qs, w ="),
    "and asked for its length in the body": collecting("q1 = SequenceInsert (q, h2) l = SequenceLength (q) f = Cast <to = 1> (l) h2 = Add (h1, f)", STACKED).replace("q1 = SequenceInsert (q, h2) l = SequenceLength (q) f = Cast <to = 1> (l) h2 = Add (h1, f)", "l = SequenceLength (q) f = Cast <to = 1> (l) h2 = Add (h1, f) q1 = SequenceInsert (q, h2)"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_is_collected_otherwise_stays(case: str) -> None:
    stays(collected_sequences, OTHERWISE[case])
    stays(loop_to_scan, OTHERWISE[case], "LOOP-SEQUENCE")


SPLIT = "q = SplitToSequence <axis = {}, keepdims = {}> (xs)"


@pytest.mark.parametrize(("axis", "keep", "use"), [(0, 0, ""), (0, 1, "zero"), (1, 0, ""), (-1, 1, "one")])
@pytest.mark.parametrize("place", ["i", "j"])
def test_a_tensor_of_a_split_is_read_as_its_row(axis: int, keep: int, use: str, place: str) -> None:
    rest = f"x = Squeeze (v, {use})" if use else "x = Identity (v)"
    text = loop(
        f"j = Sub (i, three) v = SequenceAt (q, {place}) {rest} h1 = Add (h, x) y = Tanh (h)",
        before=SPLIT.format(axis, keep),
        given=f"float[2] s, float[{'3,2' if axis == 0 else '2,3'}] xs",
        weights="int64 three = {3}, int64[1] zero = {0}, int64[1] one = {1}",
    )
    becomes(sequence_reads, text)
    becomes([sequence_reads, dead_code, loop_to_scan], text)


@pytest.mark.parametrize("given", ["float[2] s, float[4,2] xs, int64[2] n", "float[2] s, float[4,2] xs, int64 n"])
def test_pieces_of_other_sizes_are_read_as_before(given: str) -> None:
    text = loop(
        "v = SequenceAt (q, o) x = ReduceSum <keepdims = 0> (v, zero) h1 = Add (h, x) y = Tanh (h)",
        before="q = SplitToSequence (xs, n)",
        given=given,
        weights="int64 o = {0}, int64[1] zero = {0}",
    )
    stays(sequence_reads, text)


def test_pieces_of_size_one_that_were_asked_for_are_rows() -> None:
    text = loop(
        "v = SequenceAt (q, i) x = Squeeze (v, zero) h1 = Add (h, x) y = Tanh (h)",
        before="q = SplitToSequence (xs, n)",
        weights="int64 n = {1}, int64[1] zero = {0}",
    )
    becomes(sequence_reads, text)


def test_scans_are_left_alone() -> None:
    for rule in (grown_by_concat, collected_sequences, sequence_reads):
        stays(rule, scan("h1 = Add (h, x) y = Tanh (h)"))


def test_what_a_loop_without_steps_collects_is_empty() -> None:
    text = collecting("q1 = SequenceInsert (q, h1)", STACKED).replace("m = {3}", "m = {0}")
    after, _ = apply(text, [collected_sequences])
    assert ort_run(after, data(read(text)))[1].shape == (0, 2)
