"""Test a wheel or an sdist as users install it: ``python -m tests.support.installed FILE [PYTHON ...] [--beside WHEEL]``.

Each Python gets its own environment with the file and a CPU build of onnxruntime. There a model is optimised, compared, explained
and run in a session. No package other than ``ortscan`` may be present. Before onnxruntime is installed, the error must be one
sentence.

``--beside``: the wheel of another build of onnxruntime, such as onnxruntime-gpu. It is installed first and must still be in use
afterwards.
"""

import argparse
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


WHICH = """
import importlib.metadata, onnxruntime
names = (each.metadata["Name"] for each in importlib.metadata.distributions())
print(*sorted({name for name in names if name.lower().startswith("onnxruntime")}), onnxruntime.__version__, onnxruntime.get_available_providers())
"""


class Environment:
    """A virtual environment in a folder."""

    def __init__(self, folder: str, interpreter: str) -> None:
        self.folder, self.python = folder, Path(folder) / "env" / "bin" / "python"
        subprocess.run([interpreter, "-m", "venv", Path(folder) / "env"], check=True)

    def install(self, what: str) -> None:
        subprocess.run([self.python, "-I", "-m", "pip", "install", "-q", what], check=True, cwd=self.folder)

    def run(self, code: str) -> str:
        code = f"MODEL = {str(ROOT / 'examples' / 'mlp_per_step.onnx')!r}\n{code}"
        command = [self.python, "-I", "-c", code]
        return subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.PIPE, text=True).stdout.strip()


def try_it(file: Path, interpreter: str) -> None:
    """Run the test with one Python."""
    with tempfile.TemporaryDirectory() as folder:
        there = Environment(folder, interpreter)
        there.install(str(file))
        there.run(WITHOUT)
        there.install(f"ortscan[cpu] @ {file.as_uri()}")
        print(there.run(WITH), flush=True)


def try_beside(file: Path, interpreter: str, wheel: Path) -> None:
    """Run the test with one Python that has another build of onnxruntime."""
    with tempfile.TemporaryDirectory() as folder:
        there = Environment(folder, interpreter)
        there.install(str(wheel))
        before = there.run(WHICH)
        there.install(str(file))
        print(there.run(WITH), f"before: {before}", f"after:  {there.run(WHICH)}", sep="\n", flush=True)
        assert there.run(WHICH) == before


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    parser.add_argument("--beside", type=Path, metavar="WHEEL")
    args = parser.parse_args()
    for each in args.python:
        if args.beside is None:
            try_it(args.file.resolve(), each)
        else:
            try_beside(args.file.resolve(), each, args.beside.resolve())


if __name__ == "__main__":
    main()
