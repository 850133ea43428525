"""``polygraphy run --ortscan`` by polygraphy's own command."""

import subprocess
import sys
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[3] / "examples" / "mlp_per_step.onnx"


@pytest.mark.long
def test_polygraphy_compares_a_session_of_ortscan_with_onnxruntime() -> None:
    command = [Path(sys.executable).parent / "polygraphy", "run", MODEL, "--onnxrt", "--ortscan"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ortscan" in done.stdout
    assert "PASSED" in done.stdout
