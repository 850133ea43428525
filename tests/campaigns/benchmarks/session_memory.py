"""How much memory the first start of a session takes at its peak, beside onnxruntime's own of the same model.

`python -m tests.campaigns benchmarks.session_memory [MB]`
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

from tests.campaigns.benchmarks.session_start import model_of_20_mb

__all__ = ["peak"]

_MB_A_LAYER = 4
_START = """
import sys, onnxruntime, ortscan
which, model, how = sys.argv[1:]
given = open(model, "rb").read() if how == "bytes" else model
session = (ortscan if which == "ortscan" else onnxruntime).InferenceSession(given)
print(next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM")), "onnx" in sys.modules)
"""


def peak(which: str, model: Path, how: str) -> tuple[int, bool]:
    """The bytes that a process had at most at a time (Linux) in which ``ortscan`` or ``onnxruntime`` opened a model once.

    ``how``: as a path or as bytes. And whether onnx was imported there.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", _START, which, str(model), how]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    size, has_onnx = done.stdout.split()
    return int(size), has_onnx == "True"


def main(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, apart = Path(folder, "one.onnx"), Path(folder, "apart.onnx")
        onnx.save(model_of_20_mb(megabytes // _MB_A_LAYER), one)
        onnx.save(onnx.load(one), apart, save_as_external_data=True, location="weights")
        print(
            f"a model of {one.stat().st_size / 1e6:.0f} MB\n\n| model | onnxruntime, MB | ortscan, first time, MB | ratio |\n|---|---|---|---|"
        )
        for name, model, how in (("path", one, "path"), ("bytes", one, "bytes"), ("path, external data", apart, "path")):
            os.environ["ORTSCAN_CACHE_DIR"] = f"{folder}/cache of {name}"
            plain, own = peak("onnxruntime", model, how)[0], peak("ortscan", model, how)[0]
            print(f"| {name} | {plain / 1e6:.0f} | {own / 1e6:.0f} | {own / plain:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
