"""Prints the tables of ortscan/docs/maintainers/measurements.md: time of the result against the original, and what `optimize` itself costs.

python -m tests.campaigns benchmarks
"""

import time

import ortscan
from tests.campaigns.benchmarks.large_models import (
    delay_line,
    many_loops,
    many_scans,
    nodes_between_scans,
    recurrent_body,
    wide_body,
)
from tests.campaigns.benchmarks.loops import STACKS, timed_loops
from tests.campaigns.benchmarks.timing import best_ms
from tests.support.layers import layer_feeds, layers


def main() -> None:
    print("| loop | original, ms | ortscan, ms | ratio |")
    print("|---|---|---|---|")
    for loop in timed_loops():
        before, after = best_ms([loop.model, ortscan.optimize(loop.model, **loop.options)], loop.feeds)
        print(f"| {loop.name} | {before:.3f} | {after:.3f} | {before / after:.1f} |", flush=True)
    print("\n| two layers, 100 steps | a loop each, ms | in one body, ms | ratio |")
    print("|---|---|---|---|")
    for cell, hidden, batch in STACKS:
        models = [layers([cell] * 2, hidden, batch, apart=apart) for apart in (True, False)]
        before, after = best_ms([ortscan.optimize(model) for model in models], layer_feeds(models[0]))
        print(f"| {cell}, batch {batch}, width {hidden} | {before:.3f} | {after:.3f} | {before / after:.2f} |", flush=True)
    print("\n| `optimize` of | seconds |")
    print("|---|---|")
    for name, make, sizes in (
        ("small Scans", many_scans, (125, 250, 500)),
        ("nodes in one body", wide_body, (5000, 10000, 20000)),
        ("nodes around a recurrence", recurrent_body, (5000, 10000, 20000)),
        ("states that hand a value on", delay_line, (400, 3000)),
        ("chained Loops", many_loops, (250, 1000)),
        ("nodes between two Scans", nodes_between_scans, (10_000, 100_000)),
    ):
        for size in sizes:
            model = make(size)
            start = time.perf_counter()
            ortscan.optimize(model)
            print(f"| {size} {name} | {time.perf_counter() - start:.1f} |", flush=True)


if __name__ == "__main__":
    main()
