"""Every attack, and the frame itself: it must notice what an attack does to it."""

from collections.abc import Iterator

import pytest

from tests.attacks.frame.arena import Arena
from tests.attacks.frame.registry import all_attacks, faulty_attacks

ATTACKS = all_attacks()
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


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_survived(name: str, arena: Arena):
    outcome = arena.run(ATTACKS[name])
    assert not outcome.failure, outcome.failure


@pytest.mark.parametrize("what", FAULTS)
def test_the_frame_notices_an_attack_that(what: str, arena: Arena):
    assert FAULTS[what] in arena.run(faulty_attacks()[f"faulty: {what}"]).failure


def test_every_fault_is_listed():
    assert {name.removeprefix("faulty: ") for name in faulty_attacks()} == FAULTS.keys()
