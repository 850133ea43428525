"""What ``import ortscan`` offers on what becomes of loops, and why: explain."""

from typing import TYPE_CHECKING, Any

from ortscan.api import rewriting_of
from ortscan.base.messages import quietly
from ortscan.edge.border import one_sentence
from ortscan.edge.limited import limited
from ortscan.modelio import ModelLike
from ortscan.modelio.reading import read_from_pipe
from ortscan.option_types import check_flags
from ortscan.report.outcome import Report, drawn
from ortscan.verb_options import REWRITING_OPTIONS, ExplainOptions
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, shown

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["explain"]

_OF_NO_USE = frozenset(("verify", "on_difference", "output"))
"""Options of ``optimize`` that mean nothing where nothing is made."""


@limited
@one_sentence
@quietly
def explain(
    model: ModelLike,
    *,
    advice: bool = False,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    **options: "Unpack[ExplainOptions]",
) -> Report:
    """Say what ``optimize`` would do to each loop of ``model``, and why it leaves what it leaves.

    ``advice``: also try out, for seconds, what would change that, on onnxruntime: options and sizes with which the model is faster.
    ``options``, ``time_limit`` and ``memory_limit`` are those of ``optimize``, and so are errors. Nothing is changed or written.
    """
    known = REWRITING_OPTIONS.keys() | {"debug", "progress", "stop_after"}
    chosen: dict[str, Any] = {name: value for name, value in options.items() if name not in _OF_NO_USE}
    for name in chosen.keys() - known:
        raise OptionError(f"optimize has no option {shown(name)}{did_you_mean(name, known)}.")
    check_flags(advice=advice)
    given = read_from_pipe(model)
    outcome = rewriting_of(given, **chosen)
    if advice:
        from ortscan.advice.giving import give_advice

        chosen.pop("stop_after", None)
        give_advice(given, chosen, outcome, chosen.pop("progress", None))
    return drawn(outcome.report, given, outcome.loaded.model, model)
