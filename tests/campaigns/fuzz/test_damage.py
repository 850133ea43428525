"""A few damaged models; ``python -m tests.campaigns fuzz --kind damage`` draws as many as there is time for."""

import pytest

from tests.campaigns.fuzz.damage import campaign


@pytest.mark.long
def test_nothing_but_a_sentence_or_a_sound_model_comes_of_damaged_ones() -> None:
    said: list[str] = []
    assert campaign(seed=2026, count=100, tell=said.append) == 0, said
