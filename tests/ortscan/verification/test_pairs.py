"""Which differences a full comparison detects and which it accepts, on some pairs of `tests.campaigns.verification_pairs`."""

import pytest

from ortscan.verification import verify
from tests.campaigns.verification_pairs.chaotic import chaotic_models, forms
from tests.campaigns.verification_pairs.honest import honest_pairs
from tests.campaigns.verification_pairs.wrong import wrong_pairs

WRONG = wrong_pairs()
HONEST = honest_pairs()


def test_there_are_enough_pairs_of_names_of_their_own():
    assert len({each.name for each in WRONG}) == len(WRONG) >= 230
    assert len({each.name for each in HONEST}) == len(HONEST) >= 500


@pytest.mark.parametrize("one", WRONG[::3], ids=lambda one: one.name)
def test_a_pair_that_differs_is_found(one):
    outcome = verify(one.before, one.after)
    said = one.untried is not None and any(one.untried in line for line in (*outcome.not_tried, *outcome.notes))
    assert outcome.outcome == "different" or said, outcome.summary()


@pytest.mark.parametrize("one", HONEST[::12], ids=lambda one: one.name)
def test_a_pair_that_only_rounds_otherwise_is_no_difference(one):
    outcome = verify(one.before, one.after)
    assert outcome.outcome == "equal", outcome.summary()


@pytest.mark.parametrize("each", list(chaotic_models(1)), ids=lambda each: each.name)
def test_a_chaotic_model_is_told_from_one_with_other_weights(each):
    wrong = dict(forms(each.wrong))
    for form, after in forms(each.model):
        assert verify(each.model, after, level="quick").outcome == "equal", form
        assert verify(each.model, wrong[form], level="quick").outcome == "different", form
