"""The conclusion: recorded outputs, approximate gains, and originals that never run."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.base.proto_graphs import bodies_of
from ortscan.errors import OrtscanWarning
from ortscan.verification import verify
from rewrites.base.errors import ModelFileError
from tests.support.text import model_from_text

TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, 2] x, float[2] w) => (float[T, 2] y, int64[T] k) { a = Mul(x, w) y = Tanh(a) k = ArgMax <axis = 1, keepdims = 0> (x) }"""
X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)
W = np.array([1.0, 2.0], np.float32)
Y, K = np.tanh(X * W), X.argmax(1)


@pytest.fixture
def model() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def archive(path, **arrays) -> str:
    np.savez(path, **{key.replace("__", ":"): value for key, value in arrays.items()})
    return str(path)


def folder(path, inputs, outputs) -> str:
    path.mkdir(parents=True)
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for position, array in enumerate(arrays):
            (path / f"{kind}_{position}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())
    return str(path)


@pytest.mark.parametrize("names", [{"x": X, "w": W, "out__y": Y, "out__1": K}, {"in__x": X, "in__w": W, "out__0": Y, "out__k": K}])
def test_what_both_give_is_said(model, tmp_path, names) -> None:
    found = ortscan.verify(model, model, inputs=archive(tmp_path / "d.npz", **names))
    assert found.ok, found.summary()
    assert "both return 2 recorded outputs" in found.summary()


def test_so_it_is_for_folders_of_test_data(model, tmp_path) -> None:
    alone = ortscan.verify(model, model, inputs=folder(tmp_path / "a", [X, W], [Y, K]))
    assert "both return 2 recorded outputs" in alone.summary()
    for number in (0, 1, 10):
        folder(tmp_path / "many" / f"test_data_set_{number}", [X + number, W], [np.tanh((X + number) * W)])
    many = ortscan.verify(model, model, inputs=tmp_path / "many")
    assert many.ok
    assert "both return 3 recorded outputs" in many.summary()


def test_a_record_that_the_original_does_not_give_is_no_ones_fault_but_never_passed_over(model, tmp_path) -> None:
    found = ortscan.verify(model, model, inputs=archive(tmp_path / "d.npz", x=X, w=W, out__y=Y + 1))
    assert (found.ok, found.inconclusive) == (False, True)
    assert "the original itself does not return the recorded output 'y': at [" in found.summary()


def test_what_only_the_result_does_not_give_is_a_difference(model, tmp_path) -> None:
    other = onnx.parser.parse_model(TEXT.replace("Tanh(a)", "Sin(a)"))
    found = ortscan.verify(model, other, inputs=folder(tmp_path / "a", [X, W], [Y]))
    assert (found.ok, found.inconclusive) == (False, False)
    assert "the result does not return the recorded output 'y', but the original does: at [" in found.summary()


def test_a_record_of_nothing_the_model_has_is_refused(model, tmp_path) -> None:
    with pytest.raises(ModelFileError, match="'out:z', but the model's outputs are 'y', 'k'"):
        ortscan.verify(model, model, inputs=archive(tmp_path / "d.npz", x=X, w=W, out__z=Y))
    with pytest.raises(ModelFileError, match=r"output_2\.pb is for output 2, but the model has only 2 outputs"):
        ortscan.verify(model, model, inputs=folder(tmp_path / "a", [X, W], [Y, K, K]))
    (tmp_path / "b").mkdir()
    with pytest.raises(ModelFileError, match=r"contain no input_0\.pb"):
        ortscan.verify(model, model, inputs=tmp_path / "b")
    (tmp_path / "b" / "input_0.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ModelFileError, match=r"input_0\.pb cannot be read as a value of 'x'"):
        ortscan.verify(model, model, inputs=tmp_path / "b")


def test_the_command_line_takes_folders(model, tmp_path, capsys) -> None:
    path = str(tmp_path / "m.onnx")
    onnx.save(model, path)
    assert main(["verify", path, path, "--inputs", folder(tmp_path / "a", [X, W], [Y, K])]) == 0
    assert "both return 2 recorded outputs" in capsys.readouterr().out
    assert main(["verify", path, path, "--inputs", folder(tmp_path / "b", [X, W], [Y + 1])]) == 3
    assert "pass inputs" not in capsys.readouterr().out
    assert main(["optimize", path, "--dry-run", "--inputs", str(tmp_path / "b")]) == 3
    assert "not proven equal" in (printed := capsys.readouterr()).out
    assert "nothing could be compared" not in printed.out
    assert "pass inputs" not in printed.err


def test_other_inputs_are_advised_only_if_they_may_help(tmp_path, capsys) -> None:
    sevens = "c = Constant <value_float = 7.25> () one = Constant <value_int = 1> () e = Equal (x, c) i = Cast <to = 7> (e)"
    picked = f"{sevens} n = Size (x) m = Add (n, n) a = Sub (i, one) j = Mul (a, m) y = Gather (x, j)"
    texts = {"unknown": "y = com.microsoft.NoSuch (x)", "refusing": picked}
    for name, body in texts.items():
        head = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>'
        onnx.save(onnx.parser.parse_model(f"{head} g (float[N] x) => (float[M] y) {{ {body} }}"), tmp_path / f"{name}.onnx")
    for name in texts:
        path = str(tmp_path / f"{name}.onnx")
        assert main(["verify", path, path]) == 3
        assert ("pass inputs that the original accepts: --inputs" in capsys.readouterr().out) == (name == "refusing")


MISDECLARED = {
    "Scan": """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) {
        z, ys = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1, float[2,2] y) {
            h1 = Add (h, x) y = Identity (h1) }> (s, xs) }""",
    "Scan of free sizes": """g (float[N] s, float[T,N] xs) => (float[N] z, float[T,N] ys) {
        z, ys = Scan <num_scan_inputs = 1, body = b (float[N] h, float[N] x) => (float[N] h1, float[N,N] y) {
            p = Tanh (h) h1 = Mul (p, x) y = Sin (h1) }> (s, xs) }""",
    "Scan in another": """g (float[2] s, float[3,4,2] xs) => (float[2] z) {
        z = Scan <num_scan_inputs = 1, body = b (float[2] h, float[4,2] r) => (float[2] h1) {
            z, ys = Scan <num_scan_inputs = 1, body = c (float[2] k, float[2] x) => (float[2] k1, float[2,2] y) {
                k1 = Add (k, x) y = Identity (k1) }> (h, r)
            t = ReduceSum (ys) h1 = Add (z, t) }> (s, xs) }""",
}


@pytest.mark.parametrize(("name", "opset"), [("Scan", 9), ("Scan", 18), ("Scan of free sizes", 18)])
def test_optimize_says_that_a_model_itself_does_not_run_and_which_loop_fails(name: str, opset: int) -> None:
    original = model_from_text(MISDECLARED[name], opset, check=False)
    said = (
        r"the original itself does not run: Scan 'z' fails in all \d+ cases: Subgraph must have the shape set for all outputs but y"
    )
    with pytest.warns(OrtscanWarning, match=said):
        ortscan.optimize(original)


@pytest.mark.parametrize("opset", [9, 18])
def test_a_loop_that_fails_is_called_by_its_name(opset: int) -> None:
    original = model_from_text(MISDECLARED["Scan"], opset, check=False)
    original.graph.node[0].name = "cell"
    assert "the original itself does not run: Scan 'cell' fails in all " in verify(original, original, level="quick").summary()


def test_a_loop_that_fails_within_another_is_named() -> None:
    original = model_from_text(MISDECLARED["Scan in another"], 18, check=False)
    original.graph.node[0].name = "outer"
    (body,) = bodies_of(original.graph.node[0])
    body.node[0].name = "inner"
    assert "the original itself does not run: Scan 'inner' fails in all " in verify(original, original).summary()


def test_a_loop_is_not_blamed_for_a_node_in_its_body() -> None:
    text = """g (float[2] s, float[3,2] xs, int64[1] size) => (float[2] z) {
        z = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1) {
            r = Reshape (x, size) h1 = Add (h, r) }> (s, xs) }"""
    original = model_from_text(text, 18)
    summary = verify(original, original, inputs={"size": np.array([7])}).summary()
    assert summary.startswith("nothing was compared: the original ran in none of ")
