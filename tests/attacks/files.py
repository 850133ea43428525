"""External data that leads elsewhere, or is not what it should be: nothing outside the model's folder is read, made or linked."""

import functools
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

import ortscan
from tests.attacks.frame import Box, attack, command, refused

__all__: list[str] = []

SIDE = 32
BYTES = 4 * SIDE * SIDE
TEXT = f"""
<ir_version: 10, opset_import: ["": 18]>
g (float[T, {SIDE}] x) => (float[T, {SIDE}] y) {{
  y = Scan <num_scan_inputs = 1, body = b (float[{SIDE}] a) => (float[{SIDE}] r) {{ m = MatMul (a, w) r = Tanh (m) }}> (x)
}}
"""


def model(**entries: object) -> bytes:
    """A Scan with the weight ``w`` outside: ``entries`` are those of its external data, in order."""
    made = onnx.parser.parse_model(TEXT)
    tensor = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[SIDE, SIDE])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key.rstrip("_"), value=str(value))
    return made.SerializeToString()


def in_folder(box: Box, **entries: object) -> Path:
    """The model ``work/m/m.onnx`` beside a good ``w.bin``."""
    folder = box.work / "m"
    folder.mkdir(exist_ok=True)
    (folder / "w.bin").write_bytes(np.ones(SIDE * SIDE, np.float32).tobytes())
    (folder / "m.onnx").write_bytes(model(**entries))
    return folder / "m.onnx"


def outcomes(path: Path, *words: str) -> None:
    """Demand that every way in refuses the model at ``path``, and that a session of ours does what onnxruntime's does."""
    refused(lambda: ortscan.optimize(path), *words)
    refused(lambda: ortscan.optimize(path, output=path.with_name("out.onnx")), *words)
    refused(lambda: ortscan.migrate(path, 21), *words)
    refused(lambda: ortscan.explain(path), *words)
    code, _, said = command("optimize", path, path.with_name("out.onnx"))
    assert code == 1, said
    assert not path.with_name("out.onnx").exists()


LOCATIONS: dict[str, tuple[str, ...]] = {
    "../../outside/secret": ("leaves the model's folder",),
    "/etc/hostname": ("not a relative path",),
}


def refused_for_its_location(location: str, words: tuple[str, ...], box: Box) -> None:
    outcomes(in_folder(box, location=location), "'w'", *words)


for _location, _words in LOCATIONS.items():
    attack(f"the location {_location!r}")(functools.partial(refused_for_its_location, _location, _words))
