"""Outputs that meet something in their way, or are cut short: the inputs stay, and what is there is the old output or the new one."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import numpy_helper

import ortscan
from ortscan.__main__ import main
from ortscan.base.temporary import TemporaryFolder
from ortscan.modelio import LoadedModel, load, save
from tests.campaigns.attacks.frame import Box, attack, command, interrupted_at_each_line, killed_at_each_file_event, refused
from tests.support.text import parsed

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
    made = parsed(TEXT)
    for name, shape in (("w", (SIDE, SIDE)), ("v", (2 * SIDE, SIDE))):
        made.graph.initializer.append(numpy_helper.from_array(np.full(shape, value, np.float32), name))
    made.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.full(SIDE, value, np.float32), "v"))
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
    real = Path(os.path.realpath(out)).name
    old = value_of(out) if out.exists() else None
    seen = set()
    for number in strikes(lambda: save(changed(source), out, source=source, as_external_data=True)):
        found = value_of(out) if out.exists() else None
        assert found in (old, 2.0), f"step {number}: {found}"
        assert (source == out or out.is_symlink()) or value_of(source) == 1.0, f"step {number}: the input"
        seen.add(found)
        strays = {path.name for path in box.work.iterdir()} - before.keys() - {"out.onnx", f"{real}.data", f"{real}.1.data"}
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


def is_as_it_was(box: Box, before: dict[str, bytes], *new: str) -> None:
    """Demand that all files are what they were, beside those that are ``new``."""
    found = files(box.work)
    assert {name: found.get(name) for name in before} == before, "an input was changed"
    assert found.keys() <= before.keys() | set(new), found.keys()


def hard_link(name: str) -> Callable[[Box], object]:
    return lambda box: os.link(box.work / name, box.work / "out.onnx")


def soft_link(name: str) -> Callable[[Box], object]:
    return lambda box: (box.work / "out.onnx").symlink_to(name)


IN_THE_WAY: dict[str, tuple[str, Callable[[Box], object], str]] = {
    "is the input's data": ("m.onnx.data", lambda box: None, "holds external data of the model"),
    "is another name of the input's data": ("out.onnx", hard_link("m.onnx.data"), "holds external data of the model"),
    "is a link to the input's data": ("out.onnx", soft_link("m.onnx.data"), "holds external data of the model"),
    "is a folder": ("out.onnx", lambda box: (box.work / "out.onnx").mkdir(), "is a folder"),
    "is a pipe": ("out.onnx", lambda box: os.mkfifo(box.work / "out.onnx"), "not a regular file"),
    "is a device": ("/dev/full", lambda box: None, "not a regular file"),
    "is in no folder": ("no/out.onnx", lambda box: None, "does not exist"),
    "is below a file": ("m.onnx/out.onnx", lambda box: None, "cannot be written"),
    "has data where another's is": (
        "out.onnx",
        lambda box: (box.work / "out.onnx.data").write_bytes(b"another's"),
        "exists and does not belong",
    ),
    "has data where a folder is": ("out.onnx", lambda box: (box.work / "out.onnx.data").mkdir(), "is a folder"),
    "has data where a pipe is": ("out.onnx", lambda box: os.mkfifo(box.work / "out.onnx.data"), "exists and does not belong"),
    "has data where a link leads out": (
        "out.onnx",
        lambda box: (box.work / "out.onnx.data").symlink_to("../outside/secret"),
        "exists and does not belong",
    ),
    "has data where a link leads nowhere": (
        "out.onnx",
        lambda box: (box.work / "out.onnx.data").symlink_to("../outside/planted"),
        "exists and does not belong",
    ),
    "has data where the input is": ("m", lambda box: (box.work / "m.onnx").rename(box.work / "m.data"), ""),
}


def is_in_the_way(output: str, build: Callable[[Box], object], words: str, box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "w.bin" if output == "m" else "m.onnx.data")
    build(box)
    source = source if source.exists() else box.work / "m.data"
    before = {path.name: path.read_bytes() for path in box.work.iterdir() if path.is_file() and not path.is_symlink()}
    if words:
        refused(lambda: save(changed(source), output, source=source, as_external_data=True), words)
        assert command("optimize", source, output, "--save-as-external-data")[0] == 1
    else:
        save(changed(source), output, source=source, as_external_data=True)
        assert value_of(box.work / output) == 2.0
    after = {path.name: path.read_bytes() for path in box.work.iterdir() if path.is_file() and not path.is_symlink()}
    assert {name: after.get(name) for name in before} == before, "an input was changed"


for _what, (_output, _build, _words) in IN_THE_WAY.items():
    attack(f"an output that {_what}")(partial(is_in_the_way, _output, _build, _words))


@attack("an output that is another name of the input")
def _(box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "m.onnx.data")
    os.link(source, box.work / "out.onnx")
    before = files(box.work)
    save(changed(source), box.work / "out.onnx", source=source, as_external_data=True)
    del before["out.onnx"]
    is_as_it_was(box, before, "out.onnx", "out.onnx.data")
    assert (value_of(source), value_of(box.work / "out.onnx")) == (1.0, 2.0)


@attack("an output whose data is another name of the input's")
def _(box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "m.onnx.data")
    os.link(box.work / "m.onnx.data", box.work / "out.onnx.data")
    before = files(box.work)
    save(changed(source), box.work / "out.onnx", source=source, as_external_data=True)
    is_as_it_was(box, before, "out.onnx", "out.onnx.1.data")
    assert onnx.load(box.work / "out.onnx").graph.initializer


@attack("an input whose data has the name of the output's, which is there and uses it too")
def _(box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "out.onnx.data")
    (box.work / "out.onnx").write_bytes(source.read_bytes())
    for name in ("m.onnx", "out.onnx.data"):
        assert (box.work / name).exists()
    before = files(box.work)
    del before["out.onnx"]
    save(changed(source), box.work / "out.onnx", source=source, as_external_data=True)
    is_as_it_was(box, before, "out.onnx", "out.onnx.1.data")
    assert (value_of(source), value_of(box.work / "out.onnx")) == (1.0, 2.0)


@attack("an output written twice, and once more where its model was removed")
def _(box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "m.onnx.data")
    for again in range(3):
        save(changed(source), box.work / "out.onnx", source=source, as_external_data=True)
        assert files(box.work).keys() == {"m.onnx", "m.onnx.data", "out.onnx", "out.onnx.data"}
        assert value_of(box.work / "out.onnx") == 2.0
        if again:
            (box.work / "out.onnx").unlink()


@attack("no room on the disk")
def _(box: Box) -> None:
    source, out = put(box.work / "m.onnx", 1, "m.onnx.data"), put(box.work / "out.onnx", 3, "out.onnx.data")
    before = files(box.work)
    loaded = changed(source)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for most in (0, 100, 4096, 8000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        try:
            for target in (source, out, box.work / "new.onnx"):
                refused(lambda target=target: save(loaded, target, source=source, as_external_data=True), "cannot be written")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert files(box.work) == before


_KEPT = ["m.onnx", "m.onnx.data", "out.onnx"]


@attack("Ctrl-C at any moment of the command line", seconds=60)
def _(box: Box) -> None:
    source, out = put(box.work / "m.onnx", 1, "m.onnx.data"), put(box.work / "out.onnx", 3, "out.onnx.data")
    before = files(box.work)
    codes = set()
    for number in range(12):
        child = os.fork()
        if not child:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os._exit(main(["optimize", str(source), str(out), "--save-as-external-data", "-q"]))
            except KeyboardInterrupt:  # before the first line of main
                os._exit(130)
        time.sleep(0.02 * number)
        os.kill(child, signal.SIGINT)
        codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        assert value_of(source) == 1.0
        assert value_of(out) in (3.0, 1.0)
        names = sorted(files(box.work))  # the new model stands with data of another name until that gets the usual one
        assert names in [[*_KEPT, "out.onnx.data"], [*_KEPT, "out.onnx.1.data"]], names
        assert not box.left(), box.left()
        restore(box.work, before)
    assert codes <= {0, 130, -2}, codes


@attack("a report, or an output, in the place of an input")
def _(box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "m.onnx.data")
    os.link(source, box.work / "same.onnx")
    np.savez(box.work / "x.npz", x=np.zeros((2, SIDE), np.float32))
    before = files(box.work)
    for arguments in (
        ("optimize", source, "out.onnx", "--report", source),
        ("optimize", source, "out.onnx", "--report", "same.onnx"),
        ("optimize", source, "out.onnx", "--report", "m.onnx.data"),
        ("optimize", source, "out.onnx", "--inputs", "x.npz", "--report", "x.npz"),
        ("optimize", source, "x.npz", "--inputs", "x.npz"),
        ("explain", source, "--report", "m.onnx.data"),
    ):
        assert command(*arguments)[0] in (1, 2), arguments
        is_as_it_was(box, before)


@attack("temporary folders under any umask")
def _(box: Box) -> None:
    for mask in (0o777, 0o000, 0o277, 0o077):
        os.umask(mask)
        with TemporaryFolder() as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "file").touch()
        assert not folder.exists()


@attack("a session that is interrupted while it is made", seconds=60)
def _(box: Box) -> None:
    source = put(box.work / "m.onnx", 1, "m.onnx.data")
    before = files(box.work)

    def start() -> None:
        options = ort.SessionOptions()
        options.add_session_config_entry("ortscan.cache", "0")
        ortscan.InferenceSession(source, options)

    for number in interrupted_at_each_line(start, "session/opening.py", "ortscan/base/temporary.py", step=5):
        assert files(box.work) == before, f"step {number}: {files(box.work).keys()}"
        assert not box.left(), f"step {number}: {box.left()}"


READ = """
import sys, time, onnx, onnx.numpy_helper as h
read, broken = 0, []
while not __import__("os").path.exists(sys.argv[2]):
    try:
        found = {float(h.to_array(each).reshape(-1)[0]) for each in onnx.load(sys.argv[1]).graph.initializer}
        if len(found) != 1:
            broken.append(f"weights of several models: {found}")
    except Exception as error:
        broken.append(f"{type(error).__name__}: {error}")
    read += 1
print(read, broken[:3])
"""


@attack("an output that is read while it is written", seconds=120)
def _(box: Box) -> None:
    """Another process reads the model again and again while it is written in its own place: it gets the old one or the new."""
    path, done = put(box.work / "m.onnx", 1), box.work / "done"
    reader = subprocess.Popen([sys.executable, "-c", READ, path, done], stdout=subprocess.PIPE, text=True)
    try:
        for number in range(50):
            loaded = load(path)
            for value in loaded.model.graph.initializers.values():
                assert value.const_value is not None
                sizes = (*value.const_value.shape.numpy()[:-1], SIDE + number)
                value.const_value, value.shape = ir.tensor(np.full(sizes, number + 2, np.float32), name=value.name), ir.Shape(sizes)
            save(loaded, path, source=path)
            time.sleep(0.02)
    finally:
        done.touch()
        said = reader.communicate(timeout=60)[0]
    count, _, broken = said.partition(" ")
    assert int(count) > 5, said
    assert broken.strip() == "[]", said
    assert value_of(path) == 51.0
