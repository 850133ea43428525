"""``python -m tests.campaigns fuzz --hours 2 --kind optimize --seed 1``: draw models, rewrite them, compare, save what differs."""

import argparse
import sys
from pathlib import Path

from tests.campaigns.fuzz.campaign import Campaign

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns fuzz", description=__doc__)
    parser.add_argument("--kind", choices=["optimize", "migrate", "native", "damage"], default="optimize")
    parser.add_argument("--hours", type=float, help="end after so long")
    parser.add_argument("--count", type=int, help="end after so many models (1000 where neither is said)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first model: where an earlier run ended")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--targets", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("fuzz-results"), help="where failures and figures go")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    count = given.count if given.count or given.hours else 1000
    seconds = given.hours * 3600 if given.hours else None

    def tell(line: str) -> None:
        print(line, flush=True)

    if given.kind == "damage":
        from tests.campaigns.fuzz import damage

        return int(damage.campaign(given.seed, count, seconds, given.jobs, given.out, given.first, tell) > 0)

    campaign = Campaign(
        given.seed, given.kind, count, seconds, given.first, given.jobs, tuple(given.targets), given.out, not given.no_shrink, tell
    )
    figures = campaign.run()
    return 1 if figures.bad else 0


if __name__ == "__main__":
    sys.exit(main())
