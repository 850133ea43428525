"""How many of the wrong pairs are found, and how many of the honest ones are called different."""

import sys
import time
from collections import Counter

from ortscan.verification import Verification, verify
from tests.verification_pairs.honest import honest_pairs
from tests.verification_pairs.pair import Pair
from tests.verification_pairs.wrong import wrong_pairs


def main() -> int:
    failed = 0
    for what, pairs, right in (("wrong", wrong_pairs(), "different"), ("honest", honest_pairs(), "equal")):
        started, found = time.process_time(), Counter[str]()
        for one in pairs:
            outcome = verify(one.before, one.after)
            found[outcome.outcome] += 1
            if outcome.outcome != right and not _is_said(one, outcome):
                failed += 1
                print(f"{what}, but {outcome.outcome}: {one.name}: {outcome.summary()}")
        counts = ", ".join(f"{count} {name}" for name, count in found.items())
        print(f"{len(pairs)} {what} pairs in {time.process_time() - started:.0f} s of processor time: {counts}")
    return 1 if failed else 0


def _is_said(one: Pair, outcome: Verification) -> bool:
    """Whether the pair differs where the summary says that nothing was tried."""
    return one.untried is not None and any(one.untried in line for line in (*outcome.not_tried, *outcome.notes))


if __name__ == "__main__":
    sys.exit(main())
