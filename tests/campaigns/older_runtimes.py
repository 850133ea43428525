"""Writes the corpus for older releases of onnxruntime and runs it there: ``python -m tests.campaigns older_runtimes FOLDER [1.17 ...]``.

Each model is optimised with ``runtime`` set, and run in that release, in an environment of its own in FOLDER, on the inputs that were
recorded with it. What the original gives on the installed onnxruntime is what it must give.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import ortscan
from rewrites.base.errors import OrtscanError
from tests.support.runtimes import RELEASES, python_of

WANTED = ["1.17", "1.20", "1.23"]
RUN = """
import sys
from pathlib import Path
import numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)
equal, ill = 0, []
for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    data = dict(numpy.load(path.with_suffix(".npz"), allow_pickle=True))
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]
        found = session.run(None, {name: data["in:" + name] for name in names if "in:" + name in data})
    except Exception as error:
        ill.append(f"{path.stem}: {str(error).splitlines()[0][:200]}")
        continue
    wanted = [data[f"want:{place}"] for place in range(len(found))]
    worst = []
    for one, other in zip(found, wanted):
        one, other = numpy.asarray(one), numpy.asarray(other)
        if one.shape != other.shape or one.dtype != other.dtype:
            worst.append(f"{one.dtype}{one.shape} instead of {other.dtype}{other.shape}")
        elif one.dtype.kind in "fc":
            rtol = 4e-3 if "fp16" in path.stem else 1e-5
            scale = numpy.nanmax(numpy.abs(other[numpy.isfinite(other)]), initial=1.0)
            if not numpy.allclose(one, other, rtol=rtol, atol=rtol * scale, equal_nan=True):
                worst.append(f"off by {numpy.nanmax(numpy.abs(one - other)):.3g}")
        elif not (one == other).all():
            worst.append("other values")
    if worst:
        ill.append(f"{path.stem}: {worst[0]}")
    equal += not worst
print(f"onnxruntime {onnxruntime.__version__}: {equal} of {equal + len(ill)} load and equal")
for line in ill:
    print("  " + line)
"""


def expected(model: Path) -> dict[str, np.ndarray] | None:
    """Return the recorded inputs, and what the original gives on the installed onnxruntime; None where it does not run."""
    recorded = {name: array for name, array in np.load(model.with_suffix(".npz")).items() if name.startswith("in:")}
    try:
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        given = {each.name: recorded[f"in:{each.name}"] for each in session.get_inputs() if f"in:{each.name}" in recorded}
        outputs = session.run(None, given)
    except Exception:
        return None
    return {**recorded, **{f"want:{place}": np.asarray(output) for place, output in enumerate(outputs)}}


def on(version: str, models: Sequence[Path], folder: Path) -> None:
    """Write all models for one release, run them there, and print what came of it."""
    refused, loops = [], 0
    with tempfile.TemporaryDirectory() as place:
        for model in models:
            wanted = expected(model)
            if wanted is None:
                continue
            try:
                result = ortscan.optimize(model, runtime=version, verify=False)
            except OrtscanError as error:
                refused.append(f"{model.stem}: {error}")
                continue
            loops += sum(node.op_type in ("Scan", "Loop") for node in result.graph.node)
            onnx.save(result, Path(place) / model.name)
            np.savez(Path(place) / f"{model.stem}.npz", **wanted)
        release = next(each for each in RELEASES if each.startswith(f"{version}."))
        subprocess.run([python_of(release, folder), "-c", RUN, place], check=True)
    print(f"  {loops} loops left in main graphs, {len(refused)} models cannot be written for it", *refused, sep="\n  ", flush=True)


def main() -> None:
    """Run the corpus at ``ORTSCAN_CORPUS`` on each release."""
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    models = sorted(Path(os.environ["ORTSCAN_CORPUS"]).glob("*.onnx"))
    for version in sys.argv[2:] or WANTED:
        on(version, models, Path(sys.argv[1]).resolve())


if __name__ == "__main__":
    main()
