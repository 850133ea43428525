"""Hypothesis profiles: `default` draws the same examples in every run; `--hypothesis-profile=explore` draws new ones."""

from hypothesis import HealthCheck, settings

settings.register_profile("default", derandomize=True, deadline=None, max_examples=60, database=None)
settings.register_profile(
    "explore", derandomize=False, deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
