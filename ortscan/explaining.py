"""The public verb explain."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ortscan.api import rewriting_of
from ortscan.base.messages import quietly
from ortscan.edge.border import wrap_errors
from ortscan.edge.limited import limited
from ortscan.edge.programs import accepting_programs
from ortscan.modelio import ModelLike
from ortscan.modelio.reading import read_from_pipe
from ortscan.option_types import check_flags
from ortscan.pipeline.answering import answer_of
from ortscan.report.outcome import Report, in_python, with_drawings
from ortscan.verb_options import REWRITING_OPTIONS, ExplainOptions
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, shown

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["explain", "explained"]

_WITHOUT_EFFECT = frozenset(("verify", "on_difference", "output"))
"""Options of ``optimize`` that have no effect here, because no model is returned."""


@accepting_programs
@limited
@wrap_errors
def explain(
    model: ModelLike,
    *,
    advice: bool = False,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    **options: "Unpack[ExplainOptions]",
) -> Report:
    """Report what ``optimize`` would do to each loop of ``model``, and why the remaining loops stay.

    Nothing is changed or written.

        print(explain("in.onnx", target="cuda"))

    Args:
        model: as for ``optimize``.
        advice: also look for options and sizes with which the model runs faster. Timing each candidate takes seconds.
        time_limit, memory_limit, options: as for ``optimize``.

    Raises:
        OrtscanError: as for ``optimize``.
    """
    return in_python(explained(model, advice=advice, **options))


@wrap_errors
@quietly
def explained(model: ModelLike, *, advice: bool = False, **options: Any) -> Report:
    """Return the report of ``explain``, which names options as flags of the command line.

    Args:
        model, advice, options: as for ``explain``.
    """
    known = REWRITING_OPTIONS.keys() | {"debug", "progress", "stop_after"}
    chosen: dict[str, Any] = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT}
    for name in chosen.keys() - known:
        raise OptionError(f"optimize has no option {shown(name)}{did_you_mean(name, known)}.")
    check_flags(advice=advice)
    source = read_from_pipe(model)
    outcome = rewriting_of(source, **chosen)
    times = None
    if advice:
        from ortscan.advice.giving import give_advice

        chosen.pop("stop_after", None)
        times = give_advice(source, chosen, outcome, chosen.pop("progress", None))
    answer = replace(answer_of(outcome.report, times), outcome=None)
    return with_drawings(outcome.report, source, outcome.loaded.model, model, answer)
