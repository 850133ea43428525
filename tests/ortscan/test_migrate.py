"""`migrate` as users call it: its arguments and results, what it refuses, and what it does not change."""

from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.migration import migrated
from ortscan.ort.installed import newest_opset
from rewrites.migration.versions import NEWEST
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

OLD = """
<ir_version: 4, opset_import: ["": 8], producer_name: "someone", doc_string: "all of it", metadata_props: ["key": "value"]>
g (float[B,2] h0, float[B,T,2] xs) => (float[B,2] hn, float[B,T,2] ys) <float[2] w = {0.5, 2}> {
    hn, ys = Scan <num_scan_inputs = 1, body = cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {
        p = Mul (a, w) q = Softmax <axis = 0> (p) h1 = Add (h, q) k = Clip <min = 0.25> (h1)
    }> (, h0, xs)
}"""
GONE = """
<ir_version: 6, opset_import: ["": 11]>
g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[0] roi = {}, float[4] scales = {1, 1, 2, 2}> {
    ["up"] y = Resize <mode = "linear", coordinate_transformation_mode = "tf_half_pixel_for_nn"> (x, roi, scales)
}"""
FEEDS = {"h0": np.ones((3, 2), np.float32), "xs": np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 4, 2)}


@pytest.fixture
def old() -> onnx.ModelProto:
    return model_from_text(OLD, check=False)


@pytest.fixture
def path(old: onnx.ModelProto, tmp_path: Path) -> Path:
    onnx.save(old, tmp_path / "old.onnx")
    return tmp_path / "old.onnx"


def opset_of(model: onnx.ModelProto) -> int:
    return next(entry.version for entry in model.opset_import if entry.domain == "")


@pytest.mark.parametrize("opset", [9, 13, 18, 26])
def test_the_numbers_stay_and_the_opset_is_the_one_asked_for(old, opset):
    new = ortscan.migrate(old, opset)
    assert opset_of(new) == opset
    onnx.checker.check_model(new, full_check=True)
    assert_same_numbers(ort_run(new, FEEDS), ort_run(old, FEEDS))


def test_each_kind_of_model_comes_back_as_what_it_is_and_is_not_changed(old, path):
    before = old.SerializeToString()
    held = ir.from_proto(old)
    assert isinstance(ortscan.migrate(held, 18), ir.Model)
    assert held.opset_imports[""] == 8
    for given in (old, before, path, str(path)):
        assert isinstance(ortscan.migrate(given, 18), onnx.ModelProto)
    assert old.SerializeToString() == before == path.read_bytes()


def test_the_interface_and_the_header_stay_to_the_byte(old):
    new = ortscan.migrate(old, 21)
    for part in ("input", "output"):
        assert [v.SerializeToString() for v in getattr(new.graph, part)] == [
            v.SerializeToString() for v in getattr(old.graph, part)
        ]
    assert (new.producer_name, new.doc_string, new.metadata_props) == (old.producer_name, old.doc_string, old.metadata_props)
    assert {"hn", "ys"} <= {name for node in new.graph.node for name in node.output}


def test_the_version_of_the_format_rises_with_the_opset_and_never_falls(old):
    assert [ortscan.migrate(old, opset).ir_version for opset in (9, 13, 21, 26)] == [4, 7, 10, 13]
    old.ir_version = 9
    assert ortscan.migrate(old, 13).ir_version == 9


def test_the_output_may_be_the_input(path):
    wanted = ort_run(onnx.load(path), FEEDS)
    ortscan.migrate(path, 18, output=path)
    assert opset_of(onnx.load(path)) == 18
    assert_same_numbers(ort_run(onnx.load(path), FEEDS), wanted)


def test_latest_is_the_newest_that_is_known_and_onnxruntime_runs(old):
    newest = opset_of(ortscan.migrate(old, "latest"))
    assert newest == opset_of(ortscan.migrate(old, "auto")) == min(newest_opset(), NEWEST)
    with pytest.raises(ortscan.OrtscanError, match=rf"opset must be in 1\.\.{newest_opset()}, the newest"):
        ortscan.migrate(old, newest_opset() + 1)


def test_an_operator_that_changed_after_the_newest_opset_known_is_refused(monkeypatch):
    text = "g (float[3] x) => (float[3] y) { z = Neg (x) y = Mod <fmod = 1> (z, x) }"
    monkeypatch.setattr("ortscan.modelio.refusals.NEWEST", 27)
    for work in (ortscan.optimize, ortscan.explain, partial(ortscan.migrate, opset=18)):
        assert work(model_from_text(text, 27, check=False))
        with pytest.raises(ortscan.OrtscanError, match="has opset 28, in which Mod '' differs from that in 27"):
            work(model_from_text(text, 28, check=False))
    assert ortscan.optimize(model_from_text("g (float[3] x) => (float[3] y) { y = Neg (x) }", 28, check=False))


@pytest.mark.parametrize("opset", ["auto", "latest"])
def test_a_word_goes_as_far_as_the_operators_do_and_says_what_stops_it(opset: str):
    model = model_from_text(GONE, check=False)
    loaded, report = migrated(model, opset)
    assert loaded.model.opset_imports[""] == 12
    assert "opset 13 is out of reach: Resize 'up' cannot be lifted from opset 11 to 13" in report.messages[0]


@pytest.mark.parametrize("older", [13, 18, 27])
@pytest.mark.parametrize(
    "nodes",
    [
        "y = ReduceLogSumExp (x)",
        "z = Neg (x) y = ReduceLogSumExp <keepdims = 0> (z)",
        "y = Scan <num_scan_inputs = 1, body = b (float[3] r) => (float[1] s) { s = ReduceLogSumExp (r) }> (x)",
    ],
)
def test_latest_is_the_newest_opset_that_computes_the_same(nodes: str, older: int):
    model = model_from_text(f"g (float[2,3] x) => (float{'' if 'Neg' in nodes else '[A,B]'} y) {{ {nodes} }}", older)
    result = ortscan.migrate(model, "latest")
    feeds = {"x": np.array([[500, 1, 2], [-500, -500, 3]], np.float32)}
    assert opset_of(result) == 27
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("opset", ["", "new", "18.0", 0, -3, True, None, 2.0])
def test_an_opset_that_is_none_is_refused(old, opset):
    with pytest.raises(ortscan.OrtscanError, match="opset must be"):
        ortscan.migrate(old, opset)


def test_what_has_no_form_in_the_target_is_named_and_nothing_is_written(tmp_path):
    model = model_from_text(GONE, check=False)
    before = model.SerializeToString()
    (tmp_path / "out.onnx").write_bytes(b"as it was")
    with pytest.raises(ortscan.OrtscanError, match=r"^Resize 'up' cannot be lifted from opset 11 to 18: "):
        ortscan.migrate(model, 18, output=tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == b"as it was"
    assert model.SerializeToString() == before


def test_in_the_same_opset_a_model_is_given_back_as_it_is_where_reading_it_anew_makes_it_worse(monkeypatch):
    text = """<ir_version: 8, opset_import: ["": 18]> g (int64 n, bool k, float[2] s) => (float[2] z) {
        z = Loop <body = b (int64 i, bool c, float[2] h) => (k, h1) { h1 = Neg (h) }> (n, k, s) }"""
    model = model_from_text(text, check=False)
    assert ortscan.explain(model).tied
    assert ortscan.migrate(model, 18) != model
    monkeypatch.setattr("ortscan.api.new_fault", lambda before, after: "worse")
    assert ortscan.migrate(model, 18) == model


def test_the_default_opset_is_that_of_the_command_line(tmp_path, capsys):
    model = model_from_text("g (float[N] x) => (float[N] y) { y = Neg (x) }", 18)
    assert ortscan.migrate(model) == ortscan.migrate(model, "auto")
    newest = ortscan.migrate(model)
    onnx.save(newest, tmp_path / "m.onnx")
    assert main(["migrate", str(tmp_path / "m.onnx"), "--dry-run"]) == 0
    assert "was chosen" not in capsys.readouterr().out


def test_the_same_opset_changes_nothing():
    model = model_from_text("g (float[N] x) => (float[N] y) { y = Neg (x) }", 18)
    assert ortscan.migrate(model, 18).SerializeToString() == model.SerializeToString()


FUNCTION = """
<ir_version: 8, opset_import: ["": 8, "my": 1]> g (float[B,2] h0, float[B,T,2] xs) => (float[B,2] hn, float[B,T,2] ys) {
    hn, zs = my.F (h0, xs)
    ys = my.G (zs)
}
<domain: "my", opset_import: ["": 8]> F (h0, xs) => (hn, ys) {
    hn, ys = Scan <num_scan_inputs = 1, body = cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {
        h1 = Add (h, a) k = Neg (h1)
    }> ("", h0, xs)
}
<domain: "my", opset_import: ["": 8]> G (x) => (y) { u = Unsqueeze <axes = [0]> (x) n = Neg (u) y = Squeeze <axes = [0]> (n) }"""


def test_a_function_with_an_old_scan_is_inlined_and_others_are_kept():
    model = parsed(FUNCTION)
    _, report = migrated(model, 18)
    new = ortscan.migrate(model, 18)
    assert [function.name for function in new.functions] == ["G"]
    assert [scan.form for scan in report.scans] == ["batched"]
    assert report.messages == ["inlined the function my::F, which cannot be migrated as a function"]
    assert_same_numbers(ort_run(new, FEEDS), ort_run(model, FEEDS))


def test_optimize_lifts_an_old_scan_and_goes_on_from_there(old):
    new = ortscan.optimize(old)
    assert opset_of(new) == 18
    assert_same_numbers(ort_run(new, FEEDS), ort_run(old, FEEDS))
    assert opset_of(ortscan.optimize(old, opset=21)) == 21
    assert opset_of(ortscan.optimize(old, opset="keep")) == 8
    with pytest.raises(ortscan.OrtscanError, match="opset must be 'auto', 'keep' or a number"):
        ortscan.optimize(old, opset="older")


def test_optimize_leaves_the_opset_where_nothing_comes_of_it():
    text = """g (float[2] h0, float[T,2] xs) => (float[2] hn) {
        hn = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1) { p = Mul (h, x) h1 = Tanh (p) }> (h0, xs)
    }"""
    assert opset_of(ortscan.optimize(model_from_text(text, 13))) == 13
    assert opset_of(ortscan.optimize(model_from_text("g (float[N] x) => (float[N] y) { y = Neg (x) }", 13))) == 13


def test_the_command_line_compares_writes_and_says_what_it_did(path, tmp_path, capsys):
    assert main(["migrate", str(path), str(tmp_path / "new.onnx"), "--opset", "18"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "opset 8 -> 18, IR 4 -> 8: 2 nodes rewritten, 1 opset-8 Scan lifted." in output
    assert "Scan hn one Scan whose body handles all rows at once" in output
    assert "verified on onnxruntime" in output
    assert opset_of(onnx.load(tmp_path / "new.onnx")) == 18


def test_the_command_line_gives_json(path, capsys):
    import json

    assert main(["migrate", str(path), "--dry-run", "--json", "--opset", "13"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["migration"]["source"], output["migration"]["target"], output["output"]) == (8, 13, None)
    assert output["migration"]["scans"][0]["form"] == "batched"
    assert output["verification"]["ok"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["migrate", "nosuch.onnx", "out.onnx"], "nosuch.onnx: No such file"),
        (["migrate", "cut.onnx", "out.onnx"], "cut.onnx"),
        (["migrate", ".", "old.onnx"], ". and old.onnx must both be folders, or both be files."),
        (["migrate", "old.onnx", "no/out.onnx"], "no/out.onnx"),
        (["migrate", "old.onnx", "out.onnx", "--opset", "99"], "opset must be in 1.."),
        (["migrate", "old.onnx", "out.onnx", "--opset", "7"], "Scan 'hn' cannot be lowered from opset 8 to 7"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(path.parent)
    Path("cut.onnx").write_bytes(path.read_bytes()[:-7])
    assert main(words) in (1, 2)
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize(
    ("inside", "results"), [("n = Add (h, x) i = Identity (n)", "n, n"), ("n = Add (h, x)", "n, x"), ("n = Neg (x)", "h, n")]
)
def test_what_a_body_returns_twice_or_itself_is_what_it_means(inside, results):
    model = model_from_text(
        f"""<ir_version: 7, opset_import: ["": 11]> g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) {{
        z, ys = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => ({results}) {{ {inside} }}> (s, xs) }}""",
        check=False,
    )
    feeds = {"s": np.ones(2, np.float32), "xs": np.arange(6, dtype=np.float32).reshape(3, 2)}
    sums = feeds["s"] + np.cumsum(feeds["xs"], 0)
    z, ys = ort_run(ortscan.migrate(model, 18), feeds)
    wanted = {"n, n": (sums[-1], sums), "n, x": (sums[-1], feeds["xs"]), "h, n": (feeds["s"], -feeds["xs"])}[results]
    np.testing.assert_array_equal(z, wanted[0])
    np.testing.assert_array_equal(ys, wanted[1])


@pytest.mark.parametrize("verify", ["quick", False])
@pytest.mark.parametrize("given", ["path", "bytes", "proto", "ir", "output"])
def test_a_model_of_megabytes_is_handed_back_whole(given, verify, tmp_path):
    text = "g (float[B, 1100] x) => (float[B, 1100] y) { y = MatMul (x, w) }"
    model = parsed(text, 13, weights=drawn(1, w=(1100, 1100)))
    onnx.save(model, tmp_path / "in.onnx")
    asked = {"bytes": model.SerializeToString(), "proto": model, "ir": ir.from_proto(model)}.get(given, tmp_path / "in.onnx")
    output = tmp_path / "out.onnx" if given == "output" else None
    after = ortscan.migrate(asked, 18, verify=verify, output=output)
    after = ir.to_proto(after) if given == "ir" else after
    feeds = {"x": np.ones((2, 1100), np.float32)}
    assert after.opset_import[0].version == 18
    assert_same_numbers(ort_run(output or after, feeds), ort_run(model, feeds))


HEADER = '<ir_version: 8, opset_import: ["": OPSET, "my": 1]> '
SCAN_8 = """g (float[B,T,3] x, float[B,3] h, int64[B] n) => (float[B,3] l, float[B,T,3] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] s1, float[3] v) {
        v, m = Dropout <ratio = 0.25> (r) s1 = Add (s, r) }> (n, h, x) }"""
SCAN_9 = """g (float[T,B,3] x, float[B,3] h) => (float[B,3] l, float[T,B,3] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[B,3] s, float[B,3] r) => (float[B,3] s1, float[B,3] v) {
        v, m = Dropout (r) s1 = Add (s, r) }> (h, x) }"""
PLAIN = "g (float[B,T,3] x) => (float[B,T,3] y) { a, m = Dropout (x) y = Tanh (a) }"
BRANCH = """g (float[B,T,3] x, bool c) => (float[B,T,3] y) {
    y = If (c) <then_branch = t () => (float[B,T,3] a) { a, m = Dropout (x) }, else_branch = e () => (float[B,T,3] b) { b = Neg (x) }> }"""
CALLING_DROPOUT = """g (float[B,T,3] x) => (float[B,T,3] y) { y = my.f (x) }
<domain: "my", opset_import: ["": OPSET]> f (x) => (y) { y, m = Dropout <ratio = 0.75> (x) }"""


@pytest.mark.parametrize("text", [PLAIN, BRANCH, CALLING_DROPOUT, SCAN_8, SCAN_9])
@pytest.mark.parametrize(("source", "target"), [(9, 10), (9, 18), (10, 9), (8, 18)])
def test_a_mask_that_nobody_reads_stops_no_migration(text: str, source: int, target: int) -> None:
    if (source == 8) != (text == SCAN_8) and text in (SCAN_8, SCAN_9):
        source = 8 if text == SCAN_8 else 9
        target = max(target, 10)
    model = parsed((HEADER + text).replace("OPSET", str(source)))
    after = ortscan.migrate(model, target)
    onnx.checker.check_model(after, full_check=True)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 3, 3)).astype(np.float32), "c": np.array(True), "n": np.array([1, 3])}
    feeds["h"] = rng.normal(size=(2 if source == 8 else 3, 3)).astype(np.float32)
    feeds = {info.name: feeds[info.name] for info in model.graph.input}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
