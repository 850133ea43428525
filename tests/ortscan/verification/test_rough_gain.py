"""How much faster the second model was in the runs that were compared: said only where the runs agree on it."""

from types import SimpleNamespace

import pytest

from ortscan.verification.judge.verdict import _times_as_fast

STEADY = [(30.0, 10.0), (22.0, 10.0), (41.0, 10.0), (28.0, 10.0), (31.0, 10.0), (29.0, 10.0)]
DISTURBED = [(9000.0, 10.0), (22.0, 700.0), (41.0, 10.0), (28.0, 3000.0), (4000.0, 10.0), (29.0, 10.0)]


@pytest.mark.parametrize(
    ("runs", "said"), [(STEADY, 2.95), ([*STEADY[:5], (9000.0, 10.0)], 3.05), (DISTURBED, None), (STEADY[1:], None)]
)
def test_a_gain_is_said_where_the_runs_agree_on_it(runs: list[tuple[float, float]], said: float | None) -> None:
    found = _times_as_fast([SimpleNamespace(seconds=seconds) for seconds in [(1.0, 1.0), *runs]])  # type: ignore[arg-type]
    assert found == (None if said is None else pytest.approx(said))
