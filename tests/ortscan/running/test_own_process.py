"""The subprocess that runs models starts without onnx_ir, which takes longer to import than everything else together."""

import subprocess
import sys
from pathlib import Path

_CODE = """
import sys
from onnxruntime import SessionOptions
from ortscan.running.own_process import serve
from ortscan.custom_ops.registration import register_python
register_python(SessionOptions())
sys.exit("onnx_ir" in sys.modules)
"""


def test_a_subprocess_imports_onnx_ir_neither_to_run_models_nor_for_calls_of_python() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
