"""Models for a provider, written into a folder with their inputs, what the CPU makes of them, and the answers read back."""

import base64
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import ortscan
from ortscan.errors import OrtscanError
from tests.campaigns.providers.provider import Provider
from tests.support.corpus import CorpusModel
from tests.support.runtime import ort_run

__all__ = ["RUNS", "ability_job", "corpus_job", "judge", "with_sizes"]

RUNS = 5


def with_sizes(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model with its inputs declared as they are fed."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for each in fixed.graph.input:
        if each.name in feeds:
            del each.type.tensor_type.shape.dim[:]
            for size in feeds[each.name].shape:
                each.type.tensor_type.shape.dim.add().dim_value = size
    for each in fixed.graph.output:
        if each.type.HasField("tensor_type"):
            for dim in each.type.tensor_type.shape.dim:
                dim.Clear()
    del fixed.graph.value_info[:]
    return fixed


def corpus_job(model: CorpusModel, provider: Provider, folder: Path, runtime: str | None) -> dict[str, Any]:
    """A model as its exporter wrote it, its sizes known, and what ``optimize`` makes of it for the target."""
    original, feeds = model.load(), model.feeds()
    sizes = {name: list(array.shape) for name, array in feeds.items()}
    before = with_sizes(original, feeds)
    job: dict[str, Any] = {"name": model.name, "tolerance": max(model.tolerance, provider.tolerance)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = ortscan.optimize(original, target=provider.target, fix_shapes=sizes, freeze=True, runtime=runtime, verify=False)
    except OrtscanError as error:
        after, job["optimize"] = before, str(error)
    return {
        **job,
        **_written(folder, model.name, [before, after], feeds),
        "runs": RUNS if provider.timed else 0,
        "expected": ort_run(original, feeds),
    }


def ability_job(
    name: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray], provider: Provider, folder: Path
) -> dict[str, Any]:
    """One of the small models."""
    return {
        "name": name,
        "tolerance": provider.tolerance,
        **_written(folder, name, [model], feeds),
        "expected": ort_run(model, feeds),
    }


def _written(folder: Path, name: str, models: Sequence[onnx.ModelProto], feeds: dict[str, np.ndarray]) -> dict[str, Any]:
    stem = folder / "".join(letter if letter.isalnum() else "_" for letter in name)
    np.savez(f"{stem}.npz", **feeds)
    paths, raw = [], []
    for at, model in enumerate(models):
        onnx.save(model, f"{stem}.{at}.onnx")
        paths.append(f"{stem}.{at}.onnx")
    for at, (name_of, array) in enumerate(feeds.items()):
        array.tofile(f"{stem}.{at}.bin")
        raw.append({"name": name_of, "dtype": array.dtype.name, "shape": list(array.shape), "file": f"{stem}.{at}.bin"})
    return {"models": paths, "feeds": f"{stem}.npz", "raw": raw, "runs": RUNS}


def judge(said: dict[str, Any], path: str, expected: Sequence[np.ndarray], tolerance: float) -> str:
    """Return what became of a model: ``equal``, ``differs by ...``, or that it was refused, or fails, and why."""
    for word in ("refused", "failed"):
        if word in said:
            return f"{word}: {' '.join(said[word].split())}"
    found = _of_page(said.pop("outputs")) if "outputs" in said else list(np.load(f"{path}.out.npz", allow_pickle=False).values())
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"differs: {one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
        if one.dtype.kind in "fc":
            scale = max(1.0, float(np.nanmax(np.abs(other[np.isfinite(other)]), initial=0.0)))
            with np.errstate(invalid="ignore"):
                apart = np.where(
                    (one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one.astype(float) - other.astype(float))
                )
            worst = max(worst, float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0)) / scale)
        elif not np.array_equal(one, other):
            return "differs: other integers"
    return "equal" if worst <= tolerance else f"differs by {worst:.1e}"


def _of_page(outputs: Sequence[dict[str, Any]]) -> list[np.ndarray]:
    names = {"float32": "float32", "float64": "float64", "float16": "float16", "bool": "bool"}
    return [
        np.frombuffer(base64.b64decode(each["base64"]), names.get(each["dtype"], each["dtype"])).reshape(each["shape"])
        for each in outputs
    ]
