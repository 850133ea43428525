"""Whole loops of published steps against one call for each step: ``python -m tests.campaigns stepping [--only WORD ...]``.

Each step is exported from torch, which must be installed. ``ortscan.loop`` makes the whole loop and compares it with its steps. The
loop and its optimised form (``native=True``) then run on one thread beside a Python loop that calls the session of the step.
Results that differ are faults.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from statistics import median

import numpy as np
import onnx
import torch

import ortscan
from ortscan.benchmark.rounds import clock_for, timed_in_rounds
from ortscan.benchmark.step_times import TimedSteps
from ortscan.benchmark.timed_session import TimedSession
from ortscan.looping import whole_loop
from ortscan.modelio.source import open_source
from rewrites.stepping.step_roles import RoleNames
from tests.campaigns.stepping.architectures import ARCHITECTURES, Architecture

_ROUNDS, _SECONDS = 9, 4.0
_TOLERANCE = 1e-3


def main() -> int:
    """Run the architectures that were asked for. Return how many of them differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns stepping")
    parser.add_argument("--only", nargs="+", default=[""], help="architectures whose names have one of these words")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| step | a call for each step | whole loop | optimised | loop faster | optimised faster |\n| --- | --- | --- | --- | --- | --- |"
    )
    return sum(_differs(one) for one in ARCHITECTURES if any(word in one.name for word in asked.only))


def exported(architecture: Architecture) -> onnx.ModelProto:
    """Return the step as torch exports it."""
    torch.manual_seed(0)
    dynamic = [dict.fromkeys(architecture.dynamic.get(name, {}), torch.export.Dim.DYNAMIC) for name in architecture.inputs]
    program = torch.onnx.export(
        architecture.module().eval(),
        tuple(architecture.inputs.values()),
        dynamo=True,
        verbose=False,
        opset_version=18,
        input_names=list(architecture.inputs),
        output_names=architecture.outputs,
        dynamic_shapes=(*dynamic[:2], tuple(dynamic[2:])) if architecture.dynamic else None,
    )
    assert program is not None
    proto: onnx.ModelProto = program.model_proto
    return proto


def _differs(architecture: Architecture) -> bool:
    """Print a row of the table. Return True if a result differs from the Python loop."""
    step, roles = exported(architecture), architecture.roles
    whole = ortscan.loop(step, **roles)
    fast = ortscan.optimize(whole, native=True)
    built = whole_loop(step, RoleNames(**roles))
    rng = np.random.default_rng(0)
    feed = {
        name: rng.standard_normal((architecture.steps, *tensor.shape)).astype(np.float32)
        if name in roles.get("scan", ())
        else tensor.numpy()
        for name, tensor in architecture.inputs.items()
        if name not in roles["initial"] and name != roles.get("counter")
    }
    with ExitStack() as stack:
        load: list[Callable[[], TimedSteps | TimedSession]] = [
            partial(TimedSteps, open_source(step, stack), built.roles),
            partial(TimedSession, open_source(whole, stack), "the whole loop", 1),
            partial(TimedSession, open_source(fast, stack), "the optimised loop", 1),
        ]
        expected, *results = [create().run(feed) for create in load]
        wrong = not all(
            np.allclose(value, other, _TOLERANCE, _TOLERANCE)
            for result in results
            for value, other in zip(result, expected, strict=True)
        )
        records = timed_in_rounds(load, [feed], _ROUNDS, _SECONDS, clock_for(1))
    times = " | ".join(f"{1e6 * median(record.medians[0]):,.0f} µs" for record in records)
    gains = [f"{median(record.gains[0]):.1f} x" for record in records[1:]]
    print(f"| {architecture.name} | {times} | {gains[0]} | {gains[1]}{' DIFFERS' if wrong else ''} |", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
