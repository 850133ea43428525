"""``polygraphy run --ortscan`` by polygraphy's own command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.corpus import shipped_corpus
from tests.support.page_code import code_in


@pytest.mark.long
def test_polygraphy_compares_a_session_of_ortscan_with_onnxruntime(tmp_path: Path) -> None:
    (command,) = code_in("how-to/pipelines.md", "sh", "polygraphy")
    shutil.copy(shipped_corpus() / "jax2onnx__scan_map.onnx", tmp_path / "model.onnx")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ortscan" in done.stdout
    assert "PASSED" in done.stdout
