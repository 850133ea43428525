"""The public verb bench."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ortscan.api import optimize
from ortscan.base.messages import quietly
from ortscan.edge.border import wrap_errors
from ortscan.edge.programs import accepting_programs
from ortscan.modelio import ModelLike
from ortscan.modelio.reading import read_from_pipe

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["bench"]


@accepting_programs
@wrap_errors
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
    """Measure models side by side on onnxruntime's CPU provider.

    The result has the duration of a run, of loading and of each loop, the peak memory and the file sizes.

    Each round creates a session of every model and runs the sessions alternately. Each speed ratio has a confidence interval. This
    function does not compare the outputs of the models; ``verify`` does.

        bench("before.onnx", "after.onnx", sizes={"T": [16, 64], "B": 1})

    Args:
        models: each as for ``optimize``. All models are compared with the first. A single model is compared with its optimised
            version.
        shapes: typical shapes of inputs.
        sizes: the sizes to measure at, by the names of free dimensions and trip counts. All combinations are measured.
        inputs: a dict of arrays, or the path of an .npz file. By default the inputs are random.
        threads: the number of threads that an operator may use; 0 lets onnxruntime choose. With one thread the times are CPU times.
        rounds: the number of rounds. At least six are needed to separate a difference from noise.
        seconds: the approximate duration of the whole measurement.
        progress: a function that is called with the number of finished rounds and the number of all rounds.

    Raises:
        OptionError, ModelFileError: an option or a file is invalid.
        UnsupportedModel: a model does not load, or the models do not all run on the same inputs.
    """
    from ortscan.benchmark.measure import measure, names_for

    named = dict(zip(names_for(models), map(read_from_pipe, models), strict=True))
    if len(named) == 1:
        named["optimized"] = optimize(next(iter(named.values())), shapes=shapes)
    effort: dict[str, Any] = {"threads": threads, "rounds": rounds, "seconds": seconds, "progress": progress}
    return measure(named, shapes=shapes, sizes=sizes, inputs=inputs, **effort)
