"""Models as exporters write them: the few in `tests/data/models`, and a larger folder of the same make where there is one.

The larger folder is the one named by the environment variable ORTSCAN_CORPUS, or else `shared/corpus/models` beside the
repository. Each model `<exporter>__<name>.onnx` comes with `<exporter>__<name>.npz`: arrays `in:<input>` to feed and
`out:<position>` as computed by the framework the model was exported from.
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
        """Whether onnxruntime loads the model."""
        return self.name not in _UNLOADABLE

    @property
    def faithful(self) -> bool:
        """Whether the exported model computes what its framework computed."""
        return self.loads and self.name not in _WRONG_BY_EXPORT

    @property
    def tolerance(self) -> float:
        """Relative and absolute difference to allow for: models converted to half precision round at other places."""
        return 4e-3 if "fp16" in self.name else 1e-5

    def load(self) -> onnx.ModelProto:
        return onnx.load(self.path)

    def feeds(self) -> dict[str, np.ndarray]:
        return {key.removeprefix("in:"): array for key, array in self._arrays().items() if key.startswith("in:")}

    def framework_outputs(self) -> dict[int, np.ndarray]:
        """What the framework computed, by output position."""
        outputs = {key: array for key, array in self._arrays().items() if key.startswith("out:")}
        return {int(key.removeprefix("out:")): array for key, array in outputs.items()}

    def _arrays(self) -> dict[str, np.ndarray]:
        with np.load(self.path.with_suffix(".npz")) as arrays:
            return dict(arrays)


def shipped_corpus() -> Path:
    return _REPOSITORY / "tests" / "data" / "models"


def big_corpus() -> Path | None:
    """The larger folder, or None where there is none."""
    folder = Path(os.environ.get("ORTSCAN_CORPUS") or _REPOSITORY.parent / "shared" / "corpus" / "models")
    return folder if folder.is_dir() else None


def corpus_models(
    *, loadable: bool = True, shipped_only: bool = False, only: Callable[[str], bool] = lambda name: True
) -> list[Any]:
    """For `pytest.mark.parametrize`: the shipped models, and those of the larger folder; one for each name.

    Models onnxruntime cannot load are left out unless `loadable` is false; `only` chooses by name.
    """
    folders = [shipped_corpus(), None if shipped_only else big_corpus()]
    paths = {path.stem: path for folder in reversed(folders) if folder for path in folder.glob("*.onnx")}
    models = [CorpusModel(path) for _, path in sorted(paths.items())]
    return [pytest.param(model, id=model.name) for model in models if only(model.name) and (model.loads or not loadable)]
