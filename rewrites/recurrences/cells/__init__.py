"""The algebra of a recurrence, and the families of cells recognised from it.

A body is read as polynomials of activations of linear maps of its sources (``interpretation``, ``operators``), once for each way in
which it may be a cell (``found_cells``: ``masks``, ``run_time_weights``). Cells are read off those (``families``) and confirmed by
running the body once at random points (``probe``); ``remainder`` is what stays beside a cell.
"""

__all__: list[str] = []
