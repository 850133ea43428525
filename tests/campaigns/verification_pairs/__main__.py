"""How many of the wrong pairs are found, and how many of the honest ones are called different; then the same of chaotic models."""

import sys
import time
from collections import Counter

from ortscan.verification import Verification, verify
from tests.campaigns.verification_pairs.chaotic import chaotic_models, forms
from tests.campaigns.verification_pairs.honest import honest_pairs
from tests.campaigns.verification_pairs.pair import Pair
from tests.campaigns.verification_pairs.wrong import wrong_pairs

_SEEDS = 14
"""How many models of each family: 308 pairs of each kind."""


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
    failed += _chaotic()
    return 1 if failed else 0


def _chaotic() -> int:
    """Compare chaotic models with their own forms, and with those of models with other weights; return how many were misjudged."""
    judged = Counter[tuple[str, str]]()
    for each in chaotic_models(_SEEDS):
        wrong = dict(forms(each.wrong))
        for form, after in forms(each.model):
            for what, other, right in (("honest", after, "equal"), ("wrong", wrong[form], "different")):
                outcome = verify(each.model, other, level="quick")
                judged[what, outcome.outcome] += 1
                if outcome.outcome != right:
                    print(f"chaotic, {what}, but {outcome.outcome}: {each.name}, {form}: {outcome.summary()}")
    print("chaotic:", ", ".join(f"{count} {what} {outcome}" for (what, outcome), count in judged.items()))
    return sum(count for key, count in judged.items() if key not in (("honest", "equal"), ("wrong", "different")))


def _is_said(one: Pair, outcome: Verification) -> bool:
    """Whether the pair differs where the summary says that nothing was tried."""
    return one.untried is not None and any(one.untried in line for line in (*outcome.not_tried, *outcome.notes))


if __name__ == "__main__":
    sys.exit(main())
