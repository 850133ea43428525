"""Models that call Python: a call that goes wrong fails as a run fails, in the caller of ``run``, whatever it is given or says."""

import base64
import contextlib
import json
import resource
import threading
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.errors import UnsupportedModel
from rewrites.python_ops.names import DOMAIN, METADATA, OPERATOR
from rewrites.python_ops.wire import SLOTS, CallSpec, Port, pack
from tests.campaigns.attacks.frame import Box, attack, refused
from tests.support.python_calls import ONE, options, session
from tests.support.text import parsed

__all__: list[str] = []

A = np.array([0.5, 1.0])
ERF = [0.5204998778130465, 0.8427007929497149]
WHERE = '<ir_version: 8, opset_import: ["": 18]> g (uint64[N] a, bool[N] c) => (uint64[N] y) { y = Where (c, a, a) }'
LONG = """
<ir_version: 8, opset_import: ["": 18]> g (uint64[2] h, uint64[T, 2] x) => (uint64[2] last, uint64[T, 2] ys) {
  last, ys = Scan <num_scan_inputs = 1, body = b (uint64[2] s, uint64[2] xt) => (uint64[2] n, uint64[2] y) {
    m = Equal (s, xt) n = Where (m, xt, s) y = Identity (n)
  }> (h, x)
}
"""
N = 8_000_000


def too_large(kind: str, room: int, box: Box) -> None:
    model, small, large = {
        "float64": (ONE, {"a": np.ones(3)}, {"a": np.ones(N)}),
        "uint64": (WHERE, {"a": np.ones(3, np.uint64), "c": np.ones(3, bool)}, {"a": np.ones(N, np.uint64), "c": np.ones(N, bool)}),
    }[kind]
    made = session(model)
    made.run(None, small)
    status = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + (room << 20), used + (room << 20)))
    with contextlib.suppress(
        MemoryError, ort.capi.onnxruntime_pybind11_state.Fail, ort.capi.onnxruntime_pybind11_state.RuntimeException
    ):
        made.run(None, large)
    made.run(None, small)


for _kind in ("float64", "uint64"):
    for _room in (1, 40, 130, 200, 270, 400):
        attack(f"an input of 64 MB as {_kind} with {_room} MB of memory left", seconds=60)(partial(too_large, _kind, _room))


def calling() -> onnx.ModelProto:
    """A model that calls Python."""
    made = ortscan.optimize(parsed(ONE), custom_ops=True, verify=False)
    assert isinstance(made, onnx.ModelProto)
    return made


def saying(change: Callable[[dict[str, Any]], object]) -> onnx.ModelProto:
    """Such a model, its call described otherwise."""
    made = calling()
    attribute = next(node for node in made.graph.node if node.op_type == OPERATOR).attribute[0]
    plain = json.loads(attribute.s)
    new = change(plain)
    attribute.s = new if isinstance(new, bytes) else json.dumps(plain if new is None else new).encode()
    return made


def misdescribed(change: Callable[[dict[str, Any]], object], box: Box) -> None:
    made = ortscan.InferenceSession(saying(change).SerializeToString(), options())
    for _ in range(2):
        try:
            refused(lambda: made.run(None, {"a": A}))
        except ValueError:
            assert "states" in str(change({"payload": {}}) or change.__name__)


def put(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda plain: {**plain, name: value}


def run_by(content: Callable[[], bytes]) -> Callable[[dict[str, Any]], object]:
    return lambda plain: {**plain, "payload": {"model": base64.b85encode(zlib.compress(content(), 1)).decode()}}


def referring() -> bytes:
    inner = parsed('<ir_version: 8, opset_import: ["": 18]> g (double[N] a) => (double[N] y) { y = Add (a, w) }')
    tensor = inner.graph.initializer.add(name="w", data_type=onnx.TensorProto.DOUBLE, dims=[2], data_location=1)
    tensor.external_data.add(key="location", value="../outside/secret")
    return inner.SerializeToString()


DESCRIBED: dict[str, Callable[[dict[str, Any]], object]] = {
    "empty": lambda plain: b"",
    "no JSON": lambda plain: b"{",
    "100 000 brackets": lambda plain: b"[" * 100_000,
    "a list": lambda plain: [],
    "an empty object": lambda plain: {},
    "another verb": put("what", "format the disk"),
    "a verb that is a number": put("what", 3),
    "no payload": put("payload", None),
    "inputs that are a number": put("inputs", 3),
    "an input of no type": put("inputs", [["nothing", 1]]),
    "an input of rank -1": put("inputs", [["double", -1]]),
    "an input of rank 'x'": put("inputs", [["double", "x"]]),
    "an input of text": put("inputs", [["string", 1]]),
    "fifty inputs": put("inputs", [["double", 1]] * 50),
    "a model that is no text": put("payload", {"model": 3}),
    "a model that is not packed": put("payload", {"model": "zzz"}),
    "a model that is cut short": run_by(lambda: pack(calling()).encode()[:40]),
    "a model of a gigabyte of zeros": run_by(lambda: bytes(1 << 30)),
    "a model with data outside": run_by(referring),
    "a scan without its plan": put("what", "scan"),
}
for _what, _change in DESCRIBED.items():
    attack(f"a call described by {_what}", memory=3 << 30)(partial(misdescribed, _change))

VERSIONS = (
    *("", "{", "[]", "3", "null", '"a"', "{}", "[" * 100_000, '{"version": null}', '{"version": "x"}', '{"version": []}'),
    *('{"version": 1e400}', '{"version": NaN}', '{"version": 1.5}', '{"version": -1}', '{"version": %s}' % ("9" * 10_000)),
)


@attack("damaged metadata about Python")
def _(box: Box) -> None:
    made = calling()
    entry = next(prop for prop in made.metadata_props if prop.key == METADATA)
    for said in VERSIONS:
        entry.value = said
        ortscan.register(ort.SessionOptions(), made)
        np.testing.assert_allclose(ortscan.InferenceSession(made, options()).run(None, {"a": A})[0], ERF)


@attack("metadata that asks for a newer version")
def _(box: Box) -> None:
    made = calling()
    next(prop for prop in made.metadata_props if prop.key == METADATA).value = '{"version": 99}'
    refused(lambda: ortscan.register(ort.SessionOptions(), made), "needs version 99")


def text_call() -> onnx.ModelProto:
    """A call that is given strings, as no version of ortscan writes one."""
    inner = parsed('<ir_version: 8, opset_import: ["": 18]> g (string[N] a) => (string[N] y) { y = Identity (a) }')
    spec = CallSpec("graph", (Port("string", 1),), (Port("string", 1),), {"model": pack(inner)})
    kinds = {slot: onnx.TensorProto.DataType.Value(slot.upper()) for slot in SLOTS}
    made = [
        onnx.helper.make_node("ConstantOfShape", ["none"], [slot], value=onnx.helper.make_tensor("v", kind, [1], [0]))
        for slot, kind in kinds.items()
        if slot != "string"
    ]
    call = onnx.helper.make_node(OPERATOR, list(SLOTS), [f"{slot}_out" for slot in SLOTS], domain=DOMAIN, spec=spec.text())
    given, got = (onnx.helper.make_tensor_value_info(name, 8, ["N"]) for name in ("string", "string_out"))
    facts = onnx.helper.make_tensor_value_info("int64_out", 7, [1])
    none = onnx.helper.make_tensor("none", 7, [1], [0])
    graph = onnx.helper.make_graph([*made, call], "g", [given], [got, facts], [none])
    return onnx.helper.make_model(
        graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid(DOMAIN, 1)]
    )


@attack("strings with null characters")
def _(box: Box) -> None:
    """They would arrive cut short: nobody gets a wrong string."""
    made = ortscan.InferenceSession(text_call())
    results = made.run(None, {"string": np.array(["a\0b", "c"], object)})
    assert results[0].size == 0, results  # a plain run has no node here that fails; there is no made-up string
    one_hot = """<ir_version: 8, opset_import: ["": 18]>
        g (int32[N] i, string[2] v) => (string[N, 3] y) <int32 d = {3}> { y = OneHot (i, d, v) }"""
    feeds = {"i": np.array([0, 2], np.int32), "v": np.array(["off\0", "on\0x"], object)}
    try:
        found = session(one_hot).run(None, feeds)[0]
    except (UnsupportedModel, ort.capi.onnxruntime_pybind11_state.NotImplemented):
        return
    assert found.tolist() == [["on\0x", "off\0", "off\0"], ["off\0", "off\0", "on\0x"]]


@attack("a long loop in Python that is told to terminate")
def _(box: Box) -> None:
    made = session(LONG)
    assert made.ortscan.report.operators_after.get("Scan") is None, made.ortscan.report.operators_after
    run_options = ort.RunOptions()
    threading.Timer(0.3, lambda: setattr(run_options, "terminate", True)).start()
    started = time.monotonic()
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="terminate flag"):
        made.run(None, {"h": np.zeros(2, np.uint64), "x": np.ones((10_000_000, 2), np.uint64)}, run_options)
    assert time.monotonic() - started < 5
    run_options.terminate = False
    assert made.run(None, {"h": np.zeros(2, np.uint64), "x": np.ones((3, 2), np.uint64)}, run_options)[1].shape == (3, 2)


@attack("a scan with streams of several lengths, and one over nothing")
def _(box: Box) -> None:
    made = session(LONG)
    last, ys = made.run(None, {"h": np.zeros(2, np.uint64), "x": np.zeros((0, 2), np.uint64)})
    assert (last.tolist(), ys.shape) == ([0, 0], (0, 2))
