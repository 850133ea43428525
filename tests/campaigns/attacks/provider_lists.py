"""Lists of execution providers, absent and present, and sizes of 0: no process ends that onnxruntime alone keeps alive."""

import contextlib
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import onnxruntime as ort

import ortscan
from ortscan.targets import TARGETS
from tests.campaigns.attacks.frame import Box, attack
from tests.rewrites.direction.test_random_directions import AFTER, SPELLINGS
from tests.rewrites.direction.two_directions import two_scans
from tests.rewrites.recurrences.test_masked_cells import masked
from tests.rewrites.recurrences.written_cells import written

__all__: list[str] = []

LISTS: tuple[tuple[str, ...], ...] = (
    ("CUDA", "CPU"),
    ("CUDA",),
    ("Tensorrt", "CUDA", "CPU"),
    ("NvTensorRTRTX", "CPU"),
    ("OpenVINO", "CPU"),
    ("Azure", "CPU"),
)
PROMISED = ("CUDA", "Dml")
SIZES = tuple(itertools.product((0, 1, 2), repeat=2))
Open = Callable[[onnx.ModelProto], ort.InferenceSession]
Some = Callable[[], Iterator[tuple[str, onnx.ModelProto]]]


def two_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Recurrences that become the nodes that die of nothing, with free numbers of rows and steps."""
    for kind in ("LSTM", "GRU"):
        yield kind, written(kind, "split by Slice").model(steps="T", rows="B", reverse=kind == "GRU")


def models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """More recurrences that become native nodes."""
    yield from two_models()
    yield "RNN", written("RNN", "split by Slice").model(steps="T", rows="B")
    cells = [written("LSTM", "split by Slice")] * 2
    yield "two directions", two_scans(*cells, SPELLINGS[0], AFTER["side by side"], rows="B", steps="T", zeros=False)
    yield "a mask", masked("GRU", "Where", "the state", rows="B")


def survives(opened: Open, some: Some, box: Box) -> None:
    """Run sizes of 0 to 2 and compare with onnxruntime, where it has results at all; what is printed last is what it died of."""
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)
    for name, model in some():
        session, plain = opened(model), ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for steps, rows in SIZES:
            print(f"{name}: {steps} steps, {rows} rows", flush=True)
            feeds = {each.name: _array(each, {"T": steps, "B": rows}) for each in plain.get_inputs()}
            try:
                expected = plain.run(None, feeds)
            except Exception:  # onnxruntime's Scan runs on no empty sequence: then ours has only to go on living
                with contextlib.suppress(Exception):
                    session.run(None, feeds)
                continue
            for mine, its in zip(session.run(None, feeds), expected, strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5, strict=True)


def _array(info: ort.NodeArg, sizes: dict[str, int]) -> np.ndarray:
    shape = [sizes.get(dim, dim) for dim in info.shape]
    values = np.random.default_rng(1).standard_normal(shape)
    return values > 0 if "bool" in info.type else values.astype(np.float32 if "float" in info.type else np.int64)


def listed(names: tuple[str, ...], model: onnx.ModelProto) -> ort.InferenceSession:
    """A session of ortscan's with a list of providers."""
    session = ortscan.InferenceSession(model, providers=[f"{name}ExecutionProvider" for name in names])
    assert session.ortscan.source in ("optimized", "cached"), session.ortscan.why
    assert session.ortscan.target == "cpu", session.ortscan.target
    return session


def promised(name: str, model: onnx.ModelProto) -> ort.InferenceSession:
    """The same where a provider is said to be available, and cannot be loaded."""
    there = ort.get_available_providers
    ort.get_available_providers = lambda: [f"{name}ExecutionProvider", "CPUExecutionProvider"]
    try:
        return listed((name, "CPU"), model)
    finally:
        ort.get_available_providers = there


def meant_for(target: str, model: onnx.ModelProto) -> ort.InferenceSession:
    """A session of onnxruntime's of what was optimised for somewhere else."""
    result = ortscan.optimize(model, target=target)
    return ort.InferenceSession(result.SerializeToString(), providers=["CPUExecutionProvider"])


def demanded(target: str, model: onnx.ModelProto) -> ort.InferenceSession:
    """A session of ortscan's whose options name a target that is not there."""
    options = ort.SessionOptions()
    options.add_session_config_entry("ortscan.target", target)
    session = ortscan.InferenceSession(model, options, ["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.ortscan.target == target
    return session


for _names in LISTS:
    attack(f"providers {', '.join(_names)}", seconds=60)(functools.partial(survives, functools.partial(listed, _names), two_models))
for _name in PROMISED:
    attack(f"{_name} that cannot be loaded", seconds=60)(
        functools.partial(survives, functools.partial(promised, _name), two_models)
    )
for _target in sorted(TARGETS):
    attack(f"a file for {_target}", seconds=60)(functools.partial(survives, functools.partial(meant_for, _target), models))
attack("a target that is not there", seconds=60)(functools.partial(survives, functools.partial(demanded, "cuda"), models))
