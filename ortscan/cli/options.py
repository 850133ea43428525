"""The options that several verbs share."""

import argparse
from typing import Any

from ortscan.base.option_values import (
    byte_size,
    dim,
    dims_by_name,
    frozen,
    input_value,
    name_list,
    seed,
    shape,
    shapes_by_name,
    steps,
    tolerance,
)
from ortscan.running.budget import quick_seconds

__all__ = [
    "add_checking",
    "add_display",
    "add_level",
    "add_report",
    "add_rewriting",
    "add_runtime",
    "add_shape",
    "checking",
    "rewriting",
]


def add_rewriting(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what steers the rewriting."""
    group = parser.add_argument_group("rewriting")
    group.add_argument(
        "--target",
        default="cpu",
        metavar="NAME",
        help="where the model will run: onnx (anywhere: standard operators only), cpu (default), cuda, tensorrt, directml, webgpu, "
        "coreml, nnapi, qnn or openvino",
    )
    group.add_argument(
        "--opset",
        default="auto",
        metavar="auto|keep|N",
        help="auto (default): a model that holds a loop and is older than opset 18 is taken there first where that is sound; keep: "
        "stay in the opset of the model; N: take the model to opset N",
    )
    add_shape(group)
    group.add_argument(
        "--fix-shape",
        type=shape,
        action="append",
        metavar="X:64,1,128",
        help="a shape of input X to build into the model, which takes no other then, ? for a size that stays free; may be repeated",
    )
    group.add_argument(
        "--fix-dim",
        type=dim,
        action="append",
        metavar="T=64",
        help="the size of the dimension named T to build into the model; may be repeated",
    )
    group.add_argument(
        "--fix-input",
        type=input_value,
        action="append",
        metavar="X=VALUE",
        help="what input X always is: it becomes a constant and is no input of the result; a number, true, false, a text, or "
        "numbers in brackets such as [1,2]; may be repeated",
    )
    group.add_argument(
        "--freeze",
        type=frozen,
        default=False,
        metavar="all|A,B",
        help="make initializers that are listed as inputs constants: all of them, or those named",
    )
    group.add_argument(
        "--max-unroll",
        type=steps,
        metavar="N",
        help="write loops of up to N steps out, one step after the other; 0 for none (default: what the target needs, or gains by)",
    )
    group.add_argument(
        "--memory-budget",
        type=byte_size,
        metavar="SIZE",
        help="how much memory a vectorised part may take at a time, such as 64M or 1G (default 256M)",
    )
    group.add_argument(
        "--costs",
        metavar="FILE",
        help="what loops and operators take where the model will run: what `ortscan bench --calibrate FILE` has written there",
    )
    group.add_argument("--fast-math", action="store_true", help="also allow rewrites that round differently")
    group.add_argument(
        "--custom-ops",
        action="store_true",
        help="also run what onnxruntime has no kernel for, if need be by calls of Python; such a model runs in Python only",
    )
    group.add_argument(
        "--native", action="store_true", help="let loops that are left run compiled where ortscan's library is registered"
    )
    add_runtime(group)
    group.add_argument("--passes", type=name_list, metavar="A,B", help="run only these passes; default: all that run unasked")
    group.add_argument("--skip", type=name_list, default=[], metavar="A,B", help="leave out these passes")
    return group


def add_runtime(group: argparse._ActionsContainer) -> None:
    """Add the onnxruntime that the result is for."""
    group.add_argument(
        "--runtime",
        metavar="1.17",
        help="the onnxruntime that the result is for, where it is older than the installed one: opset, IR version, operators and "
        "types are those that it has",
    )


def add_shape(group: argparse._ActionsContainer) -> None:
    """Add the typical shapes."""
    group.add_argument(
        "--shape",
        "--input-shapes",
        type=shape,
        action="append",
        metavar="X:64,1,128",
        help="a typical shape of input X, never built into the model, ? for a size that is not known; may be repeated",
    )
    group.add_argument(
        "--dim",
        type=dim,
        action="append",
        metavar="T=64",
        help="a typical size of the dimension named T, never built into the model; may be repeated",
    )


def add_checking(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what steers the comparison on onnxruntime."""
    group = parser.add_argument_group("verification")
    group.add_argument(
        "--inputs",
        metavar="DATA",
        help="compare on these inputs instead of random ones, and with outputs that are recorded beside them: an .npz of arrays by "
        "input name (recorded: out:NAME), or a folder with input_0.pb (recorded: output_0.pb)",
    )
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of the random inputs (default 0)")
    group.add_argument(
        "--rtol", type=tolerance, metavar="X", help="error allowed, relative to the largest value of an output (default: by type)"
    )
    group.add_argument("--atol", type=tolerance, metavar="X", help="error allowed besides (default: by element type)")
    return group


def add_level(group: argparse._ArgumentGroup) -> None:
    """Add how thoroughly the result is compared before it is written."""
    choice = group.add_mutually_exclusive_group()
    choice.add_argument(
        "--verify",
        choices=("full", "quick"),
        default="full",
        dest="level",
        help="how thoroughly to compare: full (default), or quick, in seconds",
    )
    choice.add_argument("--no-verify", action="store_true", help="do not compare on onnxruntime before writing")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the HTML page."""
    parser.add_argument("--report", metavar="X.html", help="write the full report as an HTML page")


def add_display(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what steers the text on the terminal."""
    group = parser.add_argument_group("display")
    group.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    group.add_argument("-v", "--verbose", action="count", default=0, help="show more; -vv: tracebacks as well")
    group.add_argument("--no-color", action="store_true", help="no colours on a terminal (or set NO_COLOR)")
    return group


def checking(args: argparse.Namespace) -> dict[str, Any]:
    """Return the verification options as keywords of the API."""
    is_quick = getattr(args, "level", "full") == "quick"
    return {
        "level": "quick" if is_quick else "full",
        "time_limit": quick_seconds(args.spent) if is_quick else None,
        "inputs": args.inputs,
        "seed": args.seed,
        "rtol": args.rtol,
        "atol": args.atol,
        "shapes": shapes_by_name([*(args.shape or []), *(getattr(args, "fix_shape", None) or [])]),
        "dims": dims_by_name([*(args.dim or []), *(getattr(args, "fix_dim", None) or [])]),
    }


def rewriting(args: argparse.Namespace) -> dict[str, Any]:
    """Return the rewriting options as keywords of the API; what was not given is left to its default."""
    options: dict[str, Any] = {
        "target": args.target,
        "opset": args.opset,
        "shapes": shapes_by_name(args.shape),
        "dims": dims_by_name(args.dim),
        "fix_shapes": shapes_by_name(args.fix_shape),
        "fix_dims": dims_by_name(args.fix_dim),
        "fix_inputs": dict(args.fix_input or []),
        "freeze": args.freeze,
        "fast_math": args.fast_math,
        "custom_ops": args.custom_ops,
        "native": args.native,
        "runtime": args.runtime,
        "passes": args.passes,
        "skip": args.skip,
    }
    for name in ("memory_budget", "max_unroll", "costs"):
        if getattr(args, name) is not None:
            options[name] = getattr(args, name)
    return options
