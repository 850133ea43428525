"""The options of ``optimize`` that control the rewriting, each described once.

The signature, ``--help``, the entries ``ortscan.*`` of sessions and the table in ``docs/reference/options.md`` are derived from
these fields (``python -m tests.support.tables``). A rule reads an option from the field of the same name in ``Context.options``.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Annotated

from ortscan import option_texts as texts
from ortscan.base.costs_file import read_costs
from ortscan.model_options import ModelOptions
from ortscan.option_types import Option, count_of
from ortscan.ort.runtimes import runtime_named

__all__ = ["RewritingOptions"]


class RewritingOptions(ModelOptions, total=False):
    """The options about the model, and the options that control the rewriting."""

    max_unroll: Annotated[
        int | None,
        Option(
            None,
            "unroll loops of up to this many steps; 0: unroll no loops. By default, a loop is unrolled only if the target cannot "
            "run it, or if the unrolled loop is faster",
            "--max-unroll N",
            "unroll loops of up to N steps; 0 for none (default: if the target needs it or if that is faster)",
            check=count_of("max_unroll", "steps", or_none=True),
            read=texts.read_count,
            session=texts.read_count,
            only_for_loops=True,
        ),
    ]
    memory_budget: Annotated[
        int,
        Option(
            256 << 20,
            "the maximum number of bytes that the stacked temporaries of a loop may occupy at any time",
            "--memory-budget SIZE",
            "the most memory that a vectorised part may occupy at any time, such as 64M or 1G (default 256M)",
            example="memory_budget=256 << 20",
            check=count_of("memory_budget", "bytes"),
            read=texts.read_byte_size,
            session=texts.read_byte_size,
            only_for_loops=True,
        ),
    ]
    costs: Annotated[
        str | os.PathLike[str] | Mapping[str, float] | None,
        Option(
            None,
            "the costs of loops and operators on the machine that will run the model: a file that `ortscan bench --calibrate` "
            "wrote there ([another machine](../how-to/measure.md#another-machine))",
            "--costs FILE",
            "the costs of loops and operators on the machine that will run the model: the file that `ortscan bench --calibrate "
            "FILE` wrote there",
            check=read_costs,
            session=texts.read_costs_option,
            only_for_loops=True,
        ),
    ]
    fast_math: Annotated[
        bool,
        Option(
            False,
            "also allow rewrites that round differently, such as pairwise distances computed by a matrix product",
            "--fast-math",
            "also allow rewrites that round differently",
            session=texts.read_flag,
            only_for_loops=True,
        ),
    ]
    custom_ops: Annotated[
        bool,
        Option(
            False,
            "also run operators that onnxruntime has no kernel for: in wider types, or by calls to Python. A result with such "
            "calls runs [in Python only](../how-to/python-calls.md). This option also enables `guard-scan` and `guard-recurrence`",
            "--custom-ops",
            "also run operators that onnxruntime has no kernel for, if necessary by calls to Python (the result then needs Python)",
            session=texts.read_flag,
        ),
    ]
    native: Annotated[
        bool,
        Option(
            False,
            "compile the remaining loops. If ortscan's library is registered, they run many times faster. Otherwise they run as "
            "before ([compiled loops](../explanation/compiled-loops.md))",
            "--native",
            "compile the remaining loops; they run compiled only if ortscan's library is registered",
            session=texts.read_flag,
            only_for_loops=True,
        ),
    ]
    runtime: Annotated[
        str | None,
        Option(
            None,
            'the onnxruntime release that will run the result, such as `"1.17"`, if it is older than the installed one. '
            "1.16 is the oldest. The result uses only the opset, IR version, operators and types that the CPU build of "
            "that release supports. "
            "If the model has a newer opset, it is migrated to an older one. Rewrites that need a newer release are skipped "
            "(reason `RUNTIME`). "
            "`migrate` has this option too. Models are still compared on the installed onnxruntime",
            "--runtime 1.17",
            "the onnxruntime that will run the result, if it is older than the installed one; the result uses only the opset, IR "
            "version, operators and types of that release",
            check=runtime_named,
        ),
    ]
    passes: Annotated[
        Iterable[str] | None,
        Option(
            None,
            'the names of the rules to use, as `explain` shows them; `"default"` means all default rules. '
            "The rules `guard-scan` and `guard-recurrence` are used only if you name them. They let a model run on empty "
            "sequences and batches",
            "--passes A,B",
            "run only these passes; default: all default passes",
            read=texts.read_name_list,
            session=texts.read_name_list,
            only_for_loops=True,
        ),
    ]
    skip: Annotated[
        Iterable[str],
        Option(
            (),
            "the names of the rules not to use",
            "--skip A,B",
            "skip these passes",
            read=texts.read_name_list,
            session=texts.read_name_list,
            only_for_loops=True,
        ),
    ]
