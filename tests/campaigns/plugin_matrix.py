"""Releases of onnxruntime with the plugin, on the corpus: ``python -m tests.campaigns plugin_matrix [RELEASE ...]`` prints a table.

Each release comes from its wheel (by pip, into a folder of its own) and runs in processes of its own. For each model: whether it loads, whether
it gives with the plugin what it gives without, how many of its loops it was asked for, and how many of these have an answer.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

__all__ = ["RELEASES", "main"]

RELEASES = ("1.23.2", "1.24.4", "1.25.1", "1.26.0", "1.27.0", "1.29.0", "1.31.1", "1.32.0")
_ROOT = Path(__file__).parents[2]
_COLUMNS = ("models", "load", "equal", "differ", "crash", "asked", "answered")


def main(releases: list[str]) -> int:
    """Print a line for each release; return how many models differ or crash in one."""
    bad = 0
    print(f"| onnxruntime | {' | '.join(_COLUMNS)} |\n|{'---|' * (len(_COLUMNS) + 1)}")
    for release in releases or RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            wheel = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, f"onnxruntime=={release}"]
            subprocess.run(wheel, check=True, capture_output=True)
            counts = _count(folder)
        bad += counts["differ"] + counts["crash"]
        print(f"| {release} | {' | '.join(str(counts[each]) for each in _COLUMNS)} |", flush=True)
    return bad


def _count(folder: str) -> Counter[str]:
    """Run all models in one process, and go on with the next model in another where one ends it."""
    from tests.support.corpus import corpus_models

    names = [param.values[0].name for param in corpus_models(loadable=False)]
    counts: Counter[str] = Counter(models=len(names))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, str(_ROOT)])}
    at = 0
    while at < len(names):
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", __spec__.name, "--models", *names[at:]],
            env=environment, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=3600,
        )  # fmt: skip
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        for line in lines:
            counts.update(json.loads(line))
        at += len(lines)
        if at < len(names):
            print(f"{names[at]} ends the process with {run.returncode}: {run.stderr[-400:]}", file=sys.stderr)
            counts["crash"] += 1
            at += 1
    return counts


def _judge(names: list[str]) -> None:
    """Print for each model what became of it."""
    import numpy as np
    import onnxruntime as ort

    import ortscan
    from ortscan.errors import OrtscanError
    from ortscan.plugin import callback
    from tests.support.corpus import corpus_models

    asked: list[bool] = []
    planned = callback.planned

    def look(model: bytes, title: str) -> bytes | None:
        found = planned(model, title)
        asked.append(found is not None)
        return found

    callback.planned = look
    models = {param.values[0].name: param.values[0] for param in corpus_models(loadable=False)}
    for name in names:
        asked.clear()
        said: Counter[str] = Counter()
        options = [ort.SessionOptions() for _ in range(2)]
        for each in options:
            each.log_severity_level, each.intra_op_num_threads = 4, 1
        try:
            plain = ort.InferenceSession(str(models[name].path), options[0]).run(None, models[name].feeds())
        except Exception:
            print(json.dumps(said), flush=True)
            continue
        said["load"] = 1
        try:
            ortscan.register_plugin(options[1])
        except OrtscanError as error:
            print(error, file=sys.stderr)
        try:
            mine = ort.InferenceSession(str(models[name].path), options[1]).run(None, models[name].feeds())
            near = {"rtol": models[name].tolerance, "atol": models[name].tolerance, "equal_nan": True}
            same = all(
                one.dtype == other.dtype
                and one.shape == other.shape
                and (np.allclose(one, other, **near) if one.dtype.kind in "fiub" else True)
                for one, other in zip(plain, mine, strict=True)
            )
        except Exception as error:
            print(name, str(error)[:300], file=sys.stderr)
            same = False
        said["equal" if same else "differ"] = 1
        if not same:
            print(f"{name} differs", file=sys.stderr)
        said["asked"], said["answered"] = len(asked), sum(asked)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--models"]:
        _judge(sys.argv[2:])
    else:
        sys.exit(min(main(sys.argv[1:]), 1))
