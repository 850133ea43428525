"""Long runs that search for faults or measure: ``python -m tests.campaigns`` lists them; the README beside this file describes them."""
