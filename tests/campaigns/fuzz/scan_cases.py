"""Models of one random Scan of a chosen opset and body, for tests that compare them with the plain loop over time."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import onnx
from onnx import ModelProto

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.comparing import coarseness, difference
from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.feeding import drawn_feeds
from tests.campaigns.fuzz.idioms import IDIOMS
from tests.campaigns.fuzz.model_builder import drawn_world, outputs_of, written_model
from tests.campaigns.fuzz.recurrence import Recurrence
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spellings.scans import as_scan
from tests.campaigns.fuzz.trust import session_of
from tests.campaigns.fuzz.unaliased import unaliased
from tests.campaigns.fuzz.values import Val
from tests.support.loop_oracle import run_model
from tests.support.runtime import run_session

__all__ = ["OPSETS", "assert_same_as_steps", "drawn_scans"]

OPSETS = (8, 9, 10, 11, 13, 16, 18, 19, 21, 23, 24, 25)


def drawn_scans(count: int, opset: int, *idioms: str, aliased: bool = False, lengths: bool = True) -> Iterator[Case]:
    """Yield ``count`` models, each of one Scan with all ``idioms`` in its body, leaving out those that onnxruntime cannot run.

    Args:
        count: How many models; the same count, opset and idioms always give the same ones.
        opset: Their opset.
        idioms: What the bodies compute, from ``IDIOMS``.
        aliased: Have bodies return inputs and return a value twice, which onnxruntime computes wrongly.
        lengths: False leaves out Scans whose rows have lengths of their own.
    """
    for number in range(3 * count):
        try:
            case = _draw(random.Random(f"{number}/{opset}/{idioms}"), opset, idioms, aliased)
            onnx.checker.check_model(case.model, full_check=True)
            outputs = _run(unaliased(case.model) or case.model, case)
        except Exception:  # errors of onnxruntime have no public base class
            continue
        has_values = all(output is not None for output in outputs)
        if has_values and (lengths or "lengths" not in case.about["features"]):
            count -= 1
            yield case
        if not count:
            return
    raise AssertionError("too few of the models run")


def assert_same_as_steps(case: Case, model: ModelProto) -> None:
    """Assert that ``model`` computes what the plain loop over time makes of the case."""
    said = difference(run_model(case.model, case.feeds[0]), _run(model, case), coarseness(case.model))
    assert said is None, (said, case.about)


def _run(model: ModelProto, case: Case) -> list[Any]:
    return run_session(session_of(model.SerializeToString()), case.feeds[0])


def _draw(dice: random.Random, opset: int, idioms: Sequence[str], aliased: bool) -> Case:
    world = drawn_world(dice, opset)
    main = Scope(world)
    batched = opset == 8
    lead = () if batched else world.choose([("B",), (), (2,)])
    results = as_scan(main, _side_by_side([IDIOMS[name](world, lead) for name in idioms]), "T", "B" if batched else None)
    model = written_model(world, main, outputs_of(main, results))
    if aliased:
        _return_sources_of_copies(model)
    return Case(model, drawn_feeds(world), "optimize", {}, {"features": sorted(world.features)})


def _return_sources_of_copies(model: ModelProto) -> None:
    """Have the bodies of Scans return what an Identity copies, if it is a value of that body."""
    for graph in graphs_of(model):
        for body in [
            attribute.g for node in graph.node if node.op_type == "Scan" for attribute in node.attribute if attribute.name == "body"
        ]:
            local = {info.name for info in body.input} | {name for node in body.node for name in node.output}
            copied = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity" and node.input[0] in local}
            for info in body.output:
                info.name = copied.get(info.name, info.name)


def _side_by_side(loops: Sequence[Recurrence]) -> Recurrence:
    """Return one loop that runs all of ``loops`` side by side."""

    def step(s: Scope, own: Sequence[Val], slices: Sequence[Val]) -> tuple[list[Val], list[Val]]:
        states, streams = iter(own), iter(slices)
        new: list[Val] = []
        out: list[Val] = []
        for loop in loops:
            stepped = loop.step(s, list(islice(states, len(loop.states))), list(islice(streams, len(loop.streams))))
            new += stepped[0]
            out += stepped[1]
        return new, out

    states = [state for loop in loops for state in loop.states]
    streams = [stream for loop in loops for stream in loop.streams]
    return Recurrence("side by side", states, streams, step)
