"""The models of the corpus as they are, in plain sessions with and without the plugin: ``python -m tests.campaigns benchmarks.plugin_corpus [NAME ...]``.

For each: the best time of many short rounds in turns, one thread, and the ratio; then the geometric mean of the ratios. With
``--stored`` the plans come out of the file, where ``ortscan compile`` put them.
"""

import math
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort

import ortscan
from ortscan.plugin.storing import store_plans
from tests.support.corpus import CorpusModel, corpus_models

__all__ = ["main"]

_ROUNDS, _SECONDS = 60, 0.001


def main(names: list[str], stored: bool) -> None:
    """Print a line for each model that loads, the slowest last."""
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for param in corpus_models(only=lambda name: not names or name in names):
            entry: CorpusModel = param.values[0]
            path = entry.path
            if stored:
                path = Path(folder) / "model.onnx"
                store_plans(entry.path, path)
            plain, asked = (_session(path, plugin) for plugin in (False, True))
            feeds = entry.feeds()
            before, after = _best(plain, asked, feeds)
            ratios[entry.name] = before / after
            print(f"{entry.name:60} {before * 1e6:9.1f} {after * 1e6:9.1f} {before / after:7.2f}", flush=True)
    print("the least:", ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(ratios.items(), key=lambda each: each[1])[:8]))
    print(f"geometric mean of {len(ratios)} models: {math.exp(sum(map(math.log, ratios.values())) / len(ratios)):.2f}")


def _session(path: Path, plugin: bool) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(path, ortscan.register_plugin(options) if plugin else options)


def _best(one: ort.InferenceSession, other: ort.InferenceSession, feeds: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return the best mean time of a run of each, over rounds in turns."""
    best = [math.inf, math.inf]
    for _ in range(_ROUNDS):
        for place, session in enumerate((one, other)):
            runs, started = 0, time.thread_time()
            while (spent := time.thread_time() - started) < _SECONDS:
                session.run(None, feeds)
                runs += 1
            best[place] = min(best[place], spent / runs)
    return best[0], best[1]


if __name__ == "__main__":
    given = sys.argv[1:]
    main([each for each in given if each != "--stored"], "--stored" in given)
