"""Attacks, and the frame itself: it must notice what an attack does to it.

The suite takes each sixteenth attack of the areas that attack every verb, and each second or third of the areas whose attacks differ
in one name or number only. ``python -m tests.campaigns attacks`` makes them all.
"""

import os
import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.campaigns.attacks.frame.arena import Arena, Outcome
from tests.campaigns.attacks.frame.registry import all_attacks, faulty_attacks

WITH_EVERY_VERB = ("arguments", "calls", "depths", "endless", "growing", "limits", "sizes")
EACH = {**dict.fromkeys(WITH_EVERY_VERB, 16), "provider_lists": 3, "session_options": 3, "python_ops": 2}
ATTACKS = {name: each for place, (name, each) in enumerate(all_attacks().items()) if place % EACH.get(each.area, 1) == 0}
FAULTS = {
    "raises": "a foreign exception",
    "is let through": "nothing was raised",
    "says two lines": "not one line",
    "dies": "ended with -6",
    "exits": "ended with 1",
    "hangs": "took longer than 0.3 s",
    "fills the memory": "MemoryError",
    "leaves a temporary file": "left temporary files: ['left']",
    "plants a file": "outside/planted']",
    "changes a file": "outside/secret']",
    "links a file": "outside/secret']",
    "leaves a process": "left a process",
}


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with Arena() as made:
        yield made


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[Mapping[str, "Future[Outcome]"]]:
    """Run those attacks that are asked for, as many at once as there are processors, four at most."""
    asked = [item.callspec.params["name"] for item in request.session.items if _is_attack(item)]
    count = min(4, os.cpu_count() or 1)
    with ExitStack() as stack:
        arenas: queue.Queue[Arena] = queue.Queue()
        for _ in range(count):
            arenas.put(stack.enter_context(Arena()))

        def run(name: str) -> Outcome:
            arena = arenas.get()
            try:
                return arena.run(ATTACKS[name])
            finally:
                arenas.put(arena)

        pool = ThreadPoolExecutor(count)
        stack.callback(pool.shutdown, cancel_futures=True)
        yield {name: pool.submit(run, name) for name in asked}


def _is_attack(item: pytest.Item) -> bool:
    return item.name.startswith("test_an_attack_is_survived[") and hasattr(item, "callspec")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_survived(name: str, outcomes: Mapping[str, "Future[Outcome]"]):
    outcome = outcomes[name].result()
    assert not outcome.failure, outcome.failure


@pytest.mark.long
@pytest.mark.parametrize("what", FAULTS)
def test_the_frame_notices_an_attack_that(what: str, arena: Arena):
    assert FAULTS[what] in arena.run(faulty_attacks()[f"faulty: {what}"]).failure


def test_every_fault_is_listed():
    assert {name.removeprefix("faulty: ") for name in faulty_attacks()} == FAULTS.keys()
