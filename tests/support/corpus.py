"""Exported models: the few in `tests/data/models`, and a larger folder of the same kind if it exists.

The environment variable ORTSCAN_CORPUS names the larger folder, by default `shared/corpus/models` next to the repository. Each
model `<exporter>__<name>.onnx` has a file `<exporter>__<name>.npz` with arrays `in:<input>` to feed and `out:<position>` as
computed by the framework that exported the model.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

__all__ = ["CorpusModel", "big_corpus", "corpus_models", "shipped_corpus"]

_REPOSITORY = Path(__file__).parents[2]

_UNLOADABLE = {"paddle2onnx__for_gru", "skl2onnx__gpc_rbf", "tf2onnx__tf_scan_cumsum"}
_WRONG_BY_EXPORT = {"paddle2onnx__while_newton", "skl2onnx__knn_regressor_distance"}


@dataclass(frozen=True)
class CorpusModel:
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def loads(self) -> bool:
        """Return True if onnxruntime loads the model."""
        return self.name not in _UNLOADABLE

    @property
    def faithful(self) -> bool:
        """Return True if the exported model computes the same as its framework."""
        return self.loads and self.name not in _WRONG_BY_EXPORT

    @property
    def tolerance(self) -> float:
        """Return the allowed relative and absolute difference. Models converted to half precision round at other points."""
        return 4e-3 if "fp16" in self.name else 1e-5

    def load(self) -> onnx.ModelProto:
        return onnx.load(self.path)

    def feeds(self) -> dict[str, np.ndarray]:
        return {key.removeprefix("in:"): array for key, array in self._arrays().items() if key.startswith("in:")}

    def framework_outputs(self) -> dict[int, np.ndarray]:
        """Return the outputs that the framework computed, by position."""
        outputs = {key: array for key, array in self._arrays().items() if key.startswith("out:")}
        return {int(key.removeprefix("out:")): array for key, array in outputs.items()}

    def _arrays(self) -> dict[str, np.ndarray]:
        with np.load(self.path.with_suffix(".npz")) as arrays:
            return dict(arrays)


def shipped_corpus() -> Path:
    return _REPOSITORY / "tests" / "data" / "models"


def big_corpus() -> Path | None:
    """Return the larger folder, or None if there is none."""
    folder = Path(os.environ.get("ORTSCAN_CORPUS") or _REPOSITORY.parent / "shared" / "corpus" / "models")
    return folder if folder.is_dir() else None


def corpus_models(
    *, loadable: bool = True, shipped_only: bool = False, only: Callable[[str], bool] = lambda name: True
) -> list[Any]:
    """Return the shipped models and those of the larger folder for `pytest.mark.parametrize`, one for each name.

    Models that onnxruntime cannot load are included only if `loadable` is false. `only` selects by name.
    """
    folders = [shipped_corpus(), None if shipped_only else big_corpus()]
    paths = {path.stem: path for folder in reversed(folders) if folder for path in folder.glob("*.onnx")}
    models = [CorpusModel(path) for _, path in sorted(paths.items())]
    return [pytest.param(model, id=model.name) for model in models if only(model.name) and (model.loads or not loadable)]
