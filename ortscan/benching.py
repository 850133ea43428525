"""What ``import ortscan`` offers on what models cost: bench."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ortscan.api import optimize
from ortscan.base.messages import quietly
from ortscan.edge.border import one_sentence
from ortscan.modelio import ModelLike
from ortscan.modelio.reading import read_from_pipe
from ortscan.pipeline.rewriting import Shapes

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["bench"]


@one_sentence
@quietly
def bench(
    *models: ModelLike,
    shapes: Shapes | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    inputs: Any = None,
    threads: int = 1,
    rounds: int = 9,
    seconds: float = 10.0,
    progress: Callable[[int, int], None] | None = None,
) -> "Bench":
    """Measure what models cost on onnxruntime's CPU, side by side: runs, loading, memory, files, loops.

    Each round has new sessions of all models, which run in turns. A ratio is told with its noise, and what the noise covers is no
    difference. Whether the models compute the same is not looked at: see ``verify``.

    ``models``: each as for ``optimize``; others are compared with the first, and one alone with what ``optimize`` makes of it.
    ``shapes``: typical shapes of inputs. ``sizes``: sizes to time, of free dimensions and trip counts by name, such as
    ``{"T": [16, 64], "B": 1}``: every choice out of them; what is left free gets usual sizes. ``inputs``: a dict of arrays, or the
    path of an .npz file, instead of random inputs. ``threads``: within an operator, 0 for onnxruntime's own choice; of one thread
    its own time counts, not what other processes take of it. ``rounds``, ``seconds``: how many, and how long in all, about; to tell
    a difference from noise takes six rounds. ``progress``: called with the number of rounds done and of all.

    Raises OptionError and ModelFileError; UnsupportedModel where a model does not load, or not all of them run on the same inputs.
    """
    from ortscan.benchmark.measure import measure, names_for

    given = dict(zip(names_for(models), map(read_from_pipe, models), strict=True))
    if len(given) == 1:
        given["optimized"] = optimize(next(iter(given.values())), shapes=shapes)
    effort: dict[str, Any] = {"threads": threads, "rounds": rounds, "seconds": seconds, "progress": progress}
    return measure(given, shapes=shapes, sizes=sizes, inputs=inputs, **effort)
