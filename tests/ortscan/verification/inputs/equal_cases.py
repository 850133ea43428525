"""The cases of a comparison of a model with itself."""

from ortscan.verification import verify
from tests.support.text import model_from_text

__all__ = ["TABLE", "model", "ok", "ran"]

TABLE = """
g (int64[N] ids) => (float[N, 2] y) <float[5, 2] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}> { y = Gather(table, ids) }
"""


def model(text, opset=18):
    return model_from_text(text, opset)


def ran(outcome):
    return [case for case in outcome.cases if case.status == "equal"]


def ok(text, opset=18, **options):
    """Return the cases that ran, after checking that all outputs are equal."""
    outcome = verify(model(text, opset), model(text, opset), **options)
    assert outcome.ok, outcome.summary()
    return ran(outcome)
