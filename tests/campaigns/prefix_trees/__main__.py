"""Draws random prefix trees, half of them with a wrong bound: ``python -m tests.campaigns prefix_trees [SECONDS] [SEED]``."""

import sys
import time

from tests.campaigns.prefix_trees.random_trees import fault_of


def main() -> int:
    seconds, seed = (float(sys.argv[1]) if len(sys.argv) > 1 else 600.0), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    start, done, wrong, rolled = time.monotonic(), 0, 0, 0
    while time.monotonic() - start < seconds:
        fault, is_rolled = fault_of(seed + done)
        done, wrong, rolled = done + 1, wrong + bool(fault), rolled + is_rolled
        if fault:
            print(f"seed {seed + done - 1}: {fault}", flush=True)
    print(f"{done} trees, {rolled} rolled up, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
