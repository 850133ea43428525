"""The options of ``optimize``, ``explain`` and ``migrate`` as types."""

import argparse
import numbers
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from ortscan import option_texts as texts
from ortscan.option_types import Option, options_of
from ortscan.options import RewritingOptions
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown
from rewrites.base.weights_report import FORMATS

__all__ = [
    "OPTIMIZE_OPTIONS",
    "REWRITING_OPTIONS",
    "ExplainOptions",
    "LoopOptions",
    "MigrateOptions",
    "OpsetTarget",
    "OptimizeOptions",
]

OpsetTarget = Literal["auto", "latest"]
_Verify = bool | Literal["quick", "full"]
_OnDifference = Literal["raise", "keep"]
_Weights = Literal["int8", "float16", "bfloat16"] | None
MAX_ERROR = 0.01
"""The largest error of smaller weights by default."""
_Path = str | os.PathLike[str] | None


def check_weights(value: Any) -> str | None:
    """Return the option ``weights``. Raise OptionError if it is neither None nor the name of a format."""
    if value is None or (isinstance(value, str) and value in FORMATS):
        return value
    raise OptionError(f"weights must be {', '.join(map(repr, FORMATS[:-1]))} or {FORMATS[-1]!r}, not {shown(value)}.")


def check_max_error(value: Any) -> float:
    """Return the option ``max_error``. Raise OptionError unless it is a number of 0 or more."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max:  # type: ignore[operator]
        return float(value)
    raise OptionError(f"max_error must be a number such as 0.01 (1 %), not {shown(value)}.")


def check_smaller_weights(weights: Any, max_error: Any) -> tuple[str | None, float]:
    """Return the options ``weights`` and ``max_error``.

    Raise OptionError if a value is invalid, or only ``max_error`` is set.
    """
    stored_as, limit = check_weights(weights), check_max_error(max_error)
    if stored_as is None and limit != MAX_ERROR:
        raise OptionError("max_error has no effect without weights; name their format, such as int8, with the option weights.")
    return stored_as, limit


def _read_max_error(text: str) -> float:
    try:
        return check_max_error(float(text))
    except (ValueError, OptionError):
        raise argparse.ArgumentTypeError(f"must be a number such as 0.01 (1 %), not '{text}'") from None


class OptimizeOptions(RewritingOptions, total=False):
    """The options of ``optimize``."""

    verify: Annotated[
        _Verify,
        Option(
            "quick",
            'compare both models on onnxruntime: `"quick"` takes seconds and compares each loop of a large model separately; '
            '`"full"` is the default of the command line; `False` skips the comparison. An `OrtscanWarning` is issued if no '
            "generated inputs fit the original",
            session=texts.read_verification,
            only_for_loops=True,
        ),
    ]
    on_difference: Annotated[
        _OnDifference,
        Option(
            "raise",
            'what to do if the models differ: `"raise"` raises a `VerificationFailed` that names the change; `"keep"` skips the '
            "changes that make a difference, with an `OrtscanWarning`",
            session=str,
            only_for_loops=True,
        ),
    ]
    weights: Annotated[
        _Weights,
        Option(
            None,
            'store the float32 weights of products and recurrent nodes as `"int8"`, `"float16"` or `"bfloat16"` '
            "([smaller weights](../how-to/smaller-weights.md)). The outputs then change, by at most `max_error` on the "
            "measured inputs",
            "--weights int8|float16|bfloat16",
            "store the float32 weights of products and recurrent nodes in fewer bits; the outputs then change, by at most "
            "--max-error on the measured inputs (generated, or --inputs)",
            check=check_weights,
            read=str,
        ),
    ]
    max_error: Annotated[
        float,
        Option(
            MAX_ERROR,
            "the largest measured error that `weights` may make in an output, relative to the largest number of the output. "
            "Weights whose error is larger stay float32",
            "--max-error X",
            f"the largest measured error that --weights may make, relative to the largest number of an output "
            f"(default {MAX_ERROR:g}); weights whose error is larger stay float32",
            check=check_max_error,
            read=_read_max_error,
        ),
    ]
    time_limit: Annotated[
        float | None,
        Option(
            None,
            "the time limit in seconds, for [untrusted models](../how-to/untrusted-models.md). `LimitExceeded` is raised if the "
            "work takes longer. The work runs in a subprocess, whose start costs about a second",
        ),
    ]
    memory_limit: Annotated[int | None, Option(None, "the memory limit in bytes, on Linux only. Otherwise like `time_limit`")]
    output: Annotated[
        _Path,
        Option(
            None,
            "also write the result to this path, which may be the path of the original. If the original has external data, the "
            "weights are written to a file next to `output`. If the original was also read from a path, the returned model refers "
            "to this file",
        ),
    ]


class ExplainOptions(RewritingOptions, total=False):
    """The options of ``explain``. Most of them are options of ``optimize``, with the same meaning.

    ``explain`` also accepts ``verify``, ``on_difference`` and ``output``, but ignores them.
    """

    verify: _Verify
    on_difference: _OnDifference
    output: _Path
    debug: bool
    progress: Callable[[int, int], None] | None
    stop_after: int | None


class MigrateOptions(TypedDict, total=False):
    """The options of ``migrate``."""

    runtime: str | None
    verify: _Verify
    time_limit: float | None
    memory_limit: int | None
    output: _Path


class LoopOptions(TypedDict, total=False):
    """The options of ``loop``."""

    scan: Sequence[str] | Mapping[str, int]
    stop: str | None
    max_steps: int | str | None
    counter: str | None
    initial: Mapping[str, Any] | None
    outputs: Sequence[str] | None
    stack: Sequence[str] | Mapping[str, int]
    inputs: Any
    shapes: Mapping[str, Sequence[int | None]] | None
    verify: _Verify
    time_limit: float | None
    memory_limit: int | None
    output: _Path


REWRITING_OPTIONS = options_of(RewritingOptions)
OPTIMIZE_OPTIONS = options_of(OptimizeOptions)
"""The descriptions of the options by name."""
