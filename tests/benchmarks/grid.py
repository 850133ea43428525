"""Whether the form that ``optimize`` chooses is the fastest: ``python -m tests.benchmarks.grid``, with a word for some families alone.

Over steps, widths and rows, each family of recurrences is timed as it is chosen, with its loop kept, and in its closed form whatever
that is said to cost; in one process, in turns, with one thread. Printed are the microseconds of each, and at the end for how many
the choice is within a tenth of the best, and where it is not.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from unittest import mock

import numpy as np
import onnx

import ortscan
from rewrites.analysis.linear import levels
from rewrites.rules.recurrence import constant_filter, cumulative, cumulative_logsumexp, gated_recurrence
from tests.benchmarks.closed_forms import best_of
from tests.closed_forms.checking import has_loop
from tests.closed_forms.families import FAMILIES, Sizes, feeds_of, model_of

__all__ = ["main"]

_STEPS, _WIDTHS, _ROWS = (8, 64, 512, 4096), (1, 16, 256), (1, 8)
_RULES = ["cumulative", "cumulative-logsumexp", "constant-filter", "linear-recurrence", "gated-recurrence", "linear-attention"]
_NEAR = 1.1
_LARGEST = 1 << 21


@contextmanager
def _whatever_it_costs() -> Iterator[None]:
    """Let the rules take no account of time."""
    with ExitStack() as stack:
        for module in (levels, gated_recurrence, cumulative_logsumexp):
            stack.enter_context(mock.patch.object(module, "_MARGIN", 1e-6))
        for module, name in ((cumulative, "_too_wide"), (constant_filter, "_too_slow")):
            stack.enter_context(mock.patch.object(module, name, return_value=None))
        yield


def _forms(model: onnx.ModelProto) -> dict[str, onnx.ModelProto]:
    forms = {"chosen": ortscan.optimize(model, verify=False), "loop": ortscan.optimize(model, verify=False, skip=_RULES)}
    with _whatever_it_costs():
        forms["closed"] = ortscan.optimize(model, verify=False)
    return forms


def main() -> None:
    word, near, far = sys.argv[1] if len(sys.argv) > 1 else "", 0, list[tuple[float, str]]()
    print(
        "| family | steps | width | rows | chosen, µs | loop, µs | closed form, µs | chosen / best |\n|---|---|---|---|---|---|---|---|"
    )
    for (name, family), steps, width, rows in product(FAMILIES.items(), _STEPS, _WIDTHS, _ROWS):
        sizes = Sizes(steps, width * rows, family.kinds[0])
        if word not in name or steps * width * rows > _LARGEST:
            continue
        model = model_of(family.body, sizes, family.states, family.opset)
        forms = _forms(model)
        feeds = feeds_of(sizes, family.starts[: family.states], 0, near_one=name == "product")
        times = dict(zip(forms, best_of(list(forms.values()), feeds), strict=True))
        if has_loop(forms["closed"]):
            times["closed"] = float("inf")
        same = "loop" if has_loop(forms["chosen"]) else "closed"  # one and the same model, but for noise
        chosen = min(times["chosen"], times[same])
        ratio = chosen / min(times.values())
        line = f"{name} | {steps} | {width} | {rows} | {times['chosen'] * 1e6:.1f} | {times['loop'] * 1e6:.1f} | {times['closed'] * 1e6:.1f}"
        print(f"| {line} | {ratio:.2f} |", flush=True)
        near += ratio <= _NEAR
        far += [(ratio, line)] if ratio > _NEAR else []
    print(f"\n{near} of {near + len(far)} choices ({near / max(1, near + len(far)):.0%}) are within a tenth of the best.")
    for ratio, line in sorted(far, reverse=True)[:20]:
        print(f"{ratio:.2f}: {line}")
    if far:
        print(f"The mean choice takes {np.mean([1.0] * near + [ratio for ratio, _ in far]):.2f} times as long as the best.")


if __name__ == "__main__":
    main()
