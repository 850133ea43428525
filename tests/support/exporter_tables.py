"""Tables of the gains of exported models, from the measurements of ``python -m tests.campaigns benchmarks.exporters --write``."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rewrites.base.plain_text import counted

__all__ = ["FOUND", "Found", "Gain", "Loop", "found", "gains_in_short", "gains_table", "left_table", "setting"]

FOUND = Path(__file__).parents[1] / "campaigns" / "benchmarks" / "exporters.json"
_QUIET = 0.5
"""Up to such a load the machine was the benchmark's own."""
_NAMES = {
    "torch": ["torch"],
    "jax2onnx": ["jax2onnx"],
    "tf2onnx": ["tf2onnx"],
    "Keras, on TensorFlow": ["keras-tensorflow"],
    "Keras, on JAX": ["keras-jax"],
    "skl2onnx": ["skl2onnx"],
    "onnxscript": ["onnxscript"],
    "functions of ONNX itself": ["onnxfn"],
    "paddle2onnx": ["paddle2onnx"],
    "any of them, after another tool": ["post"],
}
_IN_SHORT = {
    "torch": ["torch"],
    "jax2onnx": ["jax2onnx"],
    "tf2onnx (TensorFlow, Keras)": ["tf2onnx"],
    "Keras's own export": ["keras-tensorflow", "keras-jax"],
    "skl2onnx": ["skl2onnx"],
    "onnxscript, ONNX's functions": ["onnxscript", "onnxfn"],
    "paddle2onnx; after other tools": ["paddle2onnx", "post"],
}
"""What to call exporters, and how the names of their models begin."""
_ALL = "**all**"


@dataclass(frozen=True)
class Loop:
    """The fate of a loop, and the code of the most important reason if a part of it remains."""

    fate: str
    code: str


@dataclass(frozen=True)
class Gain:
    """The gain of one model: the fates of its loops, and its speedup without and with compiled loops."""

    model: str
    loops: tuple[Loop, ...]
    plain: float
    native: float
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def exporter(self) -> str:
        """The exporter: the prefix of the names of its models."""
        return self.model.partition("__")[0]

    @property
    def left(self) -> int:
        """The number of remaining loops."""
        return sum(loop.fate != "removed" for loop in self.loops)


@dataclass(frozen=True)
class Found:
    """The measurements and the machine. ``load`` is the load of the machine before the measurement."""

    runtime: str
    processor: str
    cores: int
    load: float
    gains: tuple[Gain, ...]

    def to_json(self) -> str:
        """Return the measurements as text with a line for each model."""
        facts = asdict(self)
        lines = ",\n".join(f"  {json.dumps(gain)}" for gain in facts.pop("gains"))
        return f'{json.dumps(facts)[:-1]}, "gains": [\n{lines}\n]}}\n'


def found() -> Found:
    """Read the last measurements."""
    facts: dict[str, Any] = json.loads(FOUND.read_text(encoding="utf-8"))
    gains = [Gain(**{**gain, "loops": tuple(Loop(**loop) for loop in gain["loops"])}) for gain in facts.pop("gains")]
    return Found(**facts, gains=tuple(gains))


def setting(measured: Found) -> str:
    """Return a description of the measurement."""
    busy = "" if measured.load <= _QUIET else f", **busy with other work (load {measured.load})**"
    return (
        f"Measured with onnxruntime {measured.runtime} on one thread of {measured.processor}, {measured.cores} cores{busy}, on "
        f"{counted(len(measured.gains), 'model')}.\nA free number of steps was set to 64, and a free number of rows to 1. Speed-ups are "
        "geometric means (minimum to maximum). The last column uses ortscan sessions.\n"
    )


def gains_in_short(measured: Found) -> str:
    """Return a short row for each exporter."""
    rows = [_gains_row(name, gains) for name, gains in _rows(measured, _IN_SHORT)]
    return _table(["exporter", "models", "loops", "gone", "faster", "with compiled loops"], [(*row[:4], *row[-2:]) for row in rows])


def gains_table(measured: Found) -> str:
    """Return a row for each exporter: the number of removed loops and the speedups of its models."""
    titles = ["exporter", "models", "loops", "gone", "left, smaller", "left as they were", "faster", "with compiled loops"]
    return _table(titles, [_gains_row(name, gains) for name, gains in _rows(measured, _NAMES)])


def _gains_row(name: str, gains: Sequence[Gain]) -> Sequence[object]:
    loops = [loop for gain in gains for loop in gain.loops]
    gone, kept = sum(loop.fate == "removed" for loop in loops), sum(loop.fate == "kept" for loop in loops)
    spreads = _spread([gain.plain for gain in gains]), _spread([gain.native for gain in gains])
    return name, len(gains), len(loops), gone, len(loops) - gone - kept, kept, *spreads


def _spread(ratios: Sequence[float]) -> str:
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.2f}" if len(ratios) == 1 else f"{mean:.2f} ({min(ratios):.3g} to {max(ratios):.3g})"


def _rows(measured: Found, names: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, Sequence[Gain]]]:
    assert {prefix for prefixes in names.values() for prefix in prefixes} == {gain.exporter for gain in measured.gains}
    for name, prefixes in names.items():
        yield name, _of_exporters(measured, prefixes)
    yield _ALL, measured.gains


def _of_exporters(measured: Found, prefixes: Sequence[str]) -> Sequence[Gain]:
    """Return the models of exporters."""
    return [gain for gain in measured.gains if gain.exporter in prefixes]


def left_table(measured: Found, prefixes: Sequence[str]) -> str:
    """Return a row for each reason that keeps loops of exporters: their number, fates and models."""
    where: dict[tuple[str, str], list[str]] = {}
    for gain in _of_exporters(measured, prefixes):
        for loop in gain.loops:
            if loop.fate != "removed":
                where.setdefault((loop.code, loop.fate), []).append(gain.model.partition("__")[2])
    if not where:
        return "No loop of these models is left.\n"
    return _table(
        ["reason", "what became of it", "loops of"],
        [
            (
                f"[`{code}`](../../reference/reasons.md#{code.lower()})",
                fate,
                ", ".join(f"`{name}`" + (f" ({count})" if count > 1 else "") for name, count in Counter(names).items()),
            )
            for (code, fate), names in sorted(where.items())
        ],
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
