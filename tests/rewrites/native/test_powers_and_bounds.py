"""Powers, remainders, bounds and the Gelu by a tanh: the bits of onnxruntime's, of zeros and of what is no number too."""

import numpy as np
import onnxruntime as ort
import pytest

import ortscan
from ortscan.native import library as installed
from tests.rewrites.harness import scan
from tests.rewrites.native.harness import same_numbers
from tests.support.native_plans import library
from tests.support.text import model_from_text

SPECIAL = [0.0, -0.0, 1, -1, 2, 0.5, np.nan, np.inf, -np.inf, 1e-40, -2.5, 3]
XS = np.float32([SPECIAL, SPECIAL[::-1], np.linspace(-3, 3, 12), np.linspace(0.1, 9, 12), np.linspace(-40, 40, 12)])
WEIGHTS = (
    "float half = {0.5}, float two = {2}, float three = {3}, int64 minus = {-2}, float none = {0}, float six = {6}, "
    "float[12] each = {2, 3, 0.5, -1, 1, 0, 2, -2, 1.5, 4, -0.5, 2}"
)


@pytest.mark.parametrize(
    ("inside", "opset"),
    [
        ("y = Pow (x, half)", 18),
        ("y = Pow (x, minus)", 18),
        ("y = Pow (x, each)", 18),
        ("y = Pow (each, x)", 18),
        ("y = Pow (x, three)", 18),
        ("e = Abs (p) y = Pow (x, e)", 18),
        ("y = Mod <fmod = 1> (x, p)", 18),
        ("y = Mod <fmod = 1> (half, x)", 18),
        ("y = Clip (x, none)", 18),
        ("y = Clip (x, none, six)", 18),
        ("y = Clip (x, , none)", 18),
        ("y = Clip (x, p, six)", 18),
        ("q = Neg (p) y = Clip (x, q, p)", 18),
        ('y = Gelu <approximate = "tanh"> (x)', 20),
    ],
)
def test_the_library_gives_the_bits_of_onnxruntime(inside: str, opset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
    text = scan(
        f"{inside} h1 = Identity (h)",
        given="float s, float[5,12] xs, float[5] ps",
        inputs="float h, float[12] x, float p",
        attributes="num_scan_inputs = 2",
        operands="s, xs, ps",
        outputs="float h1, float[12] y",
        results="float z, float[5,12] ys",
        weights=WEIGHTS,
    )
    feeds = {"s": np.array(1, np.float32), "xs": XS, "ps": np.float32([2, 3, 0, np.nan, 1.5])}
    same_numbers(text, feeds, opset=opset, close=1e-6)
    model = model_from_text(text, opset)
    native = ortscan.optimize(model, passes=["native-loop"], verify=False)
    assert [node.op_type for node in native.graph.node] == ["Scan1"]
    got = ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions())).run(["ys"], feeds)[0]
    wanted = ort.InferenceSession(model.SerializeToString()).run(["ys"], feeds)[0]
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got)[real], np.signbit(wanted)[real])
