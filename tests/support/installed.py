"""Tries a wheel or an sdist as a user has it: ``python -m tests.support.installed FILE [PYTHON ...]``.

Each Python gets an environment of its own with the file and a CPU build of onnxruntime. There a model is optimised, compared, explained
and run in a session, and there is no other package than ``ortscan``; before onnxruntime is there, one sentence says that it is missing.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

WITHOUT = """
import ortscan
try:
    ortscan.optimize(MODEL)
except ortscan.OrtscanError as error:
    assert "no build of it is installed" in str(error), error
else:
    raise SystemExit("optimised without onnxruntime")
"""
WITH = """
import importlib.util, sys
import numpy, onnxruntime, ortscan
smaller = ortscan.optimize(MODEL, verify="full")
assert not any(node.op_type in ("Scan", "Loop") for node in smaller.graph.node)
assert ortscan.verify(MODEL, smaller, level="quick").ok
report = ortscan.explain(MODEL)
assert "<svg" in report.to_html() and report.loops[0].fate == "removed", report.summary()
session = ortscan.InferenceSession(MODEL)
feed = {each.name: numpy.ones(each.shape, numpy.float32) for each in session.get_inputs()}
for one, other in zip(session.run(None, feed), onnxruntime.InferenceSession(MODEL).run(None, feed)):
    numpy.testing.assert_allclose(one, other, rtol=1e-5)
assert importlib.util.find_spec("rewrites") is None
assert "ortscan._rewrites.base.errors" in sys.modules
from ortscan.native.library import library_path
print(f"Python {sys.version.split()[0]}, onnxruntime {onnxruntime.__version__}, {'with' if library_path() else 'without'} the library: fine")
"""


def try_it(file: Path, interpreter: str) -> None:
    """Do it with one Python."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "env" / "bin" / "python"
        subprocess.run([interpreter, "-m", "venv", Path(folder) / "env"], check=True)
        model = f"MODEL = {str(ROOT / 'examples' / 'mlp_per_step.onnx')!r}\n"
        for what, code in ((str(file), WITHOUT), (f"ortscan[cpu] @ {file.as_uri()}", WITH)):
            subprocess.run([python, "-I", "-m", "pip", "install", "-q", what], check=True, cwd=folder)
            subprocess.run([python, "-I", "-c", model + code], check=True, cwd=folder)


if __name__ == "__main__":
    for each in sys.argv[2:] or [sys.executable]:
        try_it(Path(sys.argv[1]).resolve(), each)
