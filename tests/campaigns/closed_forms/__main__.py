"""Checks every family of recurrences at all sizes and types, and all near misses: ``python -m tests.campaigns closed_forms``.

A word on the command line chooses the families whose names hold it.
"""

import sys
from itertools import product

from tests.campaigns.closed_forms.checking import check_family, check_near_miss
from tests.campaigns.closed_forms.families import FAMILIES, NEAR_MISSES, Sizes
from tests.campaigns.closed_forms.filters import FILTER_MISSES, FILTERS, FilterSizes, check_filter, check_filter_miss
from tests.campaigns.closed_forms.matrices import DECAYS, MatrixSizes, check_matrix

_STEPS = (0, 1, 2, 3, 16, 17, 100, 1000, 4096)
_WIDTHS = (1, 3, 16, 256, 1024)
_MATRICES = ((1, 1, 1), (1, 8, 8), (3, 5, 17), (4, 32, 32), (1, 128, 256))


def main() -> int:
    word, wrong, done = sys.argv[1] if len(sys.argv) > 1 else "", 0, 0
    for name, family in FAMILIES.items():
        for kind, steps, width, free in product(family.kinds, _STEPS, _WIDTHS, (False, True)):
            if word in name and (steps or free) and steps * width <= 1 << 20:
                said = check_family(name, Sizes(steps, width, kind, free), done)
                done, wrong = done + 1, wrong + bool(said)
                if said:
                    print(f"{name}, {steps} steps of {width} {kind}{', free' if free else ''}: {said}", flush=True)
    for name, steps, (heads, keys, values), kind, free in product(
        DECAYS, _STEPS[1:], _MATRICES, ("float", "double"), (False, True)
    ):
        if word in name and steps * heads * (keys + values) <= 1 << 19:
            sizes = MatrixSizes(steps, heads, keys, values, kind, free)
            for target in ("onnx", "cpu"):
                said = check_matrix(name, sizes, done, target)
                done, wrong = done + 1, wrong + bool(said)
                if said:
                    print(f"{name}, {sizes} for {target}: {said}", flush=True)
    for name, steps in product(NEAR_MISSES, (3, 40, 1000)):
        if word in name:
            said = check_near_miss(name, Sizes(steps, 4, "float"), done)
            done, wrong = done + 1, wrong + bool(said)
            if said:
                print(f"near miss: {name}, {steps} steps: {said}", flush=True)
    for (name, states), steps, kind, backwards in product(
        FILTERS.items(), (20, 100, 500, 2000), ("float", "double"), (False, True)
    ):
        if word in name:
            said = check_filter(FilterSizes(steps, states, kind, backwards), done)
            done, wrong = done + 1, wrong + bool(said)
            if said:
                print(f"{name}, {steps} steps of {kind}{', backwards' if backwards else ''}: {said}", flush=True)
    for name, steps in product(FILTER_MISSES, (40, 1000)):
        if word in name:
            said = check_filter_miss(name, FilterSizes(steps, 3), done)
            done, wrong = done + 1, wrong + bool(said)
            if said:
                print(f"near miss: {name}, {steps} steps: {said}", flush=True)
    print(f"{done} recurrences, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
