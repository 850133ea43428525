"""What ``import ortscan`` offers on what models cost: bench."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ortscan.api import optimize
from ortscan.base.messages import quietly
from ortscan.edge.border import one_sentence
from ortscan.modelio import ModelLike
from ortscan.modelio.reading import read_from_pipe

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["bench"]


@one_sentence
@quietly
def bench(
    *models: ModelLike,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    inputs: Any = None,
    threads: int = 1,
    rounds: int = 9,
    seconds: float = 10.0,
    progress: Callable[[int, int], None] | None = None,
) -> "Bench":
    """Measure what models cost on onnxruntime's CPU, side by side: runs, loading, memory, files, loops.

    Each round creates sessions of all models, which run in turns. Ratios come with their noise. ``verify`` compares the results.

    Args:
        models: each as for ``optimize``. Others are compared with the first, and a single model with its optimised version.
        shapes: typical shapes of inputs.
        sizes: sizes to time of free dimensions and trip counts by name, in all combinations, as in ``{"T": [16, 64], "B": 1}``.
        inputs: a dict of arrays, or the path of an .npz file, instead of random inputs.
        threads: within an operator; 0 for onnxruntime's choice. For one thread its CPU time counts.
        rounds: how many; six are needed to tell a difference from noise.
        seconds: about how long in all.
        progress: called with the number of rounds done and of all rounds.

    Raises:
        OptionError, ModelFileError: an option or a file is invalid.
        UnsupportedModel: a model does not load, or not all models run on the same inputs.
    """
    from ortscan.benchmark.measure import measure, names_for

    named = dict(zip(names_for(models), map(read_from_pipe, models), strict=True))
    if len(named) == 1:
        named["optimized"] = optimize(next(iter(named.values())), shapes=shapes)
    effort: dict[str, Any] = {"threads": threads, "rounds": rounds, "seconds": seconds, "progress": progress}
    return measure(named, shapes=shapes, sizes=sizes, inputs=inputs, **effort)
