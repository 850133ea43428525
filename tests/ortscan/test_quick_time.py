"""A quick comparison may take a share of the time that the rewriting took."""

from typing import Any

import pytest

import ortscan
from ortscan import verification
from ortscan.modelio import load
from ortscan.pipeline import compare_with_original
from ortscan.running.budget import QUICK_SECONDS, quick_seconds
from tests.support.text import parsed

TEXT = """
<ir_version: 8, opset_import: ["": 13]>
g (float[T, 4] x) => (float[T, 4] y) {
  y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { yi = Exp (xi) }> (x)
}
"""


@pytest.mark.parametrize(
    ("level", "spent", "limit"), [("quick", 1.0, QUICK_SECONDS), ("quick", 400.0, 100.0), ("full", 400.0, None)]
)
def test_the_time_of_a_comparison_goes_by_level_and_rewriting(
    level: Any, spent: float, limit: float | None, asked: list[Any]
) -> None:
    compare_with_original.compare(parsed(TEXT), load(parsed(TEXT)), level, spent)
    assert asked == [limit]


@pytest.mark.parametrize("verb", [ortscan.optimize, lambda model: ortscan.migrate(model, 18)], ids=["optimize", "migrate"])
def test_python_says_how_long_the_rewriting_took(verb: Any, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[float] = []
    monkeypatch.setattr(
        compare_with_original, "quick_seconds", lambda spent: said.append(spent) or quick_seconds(1000 * QUICK_SECONDS)
    )
    verb(parsed(TEXT))
    assert len(said) == 1
    assert 0 < said[0] < 60
    assert asked == [quick_seconds(1000 * QUICK_SECONDS)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the time limits that are passed to the verification."""
    limits: list[Any] = []
    real = verification.verify

    def verify(*models: Any, time_limit: Any = None, **options: Any) -> Any:
        limits.append(time_limit)
        return real(*models, time_limit=time_limit, **options)

    monkeypatch.setattr(verification, "verify", verify, raising=False)
    return limits
