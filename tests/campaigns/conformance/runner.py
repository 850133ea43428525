"""Tries out many wrapped tests in processes of their own, since some make onnxruntime end the process."""

import faulthandler
import multiprocessing
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import onnx_ir as ir

from tests.campaigns.conformance.node_tests import NodeTest
from tests.campaigns.conformance.try_out import Outcome, Status, try_out
from tests.campaigns.conformance.wrapping import Form, wrap

__all__ = ["Plan", "plans", "run"]


class Plan(NamedTuple):
    """One test to wrap and try out; ``opset`` is what ``optimize`` is given."""

    test: NodeTest
    form: Form
    constants: bool
    first_only: bool
    opset: str


def plans(tests: Iterable[NodeTest]) -> list[Plan]:
    """Give the plans of all ``tests``: each form, with constants and with inputs, of all float inputs and of the first."""
    found = []
    for test in tests:
        found += [
            Plan(test, "alone", True, False, "auto"),
            Plan(test, "alone", False, True, "keep"),
            Plan(test, "beside", True, True, "auto"),
            Plan(test, "between", True, False, "keep"),
        ]
    return found


def run(todo: Sequence[Plan], processes: int = 1) -> Iterator[Outcome]:
    """Give the outcomes of all plans, in no order; those whose results are no tensors are left out."""
    working = [_Worker(todo[start::processes]) for start in range(processes)]
    while working:
        for connection in wait([worker.connection for worker in working]):
            worker = next(one for one in working if one.connection is connection)
            try:
                message = worker.connection.recv()
            except EOFError:
                working.remove(worker)
                outcome, rest = worker.end()
                if outcome is not None:
                    yield outcome
                if rest:
                    working.append(_Worker(rest))
                continue
            if isinstance(message, Outcome):
                yield message
            else:
                worker.at, worker.stage = message


class _Worker:
    """A process that works on ``part``; ``at`` is the number of the plan it is busy with, or the length of ``part``."""

    def __init__(self, part: Sequence[Plan]) -> None:
        context = multiprocessing.get_context("fork")
        self.part, self.at, self.stage = part, 0, ""
        self.connection, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(part, sender))
        self._process.start()
        sender.close()

    def end(self) -> tuple[Outcome | None, Sequence[Plan]]:
        """Wait for the end; gives the outcome of the plan that ended the process, if one did, and what is left to do."""
        self._process.join()
        if self.at == len(self.part):
            return None, []
        plan = self.part[self.at]
        status: Status = "crash" if self.stage == "rewriting" else "not run"
        name = f"{plan.test.name} {plan.form}"
        return Outcome(name, plan.test.op, status, detail=f"the process ended ({self._process.exitcode})"), self.part[self.at + 1 :]


def import_rules() -> None:
    """Import what is imported when first used, so that all tests run the same code whatever is edited meanwhile."""
    import ortscan.api
    import ortscan.modelio
    from rewrites.batching.table import has_rule

    assert ortscan.api is not None
    assert has_rule(ir.Node("", "Add", []))


def _work(part: Sequence[Plan], sender: Connection) -> None:
    warnings.simplefilter("ignore")
    faulthandler.disable()
    import_rules()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for number, plan in enumerate(part):
        sender.send((number, "original"))
        wrapped = wrap(plan.test, plan.form, constants=plan.constants, first_only=plan.first_only)
        if wrapped is not None:
            sender.send(try_out(wrapped, plan.opset, lambda at=number: sender.send((at, "rewriting"))))
    sender.send((len(part), ""))
    sender.close()
    os._exit(0)
