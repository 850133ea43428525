"""Arguments that are no plain values: iterators without end, mappings that lie, sizes of nothing, and words of no encoding."""

import itertools
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx

import ortscan
from tests.campaigns.attacks.frame import Box, attack, command, model_of, refused, survived

__all__: list[str] = []

PLAIN = "g (float[T, 4] x) => (float[T, 4] y) { y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) { r = Neg (a) }> (x) }"


class Endless(Mapping[Any, Any]):
    """It has an item for whatever is asked for, and no end."""

    def __getitem__(self, key: object) -> Any:
        return [1]

    def __iter__(self) -> Iterator[str]:
        return (f"x{place}" for place in itertools.count())

    def __len__(self) -> int:
        return 1 << 60


class Liar(str):
    """A word that is equal to all others, and none."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __len__(self) -> int:
        return 1 << 40


HUGE = np.broadcast_to(np.float32(1), (1 << 40,))
VALUES: dict[str, Callable[[], Any]] = {
    "an iterator without end": itertools.count,
    "words without end": lambda: itertools.repeat("default"),
    "a mapping without end": Endless,
    "a word that is all words": lambda: Liar("cpu"),
    "an array of a terabyte": lambda: HUGE,
    "a list of arrays": lambda: [HUGE, HUGE],
    "shapes of an array of a terabyte": lambda: {"x": HUGE},
    "shapes of a range of 2^60": lambda: {"x": range(1 << 60)},
    "shapes without end": lambda: {"x": itertools.repeat(1)},
    "inputs of a wrong rank": lambda: {"x": np.float32(1)},
    "inputs of objects": lambda: {"x": np.array([object()], object)},
    "inputs of dates": lambda: {"x": np.array(["2020-01-01"], "datetime64[D]")},
    "inputs of records": lambda: {"x": np.zeros(2, [("a", "f4"), ("b", "i8")])},
}
CALLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "optimize": (
        partial(ortscan.optimize, verify=False),
        ("target", "shapes", "fix_shapes", "passes", "skip", "max_unroll", "verify", "time_limit"),
    ),
    "migrate": (lambda given, **options: ortscan.migrate(given, 21, **options), ("verify", "output", "memory_limit")),
    "explain": (ortscan.explain, ("shapes", "passes", "target", "opset")),
    "verify": (
        lambda given, **options: ortscan.verify(given, given, time_limit=2, **options),
        ("inputs", "shapes", "rtol", "seed", "level"),
    ),
}


def given_to_all(verb: str, make: Callable[[], Any], box: Box) -> None:
    call, names = CALLS[verb]
    for name in names:
        survived(lambda name=name: call(model_of(PLAIN), **{name: make()}))


for _what, _make in VALUES.items():
    for _verb in CALLS:
        if "inputs" not in _what or _verb == "verify":
            attack(f"{_what} for {_verb}")(partial(given_to_all, _verb, _make))


@attack("models that are no models")
def _(box: Box) -> None:
    for make in VALUES.values():
        for verb in (
            ortscan.optimize,
            ortscan.explain,
            lambda given: ortscan.migrate(given, 21),
            lambda given: ortscan.verify(given, given),
        ):
            survived(lambda make=make, verb=verb: verb(make()))


@attack("archives of inputs that are not what they say")
def _(box: Box) -> None:
    onnx.save(model_of(PLAIN), box.work / "m.onnx")
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }"
    members = {
        "29 TiB": header % b"8000000000000",
        "beyond 64 bits": header % b"99999999999999999999999",
        "below zero": header % b"-4",
        "brackets": header % (b"(" * 40),
        "no header": b"\x93NUMPY",
        "objects": header.replace(b"<f4", b"|O") % b"4",
        "nothing": b"",
    }
    for what, content in members.items():
        path = box.work / f"{what}.npz".replace(" ", "_")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
        refused(lambda path=path: ortscan.verify(box.work / "m.onnx", box.work / "m.onnx", inputs=path))
        assert command("verify", box.work / "m.onnx", box.work / "m.onnx", "--inputs", path)[0] in (1, 2)
    bomb = box.work / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w", force_zip64=True) as member:
        member.write(header.replace(b"(%s,)", b"(%d, 4)") % (1 << 28))
        for _ in range(1 << 6):
            member.write(bytes(1 << 24))
    survived(lambda: ortscan.verify(box.work / "m.onnx", box.work / "m.onnx", inputs=bomb, time_limit=5))
