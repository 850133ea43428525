"""Quantises models of each exporter and converts them to float16, before and after ``ortscan.optimize``.

The campaign ``hosts --only low_precision`` runs ``measure`` in an environment with the converters. The results are compared with the outputs
of the original model.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static
from onnxruntime.transformers import float16 as ort_float16

import ortscan

__all__ = ["MODELS", "TOOLS", "measure"]

Feeds = Mapping[str, np.ndarray]
MODELS = (
    "torch__scan_lstm_linear_h0c0_dyn",
    "torch__scan_attn_decoder",
    "jax2onnx__linen_bidir_lstm",
    "jax2onnx__scan_map",
    "tf2onnx__keras_lstm_b1",
    "keras-tensorflow__bidir_gru",
    "keras-jax__lstm",
    "onnxscript__scan_lstm",
    "onnxfn__linear_attention_gated_delta",
    "paddle2onnx__while_newton",
    "skl2onnx__gpr_rbf",
)
"""Models of each exporter. If the exporter has such a model, the loop contains products."""

_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum", "RNN", "GRU", "LSTM", "LinearAttention"})
_QUANTISED = frozenset(
    {"MatMulInteger", "QLinearMatMul", "QGemm", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
)


class _Recorded(CalibrationDataReader):  # type: ignore[misc]
    """Calibration data: the recorded inputs of a model, once."""

    def __init__(self, feeds: Feeds) -> None:
        self._rest = iter([feeds])

    def get_next(self) -> Feeds | None:
        return next(self._rest, None)


def _dynamic(source: Path, target: Path, feeds: Feeds) -> None:
    quantize_dynamic(source, target, extra_options={"EnableSubgraph": True})


def _static(source: Path, target: Path, feeds: Feeds) -> None:
    quantize_static(source, target, _Recorded(feeds))


def _float16(source: Path, target: Path, feeds: Feeds) -> None:
    onnx.save(ort_float16.convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def _float16_common(source: Path, target: Path, feeds: Feeds) -> None:
    from onnxconverter_common import float16

    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


TOOLS: dict[str, Callable[[Path, Path, Feeds], None]] = {
    "quantize_dynamic": _dynamic,
    "quantize_static": _static,
    "onnxruntime.transformers.float16": _float16,
    "onnxconverter_common.float16": _float16_common,
}


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the outcomes of all tools for each of ``MODELS`` in ``folder``."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    ort.set_default_logger_severity(4)
    for name in MODELS:
        original = folder / f"{name}.onnx"
        with np.load(original.with_suffix(".npz")) as arrays:
            feeds = {key.removeprefix("in:"): array for key, array in arrays.items() if key.startswith("in:")}
        outputs = _run(original, feeds)
        with TemporaryDirectory() as scratch:
            optimised = Path(scratch) / "optimised.onnx"
            ortscan.optimize(original, output=optimised)
            before, after = (
                {tool: _outcome(tool, model, Path(scratch) / "converted.onnx", feeds, outputs) for tool in TOOLS}
                for model in (original, optimised)
            )
        yield {"model": name, "before": before, "after": after}


def _run(model: Path, feeds: Feeds) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    outputs: list[np.ndarray] = session.run(None, dict(feeds))
    return outputs


def _outcome(tool: str, model: Path, target: Path, feeds: Feeds, expected: Sequence[np.ndarray]) -> dict[str, Any]:
    """Convert ``model`` by ``tool`` and run the result. Return an error, or the difference.

    The outcome of a quantiser also has the number of quantised products and the number of all products.
    """
    try:
        TOOLS[tool](model, target, feeds)
    except Exception as error:
        return {"fails": f"the tool: {type(error).__name__}: {error}"[:300]}
    try:
        results = _run(target, feeds)
    except Exception as error:
        return {"fails": f"onnxruntime: {error}".replace(str(target), "the model")[:300]}
    difference = {"difference": float(f"{max(map(_difference, results, expected)):.1g}")}
    if not tool.startswith("quantize"):
        return difference
    quantised, products = _quantised_products(onnx.load(target))
    return {"quantised": quantised, "products": products, **difference}


def _quantised_products(model: onnx.ModelProto) -> tuple[int, int]:
    """Return the number of quantised products, and the number of all products, nested graphs and functions included."""
    nodes = [node for graph in (model.graph, *model.functions) for node in _nodes(graph)]
    integers = sum(node.op_type in _QUANTISED for node in nodes)
    floats = [node for node in nodes if node.op_type in _PRODUCTS]
    dequantised = {name for node in nodes if node.op_type == "DequantizeLinear" for name in node.output}
    pairs = sum(dequantised.issuperset(node.input[:2]) for node in floats)
    return integers + pairs, integers + len(floats)


def _nodes(graph: Any) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for nested in (attribute.g, *attribute.graphs):
                yield from _nodes(nested)


def _difference(result: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest expected number."""
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    return float(np.max(np.abs(result.astype(np.float64) - expected.astype(np.float64)), initial=0.0)) / scale


def write(folder: str, target: str) -> None:
    """Measure the models in ``folder``, and write the outcomes and the versions of the tools to ``target``."""
    from importlib.metadata import version

    versions = {name: version(name) for name in ("onnxruntime", "onnxconverter-common")}
    rows = list(measure(Path(folder)))
    Path(target).write_text(json.dumps({"versions": versions, "models": rows}, indent=1) + "\n", encoding="utf-8")
