"""Builds the model of a whole loop from the model of one step.

    step(h, x) => (h1, y)    ->    whole(h, x of all steps) = Scan(h, x; body = step) => (last h1, y of all steps)

``step_roles`` reads which inputs and outputs of the step are states, scanned or constant. ``whole_model`` builds the loop.
"""

__all__: list[str] = []
