"""Recurrent cells: the algebra in which a body is read, the families recognised in it, and the native nodes written for them.

A body is read as polynomials of activations of linear maps of its sources (``interpretation``, ``operators``), once for each way in
which it may be a cell (``find_cells``, ``masks``). Cells are read off those (``gates``, ``gated_cells``) and confirmed by running
the body once at random points (``recurrent_cell``). The rest of the body stays in a loop (``node_values``).
"""

__all__: list[str] = []
