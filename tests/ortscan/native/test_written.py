"""A plan never reads or returns memory that its run has not written: such memory is 0."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rewrites.native.operations import Op
from rewrites.native.plan import ONE, Phase, Plan, Storage
from tests.support.native_plans import outputs_of, plan_session
from tests.support.sample_plans import counting, recurrence


def partly_stacked(plan: Plan) -> Plan:
    """Return the plan, with the last instruction writing only the first element of each row."""
    *others, last = plan.instructions
    return replace(plan, instructions=(*others, replace(last, dims=(ONE, ONE, ONE, ONE))))


def late(plan: Plan) -> Plan:
    """Return the plan of a recurrence, with the exponentials computed after they are read."""
    exp, mul, add, tanh = plan.instructions
    assert (exp.op, add.op) == (Op.EXP, Op.ADD)
    return replace(plan, instructions=(mul, add, exp, tanh), phases=(Phase(True, 0, 4),))


SCANNED = partly_stacked(recurrence(Storage.IN_PLACE, size=600))
LOOPED = partly_stacked(counting(Storage.IN_PLACE, size=600, least=100))
PERTURBED = """
import numpy as np
from tests.ortscan.native.test_written import *
for plan, given in ((SCANNED, [np.ones(600, np.float32), np.ones((9, 600), np.float32)]), (LOOPED, [np.array(True), np.ones(600, np.int64), np.array(9)])):
    session = plan_session(plan, len(given), outputs_of(plan))
    for _ in range(3):
        rows = session.run(None, {f"i{index}": each for index, each in enumerate(given)})[-1]
        assert rows.shape == (9, 600) and rows[:, 0].all() and not rows[:, 1:].any()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux can fill memory with other bytes than 0")
def test_elements_of_stacks_that_no_instruction_writes_are_zero() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "MALLOC_PERTURB_": "165"}
    subprocess.run([sys.executable, "-c", PERTURBED], cwd=root, env=environment, check=True, timeout=120)


@pytest.mark.parametrize("storage", [Storage.IN_PLACE, Storage.TWO_ROWS, Storage.OUTPUT_ROWS], ids=lambda storage: storage.name)
def test_memory_read_before_it_is_written_holds_nothing_of_the_run_before(storage: Storage) -> None:
    plan = late(recurrence(storage, block=1, blocks_of_rows=False))
    session = plan_session(plan, 2, outputs_of(plan))
    feeds = {"i0": np.ones(13, np.float32), "i1": np.full((4, 13), 2.0, np.float32)}
    first, again = (session.run(None, feeds) for _ in range(2))
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
