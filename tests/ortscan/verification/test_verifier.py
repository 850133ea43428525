"""The verdict: which differences are detected, which are not, and the messages."""

import ctypes
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from ortscan.modelio import load, source
from ortscan.verification import verify
from ortscan.verification.result import Case, OutputError, Verification
from rewrites.base.errors import ModelFileError, OptionError
from tests.support.text import model_from_text

ELMAN = """
g (float[T, B, 4] x, float[B, 3] h, float[4, 3] w, float[3, 3] r) => (float[B, 3] last, float[T, B, 3] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[B, 3] s, float[B, 4] xt) => (float[B, 3] n, float[B, 3] yt) {
    p = MatMul(xt, w)
    q = MatMul(s, r)
    a = Add(p, q)
    n = Tanh(a)
    yt = Identity(n)
  }> (h, x)
}
"""
HOISTED = """
g (float[T, B, 4] x, float[B, 3] h, float[4, 3] w, float[3, 3] r) => (float[B, 3] last, float[T, B, 3] y) {
  px = MatMul(x, w)
  last, y = Scan <num_scan_inputs = 1, body = b (float[B, 3] s, float[B, 3] p) => (float[B, 3] n, float[B, 3] yt) {
    q = MatMul(s, r)
    a = Add(q, p)
    n = Tanh(a)
    yt = Identity(n)
  }> (h, px)
}
"""
SUM = "g (float[T, 4] x) => (float[1, 4] y) { a = Constant <value_ints = [0]> () y = ReduceSum <keepdims = 1> (x, a) }"
FIRST = "g (float[T, 4] x) => (float[1, 4] y) { i = Constant <value_ints = [0]> () y = Gather(x, i) }"


def model(text, opset=18):
    return model_from_text(text, opset)


def test_errors_are_told_in_units_of_the_tolerance():
    errors = {"y": OutputError(2e-6, 1e-6, 1e-4), "z": OutputError(1e-5, 1e-6, 1e-2), "n": OutputError(0.0, 0.0, 0.0)}
    outcome = Verification(True, [Case({"T": 3}, {}, "equal", outputs=errors)], [])
    assert outcome.to_dict()["worst_error"] == pytest.approx(0.02)
    assert outcome.summary() == "equal on 1 case (worst error 0.02 of what is allowed): T in 3"


def test_sizes_that_the_caller_chose_are_named_as_not_varied():
    outcome = verify(model(SUM), model(SUM), dims={"T": 5}, level="quick")
    assert outcome.summary().splitlines()[-1] == "compared only at T=5 (dims={...})"
    fixed = verify(model(SUM), model(SUM.replace("T, 4", "5, 4")), dims={"T": 5}, level="quick")
    assert "compared only" not in fixed.summary()


def test_each_note_has_a_line():
    outcome = replace(verify(model(SUM), model(SUM), level="quick"), notes=("one", "two"))
    assert outcome.summary().splitlines()[1:3] == ["one", "two"]


def test_models_that_compute_the_same_are_ok():
    outcome = verify(model(ELMAN), model(HOISTED))
    assert outcome.ok
    assert outcome.first_difference is None
    assert [output.status for output in outcome.outputs] == ["equal", "equal"]
    assert all(0 < output.allowed < 1e-3 for output in outcome.outputs)
    ran = [case for case in outcome.cases if case.status == "equal"]
    assert {case.dims["T"] for case in ran} >= {1, 2, 3, 7, 33}
    assert {case.dims["B"] for case in ran} >= {1, 2, 3, 7, 61}


def test_the_summary_says_what_was_compared():
    text = verify(model(SUM), model(SUM)).summary()
    assert text.startswith("equal on 22 cases (worst error 0): T in 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 33, 131, 263")


def test_a_difference_that_one_step_hides_is_found():
    outcome = verify(model(SUM), model(FIRST))
    assert not outcome.ok
    assert {case.dims["T"]: case.status for case in outcome.cases if not case.varied} == {
        **dict.fromkeys((2, 3, 4, 5, 6, 7, 8, 11, 16, 33, 131, 263), "different"), 1: "equal", 0: "fails only after"
    }  # fmt: skip
    first = outcome.first_difference
    assert (first.output, first.case.dims, len(first.index)) == ("y", {"T": 3}, 2)
    assert abs(first.before - first.after) > 1e-3
    assert "output 'y' at [0, " in outcome.summary()


def test_the_outcome_is_true_exactly_when_ok():
    assert verify(model(SUM), model(SUM))
    assert not verify(model(SUM), model(FIRST))


def test_a_wrong_state_is_found_beside_a_right_output():
    wrong = ELMAN.replace("n = Tanh(a)\n    yt = Identity(n)", "yt = Tanh(a)\n    n = Sin(a)")
    outcome = verify(model(ELMAN), model(wrong))
    assert [output.status for output in outcome.outputs] == ["different", "different"]
    assert next(case.outputs["y"].reason for case in outcome.cases if case.dims.get("T") == 1 and case.outputs) is None


def test_a_result_that_fails_is_not_ok_and_quotes_onnxruntime():
    fails = model("g (float[T, 4] x) => (float[1, 4] y) { c = Constant <value_ints = [1, 4]> () y = Reshape(x, c) }")
    outcome = verify(model(SUM), fails)
    assert not outcome.ok
    assert "fails only after" in [case.status for case in outcome.cases]
    assert "the result fails where the original runs" in outcome.summary()
    assert "Reshape" in outcome.problems[0]
    assert "\n" not in outcome.problems[0]


def test_a_result_that_does_not_load_is_not_ok():
    broken = model_from_text("g (float[T, 4] x) => (float[1, 4] y) { y = NoSuchOperator(x) }", 18, check=False)
    outcome = verify(model(SUM), broken)
    assert not outcome.ok
    assert "the result does not load" in outcome.summary()
    assert [output.status for output in outcome.outputs] == ["not compared"]


SUM_OF = "{{ a = Constant <value_ints = [0]> () {} }}".format


@pytest.mark.parametrize(
    ("interface", "body", "message"),
    [
        ("(float[T, 4] z) => (float[1, 4] y)", "y = ReduceSum(z, a)", "lost 'x' and gained 'z'"),
        ("(float[T, 4] x) => (float[1, 4] v)", "v = ReduceSum(x, a)", "outputs differ"),
        ("(float[T, 4] x, float[T, 4] z) => (float[1, 4] y)", "y = ReduceSum(x, a)", "gained 'z'"),
        (
            "(double[T, 4] x) => (float[1, 4] y)",
            "d = ReduceSum(x, a) y = Cast <to = 1> (d)",
            "input 'x' is tensor(float) before and tensor(double) after",
        ),
        ("(float[T, 4] x) => (float[4] y)", "y = ReduceSum <keepdims = 0> (x, a)", "output 'y' has rank 2 before and 1 after"),
        ("(float[T, 5] x) => (float[1, 5] y)", "y = ReduceSum(x, a)", "size 4 in axis 1"),
    ],
)
def test_another_interface_is_not_ok_and_named(interface, body, message):
    outcome = verify(model(SUM), model(f"g {interface} {SUM_OF(body)}"))
    assert not outcome.ok
    assert not outcome.cases
    assert message in outcome.summary()


def test_another_order_of_inputs_is_not_ok():
    one = model("g (float[N] a, float[N] b) => (float[N] y) { y = Sub(a, b) }")
    two = model("g (float[N] b, float[N] a) => (float[N] y) { y = Sub(a, b) }")
    assert "another order: 'a', 'b' before, 'b', 'a' after" in verify(one, two).summary()


def test_losing_a_default_that_could_be_overridden_is_not_ok():
    one = model("g (float[N] x, float[1] c = {2}) => (float[N] y) { y = Mul(x, c) }")
    two = model("g (float[N] x) => (float[N] y) <float[1] c = {2}> { y = Mul(x, c) }")
    assert verify(one, one).ok
    assert "input 'c', which had a default that could be overridden, is missing" in verify(one, two).problems


def test_a_default_taken_for_a_constant_is_found_out():
    one = model("g (float[N] x, float[1] c = {2}) => (float[N] y) { y = Mul(x, c) }")
    two = model("g (float[N] x, float[1] c = {2}) => (float[N] y) { y = Add(x, x) }")
    outcome = verify(one, two)
    assert not outcome.ok
    assert outcome.first_difference.case.varied == {"defaults": "replaced"}


def test_nothing_compared_is_not_ok():
    only_sevens = model(
        """g (float[2] x) => (float[2] y) <float seven = {7}, int64 one = {1}, int64 far = {99}> {
          e = Equal(x, seven) i = Cast <to = 7> (e) a = Sub(i, one) b = Mul(a, far) y = Gather(x, b)
        }"""
    )
    outcome = verify(only_sevens, only_sevens)
    assert not outcome.ok
    assert outcome.summary().startswith("nothing was compared: the original ran in none of")
    assert verify(only_sevens, only_sevens, inputs={"x": np.full(2, 7, np.float32)}).ok


def test_outputs_that_are_always_nan_prove_nothing():
    nan = model("g (float[N] x) => (float[N] y) { a = Sub(x, x) y = Div(a, a) }")
    outcome = verify(nan, nan)
    assert not outcome.ok
    assert "not proven equal: every output was NaN in every case" in outcome.summary()


def test_nan_and_infinities_equal_themselves_and_nothing_else():
    one = model("g (float[N] x) => (float[N] y, float[N] z) { y = Log(x) z = Identity(x) }")
    two = model("g (float[N] x) => (float[N] y, float[N] z) { a = Abs(x) y = Log(a) z = Identity(x) }")
    assert verify(one, one).ok
    assert "is nan before" in verify(one, two).first_difference.reason


def test_random_outputs_are_set_aside_and_the_others_compared():
    text = "g (float[N] x) => (float[N] r, float[N] y) { r = RandomNormalLike(x) y = Relu(x) }"
    outcome = verify(model(text), model(text))
    assert outcome.ok
    assert [output.status for output in outcome.outputs] == ["not comparable", "equal"]
    assert "output 'r' was not compared" in outcome.summary()
    wrong = verify(model(text), model(text.replace("Relu", "Elu")))
    assert not wrong.ok


def test_a_model_of_random_outputs_alone_is_not_ok():
    noise = model("g (float[N] x) => (float[N] y) { y = RandomNormalLike(x) }")
    outcome = verify(noise, noise)
    assert not outcome.ok
    assert "every output of the original differs from run to run" in outcome.summary()


def test_a_static_model_gets_several_draws_and_kinds_of_values():
    text = "g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"
    outcome = verify(model(text), model(text))
    assert outcome.ok
    assert len(outcome.cases) == 12
    kinds = {"normal", "large", "mixed", "zeros", "huge", "tiny", "infinite", "NaN"}
    assert {case.varied.get("values", "normal") for case in outcome.cases} == kinds
    assert not verify(model(text), model(text.replace("Relu", "Identity"))).ok


def test_rows_of_padding_are_among_the_inputs():
    one = model(
        """g (float[T, B, 4] x) => (float[T, B, 4] y) {
          z = Constant <value_float = 0.0> () a = Abs(x) axis = Constant <value_ints = [2]> ()
          m = ReduceMax <keepdims = 1> (a, axis) masked = Equal(m, z) one = Constant <value_float = 1.0> ()
          y = Where(masked, one, x)
        }"""
    )
    two = model("g (float[T, B, 4] x) => (float[T, B, 4] y) { y = Identity(x) }")
    outcome = verify(one, two)
    assert {case.varied.get("values") for case in outcome.cases if case.status == "different"} == {"mixed", "zeros"}


def test_a_difference_only_large_values_show_is_found():
    one = model("g (float[2, 3] x) => (float[2, 3] y) { y = Identity(x) }")
    two = model("g (float[2, 3] x) => (float[2, 3] y) { a = Constant <value_float = 6.0> () y = Min(x, a) }")
    outcome = verify(one, two)
    assert {case.varied.get("values") for case in outcome.cases if case.status == "different"} >= {"large", "huge"}


def test_tolerances_can_be_set():
    one = model("g (float[N] x) => (float[N] y) { y = Identity(x) }")
    two = model("g (float[N] x) => (float[N] y) { c = Constant <value_float = 1.001> () y = Mul(x, c) }")
    assert not verify(one, two).ok
    assert verify(one, two, rtol=1e-2).ok
    assert verify(one, two, atol=1.0).ok


def test_a_model_that_computes_in_float16_inside_is_measured_by_it():
    def rounded(kind, factor="1.002"):
        return model(
            f"""g (float[2, 3] x) => (float[2, 3] y) {{
              h = Cast <to = {kind}> (x) f = Cast <to = 1> (h) c = Constant <value_float = {factor}> () y = Mul(f, c)
            }}"""
        )

    assert verify(rounded(10, "1.0"), rounded(10)).ok
    assert not verify(rounded(10, "1.0"), rounded(10, "1.1")).ok
    assert not verify(rounded(1, "1.0"), rounded(1)).ok
    assert not verify(rounded(1, "1.0"), rounded(10)).ok


def test_the_same_seed_gives_the_same_outcome_and_another_does_not():
    one, two = model(SUM), model(FIRST)
    results = [verify(one, two, seed=seed).first_difference.before for seed in (0, 0, 1)]
    assert results[0] == results[1] != results[2]


def test_models_come_as_path_bytes_proto_or_ir(tmp_path):
    proto = model(SUM)
    onnx.save(proto, tmp_path / "m.onnx")
    kept = proto.SerializeToString()
    for form in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), kept, proto, ir.from_proto(model(SUM))):
        assert verify(form, proto).ok
    assert proto.SerializeToString() == kept


def test_text_files_work_as_well(tmp_path):
    onnx.save(model(SUM), tmp_path / "m.textproto")
    assert verify(tmp_path / "m.textproto", model(SUM)).ok


def heavy(factor=1.0):
    weights = (factor * np.arange(4096, dtype=np.float32) / 4096).reshape(64, 64)
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[N, 64] x) => (float[N, 64] y) { y = MatMul(x, w) }'
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return proto


def saved_apart(folder, factor=1.0):
    folder.mkdir()
    onnx.save(heavy(factor), folder / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return folder / "m.onnx"


def test_external_data_is_found_beside_the_file(tmp_path):
    path = saved_apart(tmp_path / "a")
    assert verify(path, heavy()).ok
    assert verify(heavy(), path).ok
    assert not verify(path, heavy(1.01)).ok


def test_external_data_of_an_ir_model_is_found_in_one_folder_or_two(tmp_path):
    one, two = (ir.load(saved_apart(tmp_path / name)) for name in "ab")
    assert verify(one, heavy()).ok
    value = two.graph.initializers["w"]
    value.name = "v"
    two_folders = ir.load(tmp_path / "a" / "m.onnx")
    extra = ir.Value(name="v", shape=value.shape, type=value.type, const_value=value.const_value)
    two_folders.graph.register_initializer(extra)
    extended = ir.Node("", "Sub", [two_folders.graph.initializers["w"], extra], num_outputs=1)
    two_folders.graph.append(extended)
    assert verify(two_folders, heavy()).ok
    assert not verify(two_folders, heavy(1.01)).ok


def test_a_model_too_large_for_bytes_goes_through_a_file(monkeypatch):
    monkeypatch.setattr(source, "_LARGEST_BYTES", 1000)
    proto = heavy()
    assert verify(proto, ir.from_proto(heavy())).ok
    assert not verify(proto, heavy(1.01)).ok
    assert proto.graph.initializer[0].raw_data


def test_a_model_on_its_way_through_the_passes_is_run_as_it_would_be_handed_back(tmp_path, monkeypatch):
    path = saved_apart(tmp_path / "a")
    assert verify(path, load(path)).ok
    assert not verify(heavy(1.01), load(path)).ok
    monkeypatch.setattr(source, "_LARGEST_BYTES", 1000)
    assert verify(path, load(heavy())).ok
    named = """
    <ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 1]>
    g (float[N, 2] x) => (seq(map(int64, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [10, 20]> (x) }
    """
    proto = model_from_text(named, check=False)
    assert verify(proto, load(proto)).ok


def test_a_missing_or_broken_model_is_one_clear_error(tmp_path):
    (tmp_path / "cut.onnx").write_bytes(model(SUM).SerializeToString()[:40])
    for path in (tmp_path / "missing.onnx", tmp_path / "cut.onnx"):
        with pytest.raises(ModelFileError, match=path.name):
            verify(path, model(SUM))
    with pytest.raises(OptionError, match="not int"):
        verify(3, model(SUM))


def test_an_unknown_provider_is_an_option_error():
    with pytest.raises(OptionError, match="NoSuchProvider"):
        verify(model(SUM), model(SUM), providers=["NoSuchProvider"])


def test_configure_sees_the_options_of_every_session():
    seen = []
    assert verify(model(SUM), model(SUM), configure=seen.append).ok
    assert len(seen) == 2


def test_a_loop_only_data_can_stop_is_stopped():
    halving = model(
        """g (float x) => (float y) {
          t = Constant <value = bool {1}> ()
          y = Loop ("", t, x) <body = b (int64 i, bool c, float s) => (bool go, float n) {
            h = Constant <value_float = 0.5> () one = Constant <value_float = 1.0> ()
            n = Mul(s, h) m = Abs(n) e = Equal(n, one) go = Not(e)
          }>
        }"""
    )
    outcome = verify(halving, halving, time_limit=0.2)
    assert not outcome.ok
    assert outcome.outcome == "inconclusive"
    assert "still running after 1 s" in outcome.summary()
    assert "not tried: more, because the time limit of 0.2 s was reached" in outcome.summary()


def test_a_difference_of_onnxruntimes_own_making_is_called_so():
    removed = """
    g (float x, float r) => (float y) {
      none = Constant <value_float = 0.0> () ratio = Mul(r, none) training = Constant <value = bool {0}> ()
      d = Dropout(x, ratio, training) y = Neg(d)
    }"""
    without = "g (float x, float r) => (float y) { y = Neg(x) }"
    outcome = verify(model(removed), model(without))
    assert not outcome.ok
    assert "with onnxruntime's graph optimisation off" in outcome.summary()


def test_the_outcome_as_plain_data():
    outcome = verify(model(SUM), model(FIRST)).to_dict()
    assert outcome["ok"] is False
    assert outcome["first_difference"]["case"]["dims"] == {"T": 3}
    assert outcome["cases"][0]["outputs"]["y"]["absolute"] > outcome["cases"][0]["outputs"]["y"]["allowed"]
    assert outcome["summary"].startswith("compared 1 output")


def test_nothing_is_printed(capfd):
    verify(model(SUM), model(FIRST))
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr() == ("", "")


def test_names_in_functions_of_the_callers_models_stay():
    model = model_from_text(
        """<ir_version: 8, opset_import: ["": 18, "my": 1]> g (float[2] x, bool c) => (float[2] z) { y = my.F (c, x) z = my.F (c, y) }
        <domain: "my", opset_import: ["": 18]> F (c, x) => (y) {
            y = If (c) <then_branch = t () => (float[2] a) <float k = {2}> { a = Mul (x, k) },
                        else_branch = e () => (float[2] b) <float k = {3}> { b = Mul (x, k) }> }""",
        check=False,
    )
    before = model.SerializeToString()
    assert verify(model, model).ok
    assert model.SerializeToString() == before


def test_an_empty_model_is_no_model():
    with pytest.raises(ModelFileError, match="has no graph"):
        verify(onnx.ModelProto(), onnx.ModelProto())


@pytest.mark.parametrize("renamed", [True, False])
@pytest.mark.parametrize("length", [130, 600, 5000])
def test_long_names_are_short_in_a_summary(length: int, renamed: bool):
    name = "n" * length
    one = model(f"g (float[N] x) => (float[N] {name}) {{ {name} = Neg(x) }}")
    other = name + "m" if renamed else name
    two = model(f"g (float[N] x) => (float[N] {other}) {{ {other} = Abs(x) }}")
    summary = verify(one, two).summary()
    assert len(summary) < 500
    assert "nnn...nnn" in summary
