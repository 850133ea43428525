"""Long runs that search for faults or measure: ``python -m tests.campaigns`` lists them; ``ortscan/docs/maintainers/campaigns.md`` describes them."""
