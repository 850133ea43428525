"""Tries out every wrapped node test, prints what went wrong, and writes the table of operators: ``python -m tests.campaigns conformance [PROCESSES]``."""

import sys
from pathlib import Path

from tests.campaigns.conformance.node_tests import node_tests
from tests.campaigns.conformance.runner import plans, run
from tests.campaigns.conformance.table import counts, share_gone, table

DOCUMENT = Path(__file__).parents[3] / "ortscan" / "docs" / "reference" / "operators.md"
_BAD = ("wrong", "invalid", "crash")


def main(processes: int) -> int:
    """Give 0 where nothing is wrong, invalid or crashed."""
    outcomes = sorted(run(plans(node_tests()), processes), key=lambda outcome: outcome.name)
    for outcome in outcomes:
        if outcome.status in _BAD:
            print(f"{outcome.status}: {outcome.name}: {outcome.detail}")
    found = counts(outcomes)
    print(", ".join(f"{count} {status}" for status, count in sorted(found.items())), f"({share_gone(outcomes):.1%} gone)")
    DOCUMENT.write_text(table(outcomes), encoding="utf-8")
    return int(any(found[status] for status in _BAD))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
