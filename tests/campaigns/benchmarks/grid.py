"""Whether the form that ``optimize`` chooses is the fastest: ``python -m tests.campaigns benchmarks.grid``, with a word for some families alone.

Over steps, widths and rows, each family of recurrences is timed as it is chosen, with its loop kept, and in its closed form whatever
that is said to cost; in one process, in turn, with one thread. Printed are the microseconds of each, and at the end for how many
the choice is within a tenth of the best, and where it is not. With ``--costs FILE``, as ``ortscan bench --calibrate`` writes one, the
same is told of what is chosen by the costs that were measured, beside what is chosen by those built in. ``--rounds``: of how many
turns the fastest counts.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

import ortscan
from rewrites.recurrences import closed_form
from rewrites.recurrences.cumulative import cumulative
from rewrites.recurrences.linear import constant_filter
from tests.campaigns.benchmarks.closed_forms import best_of_models
from tests.campaigns.closed_forms.checking import has_loop
from tests.campaigns.closed_forms.families import FAMILIES, Sizes, feeds_of, model_of

__all__ = ["main"]

_STEPS, _WIDTHS, _ROWS = (8, 64, 512, 4096), (1, 16, 256), (1, 8)
_RULES = ["cumulative", "cumulative-logsumexp", "constant-filter", "linear-recurrence", "gated-recurrence", "linear-attention"]
_NEAR = 1.1
_LARGEST = 1 << 21


@dataclass
class _Choices:
    """How near to the best what is chosen by some costs was, and where it was not near."""

    name: str
    near: int = 0
    far: list[tuple[float, str]] = field(default_factory=list)

    def add(self, ratio: float, line: str) -> None:
        self.near += ratio <= _NEAR
        self.far += [(ratio, line)] if ratio > _NEAR else []

    def say(self) -> None:
        count = self.near + len(self.far)
        print(f"\n{self.name}: {self.near} of {count} choices ({self.near / max(1, count):.0%}) are within a tenth of the best.")
        for ratio, line in sorted(self.far, reverse=True)[:20]:
            print(f"{ratio:.2f}: {line}")
        if self.far:
            mean = np.mean([1.0] * self.near + [ratio for ratio, _ in self.far])
            print(f"The mean choice takes {mean:.2f} times as long as the best.")


@contextmanager
def _whatever_it_costs() -> Iterator[None]:
    """Let the rules take no account of time."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(closed_form, "MARGIN", 1e-6))
        for module, name in ((cumulative._Candidate, "_too_wide"), (constant_filter, "_too_slow")):
            stack.enter_context(mock.patch.object(module, name, return_value=None))
        yield


def _forms(model: onnx.ModelProto, costs: Path | None) -> dict[str, onnx.ModelProto]:
    """Return what is chosen by the costs built in, and by those in the file, and the two forms that there are."""
    forms = {"built in": ortscan.optimize(model, verify=False)}
    if costs is not None:
        forms["measured"] = ortscan.optimize(model, verify=False, costs=costs)
    forms["loop"] = ortscan.optimize(model, verify=False, skip=_RULES)
    with _whatever_it_costs():
        forms["closed"] = ortscan.optimize(model, verify=False)
    return forms


def _times(forms: dict[str, onnx.ModelProto], feeds: dict[str, np.ndarray], rounds: int) -> dict[str, float]:
    """Return the seconds of each, of one and the same model once; a closed form that is none takes for ever."""
    alike: dict[bytes, list[str]] = {}
    for name, model in forms.items():
        alike.setdefault(model.SerializeToString(deterministic=True), []).append(name)
    seconds = best_of_models([forms[names[0]] for names in alike.values()], feeds, rounds)
    found = {name: second for names, second in zip(alike.values(), seconds, strict=True) for name in names}
    times = {name: found[name] for name in forms}
    return times | ({"closed": float("inf")} if has_loop(forms["closed"]) else {})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns benchmarks.grid")
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--costs", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    choices = [_Choices("built in")] + [_Choices("measured")] * (args.costs is not None)
    names = [one.name for one in choices]
    heads = ["family", "steps", "width", "rows", *(f"{name}, µs" for name in (*names, "loop", "closed form"))]
    heads += [f"{name} / best" for name in names]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for (name, family), steps, width, rows in product(FAMILIES.items(), _STEPS, _WIDTHS, _ROWS):
        sizes = Sizes(steps, width * rows, family.kinds[0])
        if args.word not in name or steps * width * rows > _LARGEST:
            continue
        forms = _forms(model_of(family.body, sizes, family.states, family.opset), args.costs)
        feeds = feeds_of(sizes, family.starts[: family.states], 0, near_one=name == "product")
        times = _times(forms, feeds, args.rounds)
        line = f"{name} | {steps} | {width} | {rows} | " + " | ".join(f"{time * 1e6:.1f}" for time in times.values())
        ratios = [times[one] / min(times.values()) for one in names]
        print(f"| {line} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |", flush=True)
        for one, ratio in zip(choices, ratios, strict=True):
            one.add(ratio, line)
    for one in choices:
        one.say()


if __name__ == "__main__":
    main()
