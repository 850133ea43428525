"""Models whose result was once wrong, invalid or fatal now have a sound result. Skipped if their folder is missing."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.corpus import big_corpus
from tests.support.runtime import ort_run

MIGRATED = {"invalid_5000408": 16, "wrong_5000141": 16, "wrong_5000347": 16, "wrong_5000431": 16, "wrong_78000787": 25}


def samples() -> list[Path]:
    corpus = big_corpus()
    folder = None if corpus is None else corpus.parent.parent / "failing"
    return sorted(folder.glob("*/model.onnx")) if folder is not None and folder.is_dir() else []


def arrays(files: list[Path]) -> dict[str, np.ndarray]:
    tensors = [onnx.load_tensor(path) for path in files]
    return {tensor.name or path.stem: onnx.numpy_helper.to_array(tensor) for tensor, path in zip(tensors, files, strict=True)}


@pytest.mark.parametrize("path", [pytest.param(path, id=path.parent.name) for path in samples()])
def test_a_sample_comes_back_as_it_was(path):
    model = onnx.load(path)
    opset = MIGRATED.get(path.parent.name)
    after = ortscan.optimize(model, verify=False) if opset is None else ortscan.migrate(model, opset, verify=False)
    onnx.checker.check_model(after, full_check=True)
    onnx.shape_inference.infer_shapes(after, check_type=True, strict_mode=True, data_prop=True)
    for data in sorted(path.parent.glob("test_data_set_*")):
        feeds = arrays(sorted(data.glob("input_*.pb")))
        for index, got in enumerate(ort_run(after, feeds)):
            wanted = onnx.numpy_helper.to_array(onnx.load_tensor(data / f"output_{index}.pb"))
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            rough = 1e-2 if wanted.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(got, wanted, rtol=rough, atol=rough)
