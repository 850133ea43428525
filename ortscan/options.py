"""The options of ``optimize`` that control the rewriting, each described once.

The signature, ``--help``, the entries ``ortscan.*`` of sessions and the table in ``docs/reference/options.md`` are derived from
these fields (``python -m tests.support.tables``). A rule reads an option from the field of the same name in ``Context.options``.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from ortscan import option_texts as texts
from ortscan.base.costs_file import read_costs
from ortscan.option_types import Option, memory_bytes, most_steps
from ortscan.ort.runtimes import runtime_named

__all__ = ["RewritingOptions", "TargetName"]

TargetName = Literal["onnx", "cpu", "cuda", "tensorrt", "directml", "webgpu", "coreml", "nnapi", "qnn", "openvino"]
_Shapes = Mapping[str, Sequence[int | None]] | None


class RewritingOptions(TypedDict, total=False):
    """The options that control the rewriting."""

    target: Annotated[
        TargetName,
        Option(
            "cpu",
            'where the model will run: `"onnx"` (any runtime: standard operators only), `"cpu"`, `"cuda"`, `"tensorrt"`, '
            '`"directml"`, `"webgpu"`, `"coreml"`, `"nnapi"`, `"qnn"`, `"openvino"`',
            "--target NAME",
            "where the model will run: onnx (anywhere: standard operators only), cpu (default), cuda, tensorrt, directml, "
            "webgpu, coreml, nnapi, qnn or openvino",
            session=str,
            only_for_loops=True,
        ),
    ]
    opset: Annotated[
        int | Literal["auto", "keep"],
        Option(
            "auto",
            '`"auto"`: a model older than opset 18 is migrated to 18 first if it has a loop, or a recurrent node too old to run, '
            'and if that is sound; `"keep"`: the model stays in its opset; a number: the model is migrated to that opset, or '
            "MigrationError is raised",
            "--opset auto|keep|N",
            "auto (default): a model with a loop that is older than opset 18 is first migrated to 18 if that is sound; "
            "keep: stay in the opset of the model; N: migrate the model to opset N",
            session=texts.opset,
        ),
    ]
    shapes: Annotated[
        _Shapes,
        Option(
            None,
            "typical shapes of inputs, for cost decisions only; `None` (`?` in `--shape x:64,?,128`) for an unknown size",
            "--shape --input-shapes X:64,1,128",
            "a typical shape of input X, never built into the model; ? is an unknown size; may be repeated",
            example='shapes={"x": [64, 1, 128]}',
            read=texts.shape,
            session=texts.shapes,
            only_for_loops=True,
        ),
    ]
    dims: Annotated[
        Mapping[str, int] | None,
        Option(
            None,
            "typical sizes by the names of dimensions (`--dim T=64`), or by their positions (`x[0]`) if they have no name",
            "--dim T=64",
            "a typical size of the dimension named T, never built into the model; may be repeated",
            example='dims={"T": 64}',
            read=texts.dim,
            session=texts.dims,
            only_for_loops=True,
        ),
    ]
    fix_shapes: Annotated[
        _Shapes,
        Option(
            None,
            "shapes to build into the model: it then accepts no others, and trip counts that depend on them become constants; "
            "`None` leaves a size free, and a named dimension gets its size wherever the name occurs",
            "--fix-shape X:64,1,128",
            "a shape of input X to build into the model, which then accepts no other; ? is a size that stays free; may be repeated",
            example='fix_shapes={"x": [64, 1, 128]}',
            read=texts.shape,
            session=texts.shapes,
        ),
    ]
    fix_dims: Annotated[
        Mapping[str, int] | None,
        Option(
            None,
            "sizes to build in, by the names of dimensions (`--fix-dim T=64`)",
            "--fix-dim T=64",
            "the size of the dimension named T to build into the model; may be repeated",
            example='fix_dims={"T": 64}',
            read=texts.dim,
            session=texts.dims,
        ),
    ]
    fix_inputs: Annotated[
        Mapping[str, Any] | None,
        Option(
            None,
            "values of inputs that are always the same: these inputs become constants, and the result does not have them. If an "
            "input chooses between parts of a model (a sampling rate, a mode), only the chosen part is left",
            "--fix-input X=VALUE",
            "the constant value of input X, which the result does not have any more: a number, true, false, a text, or numbers in "
            "brackets such as [1,2]; may be repeated",
            example='fix_inputs={"sr": 16000}',
            read=texts.input_value,
            session=texts.values,
        ),
    ]
    freeze: Annotated[
        bool | Iterable[str],
        Option(
            False,
            "`True`, or a list of names: initializers that are listed as inputs become constants. Otherwise each run may replace "
            "them, so no rule relies on their values; `explain` reports `DEFAULT-INPUT` if that keeps a loop",
            "--freeze all|A,B",
            "turn initializers that are listed as inputs into constants: all of them, or those named",
            read=texts.frozen,
            session=texts.frozen_entry,
        ),
    ]
    max_unroll: Annotated[
        int | None,
        Option(
            None,
            "unroll loops of up to this many steps, 0 for none; by default only if the target needs it or gains by it",
            "--max-unroll N",
            "unroll loops of up to N steps; 0 for none (default: if the target needs it or gains by it)",
            check=most_steps,
            read=texts.steps,
            session=int,
            only_for_loops=True,
        ),
    ]
    memory_budget: Annotated[
        int,
        Option(
            256 << 20,
            "the most bytes that the stacked temporaries of a loop may occupy at any time",
            "--memory-budget SIZE",
            "the most memory that a vectorised part may occupy at any time, such as 64M or 1G (default 256M)",
            example="memory_budget=256 << 20",
            check=memory_bytes,
            read=texts.byte_size,
            session=texts.byte_size,
            only_for_loops=True,
        ),
    ]
    costs: Annotated[
        str | os.PathLike[str] | Mapping[str, float] | None,
        Option(
            None,
            "what loops and operators cost on the machine that will run the model: a file that `ortscan bench --calibrate` "
            "wrote there ([another machine](../how-to/measure.md#another-machine))",
            "--costs FILE",
            "the costs of loops and operators on the machine that will run the model: the file that `ortscan bench --calibrate "
            "FILE` wrote there",
            check=read_costs,
            session=texts.costs,
            only_for_loops=True,
        ),
    ]
    fast_math: Annotated[
        bool,
        Option(
            False,
            "also allow expansions that round differently (pairwise distances by a matrix product)",
            "--fast-math",
            "also allow rewrites that round differently",
            session=texts.flag,
            only_for_loops=True,
        ),
    ]
    custom_ops: Annotated[
        bool,
        Option(
            False,
            "also run operators that onnxruntime has no kernel for: in wider types, or by calls of Python, and then "
            "[in Python only](../how-to/python-calls.md); this also enables `guard-scan` and `guard-recurrence`",
            "--custom-ops",
            "also run operators that onnxruntime has no kernel for, if necessary by calls of Python (the result then needs Python)",
            session=texts.flag,
        ),
    ]
    native: Annotated[
        bool,
        Option(
            False,
            "move remaining loops into functions; if ortscan's library is registered, a compiled form runs instead, many times "
            "faster ([compiled loops](../explanation/compiled-loops.md))",
            "--native",
            "let remaining loops run compiled if ortscan's library is registered",
            session=texts.flag,
            only_for_loops=True,
        ),
    ]
    runtime: Annotated[
        str | None,
        Option(
            None,
            'the onnxruntime that will run the result, such as `"1.17"`, if it is older than the installed one: opset, IR version, '
            "operators and types are those of its CPU build, from 1.16 on. A newer model is migrated down, and rewrites that need "
            "a newer release are skipped (`RUNTIME`). `migrate` has this option too. Models are compared on the installed "
            "onnxruntime",
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
            'rules to use, by the names that `explain` shows; `"default"` means all default rules. `guard-scan` and '
            "`guard-recurrence`, which let a model run on empty sequences and batches, are used only if named",
            "--passes A,B",
            "run only these passes; default: all default passes",
            read=texts.name_list,
            session=texts.name_list,
            only_for_loops=True,
        ),
    ]
    skip: Annotated[
        Iterable[str],
        Option(
            (),
            "rules not to use",
            "--skip A,B",
            "skip these passes",
            read=texts.name_list,
            session=texts.name_list,
            only_for_loops=True,
        ),
    ]
