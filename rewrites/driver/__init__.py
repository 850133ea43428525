"""What applies rules to a model: the engine, the phases before and after it, and the invariants.

Which rule comes when, and what follows where one fires. What a rule does is never decided here.
"""

__all__: list[str] = []
