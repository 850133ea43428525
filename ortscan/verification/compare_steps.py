"""Compare the model of a whole loop with a Python loop that runs the model of a step."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ortscan.modelio.loading import AnyModel
from ortscan.modelio.source import open_source
from ortscan.running.budget import FULL_BYTES, FULL_SECONDS, QUICK_BYTES, QUICK_SECONDS, Budget, Level
from ortscan.running.specs import input_specs, output_specs
from ortscan.running.stepping import StepByStep
from ortscan.verification.compare_models import compare_models, static_problems
from ortscan.verification.compare_settings import CompareSettings, Reference
from ortscan.verification.inputs.given_inputs import ChosenInputs
from ortscan.verification.judge.verdict import result_without_runs
from ortscan.verification.result import Verification
from rewrites.stepping.step_roles import StepRoles

__all__ = ["verify_steps"]


def verify_steps(step: AnyModel, whole: AnyModel, roles: StepRoles, *, level: Level = "full", **options: Any) -> Verification:
    """Run the whole loop, and the step in a Python loop, on the same inputs, and compare their outputs.

    Args:
        step: the model of a step.
        whole: the model of the whole loop.
        roles: the roles of the inputs and outputs of the step.
        level: how thorough the comparison is.
        options: ``inputs``, ``seed``, ``rtol``, ``atol``, ``shapes``, ``dims`` and ``time_limit``, as for ``verify``.
    """
    seconds, size = (QUICK_SECONDS, QUICK_BYTES) if level == "quick" else (FULL_SECONDS, FULL_BYTES)
    budget = Budget(options.get("time_limit") or seconds, size)
    with ExitStack() as stack:
        one, loop = open_source(step, stack), open_source(whole, stack)
        chosen = ChosenInputs.of(loop.proto, *(options.get(name) for name in ("inputs", "shapes", "dims")))
        if problems := static_problems(loop.proto, loop.proto):
            return result_without_runs(list(roles.outputs), problems, inconclusive=True)
        declared = input_specs(one.proto.graph), output_specs(one.proto.graph)
        settings = CompareSettings(
            budget,
            stack,
            options.get("seed", 0),
            options.get("rtol"),
            options.get("atol"),
            level=level,
            reference=Reference(one, [spec.name for spec in declared[1]], lambda session: StepByStep(session, roles, *declared)),
        )
        outcome = compare_models(loop, loop, chosen.specs, chosen.sizes, chosen.sets, settings, chosen.recorded)
        return replace(outcome, level=level, limits_hit=tuple(budget.hits))
