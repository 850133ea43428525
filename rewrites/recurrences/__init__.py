"""The algebra of a recurrence, and the families of cells recognised from it.

A body is read as polynomials of activations of affine maps of its sources (``interpretation``, ``operators``), cells are read off
those (``families``), confirmed by running the body once at random points (``probe``), and written as native nodes (``native``).
"""

__all__: list[str] = []
