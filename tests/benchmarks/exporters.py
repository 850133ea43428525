"""What models of real exporters gain: ``python -m tests.benchmarks.exporters``, a table with a line for each exporter.

For each model of the corpus: the original, what ``optimize`` makes of it, and what it makes of it with ``native``, as sessions of ortscan
have it; interleaved, with one thread. Dimensions that a loop runs over are 64 where they are free, others 1; what the exporter fixed
is what it is. An argument is a part of the names of the models to take.
"""

import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import ortscan
from tests.support.corpus import CorpusModel, corpus_models

__all__ = ["Gain", "gains", "main"]

_SECONDS, _ROUNDS = 1.5, 5


@dataclass(frozen=True)
class Gain:
    """What one model gained: its loops before and after, and how many times as fast it is, plain and with compiled loops."""

    model: str
    loops: int
    left: int
    plain: float
    native: float


def gains(model: CorpusModel) -> Gain:
    """Optimise ``model`` both ways and time it. Raises OrtscanError where it cannot be run."""
    explained = ortscan.explain(model.path)
    plain, native = ortscan.optimize(model.path, verify=False), ortscan.optimize(model.path, verify=False, native=True)
    timed = ortscan.bench(model.path, plain, native, seconds=_SECONDS, rounds=_ROUNDS)
    at = timed.results[0]
    return Gain(
        model.name,
        len(explained.loops),
        len(explained.loops) - sum(loop.fate == "removed" for loop in explained.loops),
        at.ratio(1).value,
        at.ratio(2).value,
    )


def main(part: str = "") -> None:
    """Print a line for each model as it is timed, then the table."""
    warnings.simplefilter("ignore")
    found: dict[str, list[Gain]] = defaultdict(list)
    for parameters in corpus_models(only=lambda name: part in name):
        model = parameters.values[0]
        gain = gains(model)
        found[model.name.split("__")[0]].append(gain)
        print(
            f"{gain.model}: {gain.left} of {gain.loops} loops left, {gain.plain:.2f} x, with native {gain.native:.2f} x", flush=True
        )
    print("\n| exporter | models | loops | left | faster | with compiled loops |\n|---|---|---|---|---|---|")
    for exporter, all_of in [*found.items(), ("all", [gain for some in found.values() for gain in some])]:
        print(
            f"| {exporter} | {len(all_of)} | {sum(gain.loops for gain in all_of)} | {sum(gain.left for gain in all_of)} "
            f"| {_spread([gain.plain for gain in all_of])} | {_spread([gain.native for gain in all_of])} |"
        )


def _spread(ratios: Sequence[float]) -> str:
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.2f} ({min(ratios):.3g} to {max(ratios):.3g})"


if __name__ == "__main__":
    main(*sys.argv[1:])
