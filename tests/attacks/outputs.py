"""Outputs that meet something in their way, or are cut short: the inputs stay, and what is there is the old output or the new one."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from ortscan.modelio import LoadedModel, load, save
from tests.attacks.frame import Box, attack, interrupted_at_each_line, killed_at_each_file_event

__all__: list[str] = []

SIDE = 32
TEXT = f"""
<ir_version: 10, opset_import: ["": 18]>
g (float[T, {SIDE}] x) => (float[T, {SIDE}] y) {{
  y = Scan <num_scan_inputs = 1, body = b (float[{SIDE}] a) => (float[{SIDE}] r) {{ m = MatMul (a, w) n = Add (m, v) r = Tanh (n) }}> (x)
}}
"""
STEP = int(os.environ.get("ATTACKS_STEP", "9"))
WRITING = ("modelio/saving.py", "with_data.py", "replacing.py", "data_layout.py", "destination.py", "model_file.py")


def put(path: Path, value: float, data: str = "") -> Path:
    """Write a model whose weights have one value, with its data beside it in the file ``data``, or in itself."""
    made = onnx.parser.parse_model(TEXT)
    for name, shape in (("w", (SIDE, SIDE)), ("v", (2 * SIDE, SIDE))):
        made.graph.initializer.append(numpy_helper.from_array(np.full(shape, value, np.float32), name))
    made.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.full((1, SIDE), value, np.float32), "v"))
    if data:
        (path.parent / data).unlink(missing_ok=True)
        onnx.save(made, path, save_as_external_data=True, location=data, size_threshold=0)
    else:
        path.write_bytes(made.SerializeToString())
    return path


def value_of(path: Path) -> float:
    """Read a model with its data, and demand that all its weights have one value."""
    values = {float(each) for tensor in onnx.load(path).graph.initializer for each in np.unique(numpy_helper.to_array(tensor))}
    assert len(values) == 1, f"weights of several models: {values}"
    return values.pop()


def changed(path: Path) -> LoadedModel:
    """The model at ``path`` with other weights, and one more in front, so that all data moves."""
    loaded = load(path)
    initializers = loaded.model.graph.initializers
    old = [initializers.pop(name) for name in list(initializers)]
    extra = ir.Value(
        name="extra",
        const_value=ir.tensor(np.full((SIDE, SIDE), 2, np.float32), name="extra"),
        type=ir.TensorType(ir.DataType.FLOAT),
    )
    for value in (extra, *old):
        if value is not extra:
            assert value.const_value is not None
            value.const_value = ir.tensor(np.full(value.const_value.shape.numpy(), 2, np.float32), name=value.name)
        loaded.model.graph.register_initializer(value)
    return loaded


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def restore(folder: Path, before: dict[str, bytes]) -> None:
    for path in list(folder.iterdir()):
        path.unlink()
    for name, content in before.items():
        (folder / name).write_bytes(content)


def _fresh(box: Box) -> tuple[Path, Path]:
    return put(box.work / "m.onnx", 1, "m.onnx.data"), box.work / "out.onnx"


def _in_place(box: Box) -> tuple[Path, Path]:
    return (path := put(box.work / "m.onnx", 1, "m.onnx.data")), path


def _over_another(box: Box) -> tuple[Path, Path]:
    return put(box.work / "m.onnx", 1, "m.onnx.data"), put(box.work / "out.onnx", 3, "out.onnx.data")


def _over_a_whole_one(box: Box) -> tuple[Path, Path]:
    return put(box.work / "m.onnx", 1, "m.onnx.data"), put(box.work / "out.onnx", 3)


def _over_one_cut_short(box: Box) -> tuple[Path, Path]:
    put(box.work / "out.onnx", 3, "out.onnx.1.data")
    return put(box.work / "m.onnx", 1, "m.onnx.data"), box.work / "out.onnx"


def _in_a_link(box: Box) -> tuple[Path, Path]:
    path = put(box.work / "m.onnx", 1, "m.onnx.data")
    (box.work / "link.onnx").symlink_to("m.onnx")
    return path, box.work / "link.onnx"


Strikes = Callable[[Callable[[], object]], Iterator[int]]


def cut_short(prepare: Callable[[Box], tuple[Path, Path]], strikes: Strikes, leaves_nothing: bool, box: Box) -> None:
    source, out = prepare(box)
    before = files(box.work)
    link = os.readlink(out) if out.is_symlink() else ""
    old = value_of(out) if out.exists() else None
    seen = set()
    for number in strikes(lambda: save(changed(source), out, source=source, as_external_data=True)):
        found = value_of(out) if out.exists() else None
        assert found in (old, 2.0), f"step {number}: {found}"
        assert (source == out or out.is_symlink()) or value_of(source) == 1.0, f"step {number}: the input"
        seen.add(found)
        strays = {path.name for path in box.work.iterdir()} - before.keys() - {"out.onnx", f"{out.name}.data", f"{out.name}.1.data"}
        assert not strays or not leaves_nothing, f"step {number}: {strays}"
        if leaves_nothing and found == old:
            assert files(box.work) == before, f"step {number}: something changed"
        restore(box.work, before)
        if link:
            out.unlink()
            out.symlink_to(link)
    assert seen == {old, 2.0}


CASES = {
    "a new output": _fresh,
    "an output that is the input": _in_place,
    "an output over another": _over_another,
    "an output over one without data": _over_a_whole_one,
    "an output over one that was cut short": _over_one_cut_short,
    "an output through a link to the input": _in_a_link,
}
for _what, _prepare in CASES.items():
    attack(f"{_what}, killed at any file event", seconds=60)(partial(cut_short, _prepare, killed_at_each_file_event, False))
    attack(f"{_what}, interrupted at many lines", seconds=60)(
        partial(cut_short, _prepare, lambda work: interrupted_at_each_line(work, *WRITING, step=STEP), True)
    )
