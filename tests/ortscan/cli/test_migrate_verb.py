"""``ortscan migrate`` without a number says why it chose the opset."""

import onnx
import onnxruntime
import pytest

from ortscan.__main__ import main
from ortscan.ort.installed import newest_opset
from tests.support.text import model_from_text

PLAIN = "g (float[3] x) => (float[3] y) { y = Relu (x) }"
STUCK = """g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[0] roi = {}, float[4] up = {1, 1, 2, 2}> {
    y = Resize <mode = "linear", coordinate_transformation_mode = "tf_half_pixel_for_nn"> (x, roi, up) }"""


def chosen(text: str, opset: int, words: list[str], tmp_path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    onnx.save(model_from_text(text, opset, check=False), tmp_path / "in.onnx")
    assert main(["migrate", str(tmp_path / "in.onnx"), "--dry-run", "--no-verify", *words]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if "was chosen" in line]


@pytest.mark.parametrize(
    ("text", "opset", "words", "reason"),
    [
        (
            PLAIN,
            18,
            [],
            f"opset {newest_opset()} was chosen because it is the newest that onnxruntime {onnxruntime.__version__} runs",
        ),
        (PLAIN, 18, ["--runtime", "1.17"], "opset 20 was chosen because it is the newest that onnxruntime 1.17 runs"),
        (STUCK, 11, [], "opset 12 was chosen because it is the newest that the model can be migrated to"),
    ],
)
def test_the_choice_of_an_opset_is_one_line(text, opset, words, reason, tmp_path, capsys) -> None:
    assert chosen(text, opset, words, tmp_path, capsys) == [f"{reason}; --opset N chooses another"]


def test_a_chosen_number_needs_no_explanation(tmp_path, capsys) -> None:
    assert chosen(PLAIN, 18, ["--opset", "19"], tmp_path, capsys) == []
