"""A failure on disk: the model, what it is fed, the options, the verdict; and the same shrunk."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.judging import Judgement

__all__ = ["load_failure", "save_failure"]


def save_failure(out: Path, case: Case, judgement: Judgement, small: tuple[Case, Judgement] | None) -> Path:
    """Write to a folder named by verdict, seed and number, and give it."""
    about = case.about
    name = f"{judgement.verdict}_{about.get('kind', case.kind)}_{about.get('seed', 0)}_{about.get('number', 0)}"
    folder = out / re.sub(r"[^\w.-]", "_", name)
    _save(folder, case, judgement)
    if small is not None:
        _save(folder / "shrunk", *small)
    return folder


def _save(folder: Path, case: Case, judgement: Judgement) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    if judgement.result:
        (folder / "result.onnx").write_bytes(judgement.result)
    for k, feeds in enumerate(case.feeds):
        np.savez(folder / f"feeds_{k}.npz", **{name: _storable(array) for name, array in feeds.items()})
    told = {
        "verdict": judgement.verdict,
        "detail": judgement.detail,
        "kind": case.kind,
        "options": case.options,
        "about": case.about,
    }
    (folder / "verdict.json").write_text(json.dumps(told, indent=1, default=str), encoding="utf-8")
    try:
        text = onnx.printer.to_text(case.model)
    except Exception as error:
        text = f"cannot be printed: {error}"
    (folder / "model.txt").write_text(text, encoding="utf-8")


def _storable(array: np.ndarray) -> np.ndarray:
    if array.dtype == object:
        return array.astype(str)
    return array if array.dtype.isbuiltin == 1 else np.asarray(array).view(f"u{array.itemsize}")


def load_failure(folder: Path) -> Case:
    """The case that a folder holds."""
    told = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    files = sorted(folder.glob("feeds_*.npz"), key=lambda path: int(path.stem.split("_")[1]))
    model = onnx.load(folder / "model.onnx")
    types = {info.name: onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type) for info in model.graph.input}
    feeds = [{name: _fed(array, types[name]) for name, array in np.load(path).items()} for path in files]
    return Case(model, feeds, told["kind"], told["options"], told["about"])


def _fed(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return array.astype(object) if array.dtype.kind == "U" else array.view(dtype)
