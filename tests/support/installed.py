"""Test a wheel or an sdist as users install it: ``python -m tests.support.installed FILE [PYTHON ...] [--beside WHEEL]``.

Each Python gets its own environment with the file and a CPU build of onnxruntime. There a model is optimised, compared, explained
and run in a session, and a loop runs in the native library and in the plugin. No package other than ``ortscan`` may be present.
Before onnxruntime is installed, the error must be one sentence. No compiler is on the path.

``--beside``: the wheel of another build of onnxruntime, such as onnxruntime-gpu. It is installed first and must still be in use
afterwards.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["Environment", "InstallationFailed", "main", "try_beside", "try_it"]

ROOT = Path(__file__).parents[2]
MODELS = {"MODEL": "mlp_per_step", "LOOP": "torch_attention_decoder"}
"""A model whose loop is removed, and one whose loop is compiled: names of files in ``examples/``."""

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
verification = ortscan.verify(MODEL, smaller, level="quick", time_limit=60)
assert verification.ok, verification.summary()
report = ortscan.explain(MODEL)
assert "<svg" in report.to_html() and report.loops[0].fate == "removed", report.summary()

def run(model, session):
    feeds = {each.name: numpy.ones(each.shape, numpy.float32) for each in session.get_inputs()}
    for output, reference in zip(session.run(None, feeds), onnxruntime.InferenceSession(model).run(None, feeds)):
        numpy.testing.assert_allclose(output, reference, rtol=1e-5)

run(MODEL, ortscan.InferenceSession(MODEL))
run(LOOP, ortscan.InferenceSession(LOOP))
from ortscan.native.library import library_path
if library_path():
    compiled = ortscan.explain(LOOP, native=True)
    assert [loop.fate for loop in compiled.loops] == ["compiled"], compiled.summary()
    if sys.version_info >= (3, 11):
        options = onnxruntime.SessionOptions()
        ortscan.register_plugin(options)
        run(LOOP, onnxruntime.InferenceSession(LOOP, options))
assert importlib.util.find_spec("rewrites") is None
assert "ortscan._rewrites.base.errors" in sys.modules
print(f"Python {sys.version.split()[0]}, onnxruntime {onnxruntime.__version__}, {'with' if library_path() else 'without'} the library")
"""
WHICH = """
import importlib.metadata, onnxruntime
names = (each.metadata["Name"] for each in importlib.metadata.distributions())
print(*sorted({name for name in names if name.lower().startswith("onnxruntime")}), onnxruntime.__version__, onnxruntime.get_available_providers())
"""


class InstallationFailed(Exception):
    """A file of a release does not install or work. The message is one sentence."""


class Environment:
    """A virtual environment in a folder. No program other than its own is on its path."""

    def __init__(self, folder: str, interpreter: str) -> None:
        self.folder, self.bin = folder, Path(folder) / "env" / "bin"
        subprocess.run([interpreter, "-m", "venv", Path(folder) / "env"], check=True)

    def install(self, *arguments: str | Path) -> float:
        """Run ``pip install`` and return the seconds that it took."""
        start = time.perf_counter()
        self._start("python", "-I", "-m", "pip", "install", "-q", *arguments)
        return time.perf_counter() - start

    def run(self, code: str) -> str:
        """Run ``code`` in Python and return what it prints. ``MODEL`` and ``LOOP`` are paths of models."""
        paths = {name: str(ROOT / "examples" / f"{file}.onnx") for name, file in MODELS.items()}
        return self._start("python", "-I", "-c", "".join(f"{name} = {path!r}\n" for name, path in paths.items()) + code)

    def _start(self, program: str, *arguments: str | Path) -> str:
        done = subprocess.run(
            [self.bin / program, *arguments],
            check=False,
            cwd=self.folder,
            env={**os.environ, "PATH": str(self.bin), "PYTHONPATH": ""},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            command, reason = " ".join(map(str, arguments)).partition("\n")[0], done.stderr.strip().rpartition("\n")[2]
            raise InstallationFailed(f'"{program} {command[:200]}" failed: {reason}')
        return done.stdout.strip()

    def version(self) -> str:
        """Return what ``ortscan --version`` prints."""
        return self._start("ortscan", "--version")


def try_it(file: Path, interpreter: str, native: bool | None = None, build: bool = True) -> str:
    """Run the test with one Python.

    Args:
        file: a wheel or an sdist.
        interpreter: the path of a Python.
        native: whether the native library must be there; None if either is right.
        build: False if pip must not install a compiler for the build of an sdist.

    Returns:
        A line with the versions and the seconds of an installation without the dependencies.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(folder, interpreter)
        isolation = []
        if not build:
            environment.install("setuptools>=77")
            isolation = ["--no-build-isolation"]
        environment.install(*isolation, file)
        environment.run(WITHOUT)
        environment.install(*isolation, f"ortscan[cpu] @ {file.as_uri()}")
        line, version = environment.run(WITH), environment.version()
        if native is not None and (", with the library" in line) != native:
            raise InstallationFailed(f"{file.name} must install {'the' if native else 'no'} native library: {line}; {version}")
        seconds = environment.install(*isolation, "--force-reinstall", "--no-deps", file)
        return f"{line}, installed in {seconds:.1f} s"


def try_beside(file: Path, interpreter: str, wheel: Path) -> str:
    """Run the test with one Python that has another build of onnxruntime. Return a line with the versions."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(folder, interpreter)
        environment.install(wheel)
        before = environment.run(WHICH)
        environment.install(file)
        line, after = environment.run(WITH), environment.run(WHICH)
        if after != before:
            raise InstallationFailed(f"{file.name} replaced {before} by {after}")
        return f"{line}, beside {before}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    parser.add_argument("--beside", type=Path, metavar="WHEEL")
    args = parser.parse_args()
    file = args.file.resolve()
    try:
        for interpreter in args.python:
            print(try_beside(file, interpreter, args.beside.resolve()) if args.beside else try_it(file, interpreter), flush=True)
    except InstallationFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
