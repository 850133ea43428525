"""The algebra of a recurrence, and the families of cells recognised from it.

A body is read as polynomials of activations of affine maps of its sources (``interpretation``, ``operators``), once for each way in
which it may be a cell (``found_cells``: ``masks``, ``run_time_weights``). Cells are read off those (``families``), confirmed by
running the body once at random points (``probe``), and written as native nodes (``given_values``); ``remainder`` is what stays.
"""

__all__: list[str] = []
