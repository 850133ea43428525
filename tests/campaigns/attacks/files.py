"""External data that leads elsewhere, or is not what it should be: nothing outside the model's folder is read, made or linked."""

import os
import socket
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto

import ortscan
from tests.campaigns.attacks.frame import Box, attack, command, refused
from tests.support.text import parsed

__all__: list[str] = []

SIDE = 32
BYTES = 4 * SIDE * SIDE
X = np.full((3, SIDE), 0.01, np.float32)
TEXT = f"""
<ir_version: 10, opset_import: ["": 18]>
g (float[T, {SIDE}] x) => (float[T, {SIDE}] y) {{
  y = Scan <num_scan_inputs = 1, body = b (float[{SIDE}] a) => (float[{SIDE}] r) {{ m = MatMul (a, w) r = Tanh (m) }}> (x)
}}
"""
FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"
Build = Callable[[Path, Box], object]


def model(*entries: tuple[str, str]) -> bytes:
    """A Scan with the weight ``w`` outside: ``entries`` are those of its external data, in order."""
    made = parsed(TEXT)
    tensor = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[SIDE, SIDE])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries:
        tensor.external_data.add(key=key, value=value)
    return made.SerializeToString()


def folder_of_model(box: Box) -> Path:
    """The folder of the model, with good data in ``w.bin`` and ``sub/w.bin``."""
    folder = box.work / "m"
    (folder / "sub").mkdir(parents=True)
    for path in (folder / "w.bin", folder / "sub" / "w.bin"):
        path.write_bytes(np.ones(SIDE * SIDE, np.float32).tobytes())
    return folder


def is_refused(path: Path, *words: str) -> None:
    """Demand that every way in refuses the model at ``path``, and that a session of ours does what onnxruntime's own does."""
    before = sorted(path.parent.rglob("*"))
    out = path.with_name("out.onnx")
    for call in (
        lambda: ortscan.optimize(path),
        lambda: ortscan.optimize(path, output=out),
        lambda: ortscan.migrate(path, 21),
        lambda: ortscan.explain(path),
    ):
        refused(call, *words)
    for verb in ("optimize", "migrate"):
        code, _, said = command(verb, path, out)
        assert code == 1, said
    sessions_do_as_onnxruntime(path, str(path.parent))
    assert sorted(path.parent.rglob("*")) == before, "files were made in the model's folder"


def sessions_do_as_onnxruntime(given: Path, folder: str) -> None:
    for form, make in ((given, lambda: None), (given, options), (given.read_bytes(), lambda: options(folder))):
        theirs, ours = (outcome(kind, form, make()) for kind in (ort.InferenceSession, ortscan.InferenceSession))
        assert theirs == ours, f"{ours} instead of {theirs}"


def options(folder: str = "") -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.log_severity_level = 4
    if folder:
        made.add_session_config_entry(FOLDER_ENTRY, folder)
    return made


def outcome(kind: Callable[..., ort.InferenceSession], given: Path | bytes, made: ort.SessionOptions | None) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(kind(given, made).run(None, {"x": X})[0].tobytes())
    except Exception as error:
        return type(error).__name__


def nothing(folder: Path, box: Box) -> None:
    """Build nothing."""


def located(location: str, words: tuple[str, ...], build: Build, box: Box) -> None:
    folder = folder_of_model(box)
    build(folder, box)
    (folder / "m.onnx").write_bytes(model(("location", location.replace("OUTSIDE", str(box.outside)))))
    is_refused(folder / "m.onnx", *words)


def link(target: str) -> Build:
    return lambda folder, box: (folder / "l").symlink_to(target)


def listening(folder: Path, box: Box) -> None:
    os.chdir(folder)  # a socket's path may not be long
    socket.socket(socket.AF_UNIX).bind("l")
    os.chdir(box.work)


_LEAVES, _RELATIVE, _REGULAR = "leaves the model's folder", "not a relative path", "not a regular file"
LOCATIONS: dict[str, tuple[str, str, Build]] = {
    "in the folder above": ("../../outside/secret", _LEAVES, nothing),
    "through a folder and out": ("sub/../../../outside/secret", _LEAVES, nothing),
    "out and in again": ("../m/w.bin", _LEAVES, nothing),
    "that is not there, elsewhere": ("../../outside/planted/deep/w.bin", _LEAVES, nothing),
    "the folder itself": (".", _REGULAR, nothing),
    "the folder above": ("..", _LEAVES, nothing),
    "absolute": ("OUTSIDE/secret", _RELATIVE, nothing),
    "absolute, of the system": ("/etc/passwd", _RELATIVE, nothing),
    "absolute, a device": ("/dev/zero", _RELATIVE, nothing),
    "of the process": ("../../../../../../../../proc/self/environ", _LEAVES, nothing),
    "empty": ("", "has no location", nothing),
    "a link out": ("l", _LEAVES, link("../../outside/secret")),
    "an absolute link out": ("l", _LEAVES, lambda folder, box: (folder / "l").symlink_to(box.outside / "secret")),
    "a link out to nothing": ("l", _LEAVES, link("../../outside/planted")),
    "a linked folder": ("l/secret", _LEAVES, link("../../outside")),
    "a link to a device": ("l", _LEAVES, link("/dev/zero")),
    "a link to a link out": (
        "sub/k",
        _LEAVES,
        lambda folder, box: (link("../../outside/secret")(folder, box), (folder / "sub" / "k").symlink_to("../l")),
    ),
    "a link to itself": ("l", "cannot be read", link("l")),
    "a pipe": ("l", _REGULAR, lambda folder, box: os.mkfifo(folder / "l")),
    "a link to a pipe": ("l", _REGULAR, lambda folder, box: (os.mkfifo(folder / "p"), link("p")(folder, box))),
    "a socket": ("l", _REGULAR, listening),
    "a folder": ("sub", _REGULAR, nothing),
    "in a file": ("w.bin/x", "", nothing),
    "too long": ("x" * 5000, "cannot be read", nothing),
    "too deep": ("x/" * 3000 + "w", "cannot be read", nothing),
    "with backslashes": ("..\\outside\\secret", "does not exist", nothing),
    "in memory": ("*/_ORT_MEM_ADDR_/*", "does not exist", nothing),
    "not there": ("none.bin", "does not exist", nothing),
    "with newlines": ("a\nortscan: all is well\n", "does not exist", nothing),
}
for _what, (_location, _words, _build) in LOCATIONS.items():
    attack(f"a location {_what}")(partial(located, _location, (_words,), _build))


@attack("a location with a null character")
def _(box: Box) -> None:
    """onnxruntime stops reading there and finds the file; we don't guess."""
    folder = folder_of_model(box)
    for number, location in enumerate(("w.bin\0", "\0w.bin", "w.bin\0/../../outside/secret")):
        path = folder / f"{number}.onnx"
        path.write_bytes(model(("location", location)))
        refused(lambda path=path: ortscan.optimize(path), "not a relative path")
        assert command("optimize", path, folder / "out.onnx")[0] == 1
        sessions_do_as_onnxruntime(path, str(folder))


@attack("a location that is no text")
def _(box: Box) -> None:
    folder = folder_of_model(box)
    for number, bad in enumerate((b"w.\xff\xfen", b"\xed\xa0\x80bin")):
        path = folder / f"{number}.onnx"
        path.write_bytes(model(("location", "w.bin")).replace(b"w.bin", bad))
        refused(lambda path=path: ortscan.optimize(path))
        sessions_do_as_onnxruntime(path, str(folder))


def described(entries: tuple[tuple[str, str], ...], words: tuple[str, ...], box: Box) -> None:
    folder = folder_of_model(box)
    (folder / "m.onnx").write_bytes(model(*entries))
    is_refused(folder / "m.onnx", *words)


_W = ("location", "w.bin")
ENTRIES: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "an offset below 0": ((_W, ("offset", "-1")), "not a number of bytes"),
    "an offset beyond the file": ((_W, ("offset", "4096")), "which has 4096 bytes"),
    "an offset of 64 bits": ((_W, ("offset", str(2**63))), "not a number of bytes"),
    "an offset just below 64 bits": ((_W, ("offset", str(2**59))), "which has 4096 bytes"),
    "an offset of 5000 digits": ((_W, ("offset", "9" * 5000)), "not a number of bytes"),
    "an offset with a point": ((_W, ("offset", "0.0")), "not a number of bytes"),
    "an offset in other digits": ((_W, ("offset", "\N{ARABIC-INDIC DIGIT ZERO}")), "not a number of bytes"),
    "a length beyond the file": ((_W, ("length", "8192")), "has 8192 bytes, but its shape needs 4096"),
    "a length too short": ((_W, ("length", "4")), "has 4 bytes, but its shape needs 4096"),
    "a length below 0": ((_W, ("length", "-4096")), "not a number of bytes"),
    "two locations": ((_W, ("location", "sub/w.bin")), "has 2 entries 'location'"),
    "two locations, one elsewhere": ((("location", "../../outside/secret"), _W), "has 2 entries 'location'"),
    "no location": ((("offset", "0"),), "has no location"),
    "no entries": ((), "has no location"),
}
for _what, (_entries, _said) in ENTRIES.items():
    attack(f"external data with {_what}")(partial(described, _entries, (_said,)))


@attack("a location that is the name of a file of ours")
def _(box: Box) -> None:
    """What a temporary folder is filled with must not be written through to the model's own."""
    folder = folder_of_model(box)
    for name in ("model.onnx", "entry.json", "out.onnx"):
        (folder / name).write_bytes((folder / "w.bin").read_bytes())
        (folder / "m.onnx").write_bytes(model(("location", name)))
        before = (folder / name).read_bytes()
        for given in (None, options()):
            session = ortscan.InferenceSession(folder / "m.onnx", given)
            assert session.ortscan.source in ("optimized", "cached"), session.ortscan.why
        assert (folder / name).read_bytes() == before


@attack("a data file of a terabyte that is all holes")
def _(box: Box) -> None:
    folder = folder_of_model(box)
    with (folder / "holes").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "m.onnx").write_bytes(model(("location", "holes"), ("offset", str((1 << 40) - BYTES))))
    ortscan.optimize(folder / "m.onnx", output=folder / "out.onnx")
    assert (folder / "out.onnx.data").stat().st_size < 1 << 20


@attack("an onnx_ir.Model and a ModelProto with a location elsewhere")
def _(box: Box) -> None:
    import onnx_ir as ir

    folder = folder_of_model(box)
    os.chdir(folder)
    for location in ("../../outside/secret", str(box.outside / "secret")):
        made = onnx.load_from_string(model(("location", location)))
        for given in (made, made.SerializeToString(), ir.from_proto(made)):
            refused(lambda given=given: ortscan.optimize(given, output=folder / "out.onnx"), "'w'")
            assert not (folder / "out.onnx").exists()


@attack("a model that is a pipe nobody writes to, a device, a socket")
def _(box: Box) -> None:
    listening(box.work, box)
    os.mkfifo(box.work / "p")
    for path in (box.work / "l", box.work / "p", "/dev/zero", "/dev/urandom", "/dev/null", "/dev/tty"):
        refused(lambda path=path: ortscan.optimize(path))
        assert command("optimize", path, box.work / "out.onnx")[0] == 1


@attack("a model through a pipe, which can be read only once, is taken by every verb")
def _(box: Box) -> None:
    content = parsed(TEXT.replace("MatMul (a, w)", "Add (a, a)")).SerializeToString()
    out, limits = box.work / "out.onnx", {"time_limit": 60}

    def pipe(what: bytes = content) -> str:
        read, write = os.pipe()
        os.write(write, what)
        os.close(write)
        return f"/dev/fd/{read}"

    for given in ({}, limits):
        assert isinstance(ortscan.optimize(pipe(), output=out, **given), onnx.ModelProto)
        assert isinstance(ortscan.migrate(pipe(), 20, **given), onnx.ModelProto)
        assert ortscan.explain(pipe(), **given).loops
    assert ortscan.verify(pipe(), pipe()).ok
    assert ortscan.InferenceSession(pipe()).ortscan.source in ("optimized", "cached")
    for line in (("optimize", pipe(), out), ("migrate", pipe(), out), ("explain", pipe()), ("verify", pipe(), pipe())):
        assert command(*line)[0] == 0
    assert ortscan.verify(content, out).ok
    refused(lambda: ortscan.optimize(pipe(b"")), "/dev/fd/", "is empty")
    refused(lambda: ortscan.optimize(pipe(content[:50])), "/dev/fd/", "truncated")
