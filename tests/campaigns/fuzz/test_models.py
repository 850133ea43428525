"""A few random models of each idiom, always the same, are rewritten into ones that compute the same."""

import pytest

from tests.campaigns.fuzz.idioms import IDIOMS
from tests.campaigns.fuzz.judging import BAD
from tests.campaigns.fuzz.model_builder import draw_case
from tests.campaigns.fuzz.workers import Task, Workers

SEED = 15


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as pool:
        yield pool


@pytest.mark.parametrize("idiom", IDIOMS)
def test_models_with_an_idiom_stay_what_they_are(workers, idiom):
    judged = list(workers.judged(Task(SEED, k, idiom=idiom, targets=("cpu", "onnx", "webgpu")) for k in range(4)))
    assert [(task.number, judgement.detail) for task, judgement in judged if judgement.verdict in BAD] == []
    assert "ok" in [judgement.verdict for _, judgement in judged]


def test_a_model_of_a_seed_is_always_the_same():
    first, again = draw_case(SEED, 7), draw_case(SEED, 7)
    assert first.model.SerializeToString() == again.model.SerializeToString()
    assert first.options == again.options
