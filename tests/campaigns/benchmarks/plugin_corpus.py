"""The models of the corpus as they are, in plain sessions with and without the plugin: ``python -m tests.campaigns benchmarks.plugin_corpus [NAME ...]``.

For each: the best time of many short rounds in turn, one thread, and the ratio; then the geometric mean of the ratios. With
``--stored`` the plans come out of the file, where ``ortscan compile`` put them.
"""

import math
import sys
import tempfile
from functools import partial
from pathlib import Path

import onnxruntime as ort

import ortscan
from ortscan.plugin.storing import store_plans
from tests.campaigns.benchmarks.timing import best_of
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
            runs = [partial(_session(path, plugin).run, None, entry.feeds()) for plugin in (False, True)]
            before, after = best_of(runs, _ROUNDS, _SECONDS)
            ratios[entry.name] = before / after
            print(f"{entry.name:60} {before * 1e6:9.1f} {after * 1e6:9.1f} {before / after:7.2f}", flush=True)
    print("the least:", ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(ratios.items(), key=lambda each: each[1])[:8]))
    print(f"geometric mean of {len(ratios)} models: {math.exp(sum(map(math.log, ratios.values())) / len(ratios)):.2f}")


def _session(path: Path, plugin: bool) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(path, ortscan.register_plugin(options) if plugin else options)


if __name__ == "__main__":
    given = sys.argv[1:]
    main([each for each in given if each != "--stored"], "--stored" in given)
