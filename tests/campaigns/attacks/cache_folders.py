"""Cache folders that are not what they should be: a session optimises all the same, and runs nothing that another user left there."""

import functools
import json
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

import ortscan
from ortscan.cache.facts import as_bytes
from tests.campaigns.attacks.frame import Box, attack
from tests.support.small_models import with_weights

__all__: list[str] = []

WIDTH = 300
MODEL = with_weights(WIDTH)
X = np.ones((2, WIDTH), np.float32)
EXPECTED = np.tanh(X @ onnx.numpy_helper.to_array(MODEL.graph.initializer[0]))
Change = Callable[[Path], object]


def started(given: object, folder: str | os.PathLike[str] | None = None) -> str:
    """Start a session that has to work, and give where its model is from."""
    options = ort.SessionOptions()
    if folder is not None:
        options.add_session_config_entry("ortscan.cache_dir", os.fspath(folder))
    session = ortscan.InferenceSession(given, options if folder is not None else None)
    np.testing.assert_allclose(session.run(None, {"x": X})[0], EXPECTED, rtol=1e-4, atol=1e-5)
    assert session.ortscan.source in ("optimized", "cached"), session.ortscan.why
    return session.ortscan.source


def forms(box: Box) -> tuple[object, ...]:
    """The model by its path and in bytes."""
    onnx.save(MODEL, box.work / "m.onnx")
    return box.work / "m.onnx", MODEL.SerializeToString()


def changed_files(name: str, change: Change, box: Box) -> None:
    """Change each file of the cache called ``name``; it may cost one start from the cache, and is then as good as new."""
    for given in forms(box):
        shutil.rmtree(box.cache)
        box.cache.mkdir(mode=0o700)
        assert [started(given) for _ in range(2)] == ["optimized", "cached"]
        for file in box.cache.rglob(name):
            change(file)
        for _ in range(2):
            started(given)
        assert started(given) == "cached"


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def as_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def everybodys(path: Path) -> None:
    path.chmod(0o666)


def stating(text: str, path: Path) -> None:
    path.write_bytes(as_bytes(json.loads(text)) if text != "deep" else _deep())


def _deep() -> bytes:
    import hashlib

    text = b"[" * 100_000 + b"]" * 100_000
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def partly(key: str, value: object, path: Path) -> None:
    """Say something else of one thing, under a good digest."""
    facts = json.loads(path.read_bytes().partition(b"\n")[2])
    path.write_bytes(as_bytes({**facts, key: value}))


KINDS = {"a pipe": as_pipe, "a socket": as_socket, "a device": as_device, "a folder": as_folder, "everybody's": everybodys}
NONSENSE = ("[]", "{}", "1", "null", '"x"', '{"checksum": 1}', '{"checksum": "", "data": {}}', "deep")
PARTS = {
    "checksum": ("1", None, 1),
    "python_ops": (None, 3),
    "report": (3, []),
    "data": (1, [2], None),
    "source": (None, 3),
    "another": (1,),
    "key": ("f" * 64, None),
    "verified": (3, None),
    "refuted": (3, ["x"]),
}

for _kind, _change in KINDS.items():
    for _name in ("model.onnx", "*.json"):
        attack(f"{_name} is {_kind}")(functools.partial(changed_files, _name, _change))


@attack("facts that are nonsense")
def _(box: Box) -> None:
    for text in NONSENSE:
        changed_files("*.json", functools.partial(stating, text), box)


def one_after_the_other(key: str, box: Box) -> None:
    """Every odd value of one of the facts."""
    for value in PARTS[key]:
        changed_files("entry.json", functools.partial(partly, key, value), box)


for _key in PARTS:
    attack(f"an odd {_key} among the facts")(functools.partial(one_after_the_other, _key))


def no_cache(make: Change, box: Box) -> None:
    """A folder that cannot be a cache: sessions optimise each time."""
    folder = box.work / "folder"
    folder = make(folder) or folder  # type: ignore[assignment]
    for given in forms(box):
        assert [started(given, folder) for _ in range(2)] == ["optimized"] * 2


def planted(path: Path, mode: int, owner: int) -> None:
    """A good cache, in a folder that is then somebody else's too."""
    path.mkdir(mode=0o700)
    started(MODEL.SerializeToString(), path)
    assert started(MODEL.SerializeToString(), path) == "cached"
    path.chmod(mode)
    if owner and os.geteuid():
        os.geteuid = lambda: owner  # what belongs to this user is somebody else's from now on
    elif owner:
        for each in (path, *path.rglob("*")):
            os.chown(each, owner, -1)


NOT_CACHES: dict[str, Change] = {
    "a file": lambda path: path.write_text(""),
    "a pipe": os.mkfifo,
    "below a file": lambda path: (path.write_text("") and None) or path / "inner",
    "a link to itself": lambda path: path.symlink_to(path),
    "too long a name": lambda path: path / ("x" * 300),
    "too long a path": lambda path: Path(path, *["x" * 200] * 30),
    "one step short of too long": lambda path: Path(path, *["x" * 95] * ((4095 - len(str(path)) - 8) // 96)),
    "everybody's": lambda path: planted(path, 0o777, 0),
    "a group's": lambda path: planted(path, 0o770, 0) or os.chown(path, -1, 4711 if not os.geteuid() else -1),
    "below everybody's": lambda path: planted(path, 0o700, 0) or path.parent.chmod(0o777),
    "another user's": lambda path: planted(path, 0o700, 4711),
    "another user's with the sticky bit": lambda path: planted(path, 0o1777, 4711),
}
for _what, _make in NOT_CACHES.items():
    if _what != "a group's" or not os.geteuid():  # only the system's user can give files away
        attack(f"the folder is {_what}")(functools.partial(no_cache, _make))


@attack("entries are another user's, in a folder that was everybody's once")
def _(box: Box) -> None:
    folder = box.work / "folder"
    folder.mkdir()
    given = MODEL.SerializeToString()
    started(given, folder)
    (model,) = folder.rglob("model.onnx")
    model.chmod(0o606)
    assert [started(given, folder) for _ in range(2)] == ["optimized", "cached"]
    assert not model.stat().st_mode & 0o077


@attack("names of folders that are odd, and none the less names")
def _(box: Box) -> None:
    for name in ("ä\n\t", " ", "-", "\udc80", "%s{}", "'\"`$(x)", "循环", "a" * 200, "...", "*?[a]"):
        os.environ["ORTSCAN_CACHE_DIR"] = str(box.work / name)
        kept = "optimized" if name == "\udc80" else "cached"  # onnxruntime opens no such path
        assert [started(MODEL.SerializeToString()) for _ in range(2)] == ["optimized", kept]


def under_umask(umask: int, box: Box) -> None:
    """Whatever the umask, only this user can read or write what is there."""
    given = forms(box)
    os.umask(umask)
    for number, each in enumerate(given):
        folder = box.work / "a" / "b" / str(number)
        assert [started(each, folder) for _ in range(3)] == ["optimized", "cached", "cached"]
    made = [box.work / "a", *(box.work / "a").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}


for _mask in (0, 0o002, 0o077, 0o777):
    attack(f"umask {_mask:03o}")(functools.partial(under_umask, _mask))
