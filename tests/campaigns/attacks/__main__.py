"""``python -m tests.campaigns attacks [WORD…]``: run all attacks, or those whose names hold a word, and print the figures."""

import sys
import time
from collections import defaultdict

from tests.campaigns.attacks.frame.arena import Arena, Outcome
from tests.campaigns.attacks.frame.registry import all_attacks

__all__ = ["main"]


def main(words: list[str]) -> int:
    """Run them; give 1 where one was not survived."""
    areas: dict[str, list[Outcome]] = defaultdict(list)
    started = time.monotonic()
    with Arena() as arena:
        for name, attack in all_attacks().items():
            if words and not any(word in name for word in words):
                continue
            outcome = arena.run(attack)
            areas[attack.area].append(outcome)
            if words or outcome.failure:
                print(f"{'FAILED' if outcome.failure else 'ok':6} {outcome.seconds:6.2f} s {outcome.peak >> 20:5} MB  {name}")
            if outcome.failure:
                print(outcome.failure)
    print("| area | attacks | survived | slowest | most memory |\n|---|---|---|---|---|")
    for area, outcomes in areas.items():
        survived = sum(not each.failure for each in outcomes)
        slowest, most = max(each.seconds for each in outcomes), max(each.peak for each in outcomes)
        print(f"| {area} | {len(outcomes)} | {survived} | {slowest:.1f} s | {most >> 20} MB |")
    print(f"{sum(map(len, areas.values()))} attacks in {time.monotonic() - started:.0f} s")
    return int(any(each.failure for outcomes in areas.values() for each in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
