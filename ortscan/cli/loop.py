"""``ortscan loop STEP OUT``: make a model of the whole loop, compare it with its steps, and write it."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ortscan.cli.files import add_output
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_checking, add_display, add_level, add_options, checking
from ortscan.cli.streams import naming_stdout_in_errors, show_progress, stdout_console
from ortscan.cli.writing import checked_output, print_json, refutation, verification_lines, write_model, written_sentence
from ortscan.option_texts import by_name
from rewrites.base.errors import OptionError, VerificationFailed

if TYPE_CHECKING:
    from ortscan.looping import WholeLoop
    from ortscan.report.ratio import Speedup
    from ortscan.verification.result import Verification

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``loop`` to ``verbs``."""
    parser = verbs.add_parser(
        "loop",
        help="make a model of the whole loop from the model of a step",
        description="Make a model that runs all steps in one call, from a model of one step, such as the step of a decoder. "
        "Compare it on onnxruntime with a Python loop that runs the step, and write it if they agree.",
    )
    parser.add_argument("model", metavar="STEP", help="the model of a step; - for standard input")
    add_output(parser)
    group = parser.add_argument_group("roles of the inputs and outputs")
    group.add_argument("--state", action="append", type=_pair, metavar="IN=OUT", help="an input, and its next value, an output")
    group.add_argument(
        "--scan",
        action="append",
        type=_axis,
        metavar="IN[=AXIS]",
        help="an input of which each step gets one row; AXIS is 0 by default",
    )
    group.add_argument("--stop", metavar="OUT", help="a bool output; the loop ends when all its elements are true")
    group.add_argument(
        "--max-steps", type=_limit, metavar="N|NAME", help="the most steps, or the name of a new input with this number"
    )
    group.add_argument("--counter", metavar="IN", help="an input that gets the number of the step, from 0")
    group.add_argument(
        "--initial",
        action="append",
        type=_number,
        metavar="IN=NUMBER",
        help="the number that fills a state at the start",
    )
    group.add_argument("--return", action="append", dest="returned", metavar="OUT", help="an output to return (default: all)")
    group.add_argument(
        "--stack",
        action="append",
        type=_axis,
        metavar="OUT[=AXIS]",
        help="return all values of a state, not only the last; or the axis of the steps in an output",
    )
    group = add_checking(parser)
    add_options(group, "shapes", "dims")
    add_level(group)
    add_display(parser).add_argument("-q", "--quiet", action="store_true", help="print errors only")
    add_limits(parser)
    parser.set_defaults(run=run, takes_folders=False)


def _pair(text: str) -> tuple[str, str]:
    """Return the texts before and after the last ``=``."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _axis(text: str) -> tuple[str, int]:
    name, sign, axis = text.rpartition("=")
    try:
        return (name, int(axis)) if sign else (text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{axis!r} is not the number of an axis") from None


def _limit(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


def _number(text: str) -> tuple[str, int | float]:
    name, value = _pair(text)
    try:
        return name, int(value) if value.lstrip("-").isdecimal() else float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number") from None


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan loop`` with parsed arguments. Return the exit code."""
    output = checked_output(args)

    from ortscan.benchmark.step_times import time_steps
    from ortscan.looping import whole_loop
    from ortscan.verification.compare_steps import verify_steps
    from rewrites.stepping.step_roles import RoleNames

    names = RoleNames(
        _named(args.state, "--state"),
        _named(args.scan, "--scan"),
        args.stop,
        args.max_steps,
        args.counter,
        _named(args.initial, "--initial"),
        args.returned,
        _named(args.stack, "--stack"),
    )
    with show_progress(f"building the loop of {args.model}", args.quiet):
        whole = whole_loop(args.source, names)
    args.spent, verification, speedup = whole.spent, None, None
    if not args.no_verify:
        with show_progress("comparing the loop with its steps on onnxruntime", args.quiet):
            verification = verify_steps(whole.step, whole.loaded, whole.roles, **checking(args))
    if verification is not None and verification.ok:
        with show_progress("timing the loop and its steps", args.quiet):
            speedup = time_steps(whole.step, whole.loaded, whole.roles, by_name(args.shape), args.inputs)
    refuted = verification is not None and not verification.ok
    sizes = write_model(args, whole.loaded, output) if output is not None and not refuted else None
    facts = [*verification_lines(verification), written_sentence(args, sizes)]
    _show(args, whole, verification, speedup, facts, asdict(sizes) if sizes is not None else None)
    if verification is not None and refuted:
        raise VerificationFailed(refutation(verification, f"the steps of {args.model} and the whole loop"))
    return ExitCode.OK


def _named(pairs: Sequence[tuple[str, Any]] | None, flag: str) -> dict[str, Any]:
    """Return the pairs of an option as a dict. Raise OptionError if a name occurs twice."""
    named: dict[str, Any] = {}
    for name, value in pairs or ():
        if name in named:
            raise OptionError(f"{flag} names {name!r} twice.")
        named[name] = value
    return named


@naming_stdout_in_errors()
def _show(
    args: argparse.Namespace,
    whole: "WholeLoop",
    verification: "Verification | None",
    speedup: "Speedup | None",
    facts: Sequence[str],
    written: dict[str, Any] | None,
) -> None:
    """Print the answer in one line, and a line on the verification and on the file."""
    from ortscan.report.answer import LoopAnswer
    from ortscan.verification.result import EXECUTED_STEPS

    kind = next(node.op_type for node in whole.loaded.model.graph if node.op_type in ("Scan", "Loop"))
    cases = [] if verification is None else verification.compared_cases
    answer = LoopAnswer(
        *(True, 1, 0, 0),
        outcome="not compared" if verification is None else verification.outcome,
        cases=len(cases),
        speedup=speedup,
        kind=kind,
        steps=sorted({case.varied[EXECUTED_STEPS] for case in cases if EXECUTED_STEPS in case.varied}),
    )
    if args.json:
        compared = verification.to_dict() if verification is not None else None
        print_json(input=args.model, output=written, answer=answer.to_dict(), verification=compared)
    elif not args.quiet:
        console = stdout_console(args.no_color)
        for line in (str(answer), "", *facts):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
