"""Recognise recurrent cells in the bodies of loops, and replace them by native nodes.

``interpretation`` and ``operators`` read a body as polynomials. The variables of these polynomials are activations and linear maps.
``find_cells`` and ``masks`` read the body once for each assumption about masks and weights. ``gates`` and ``gated_cells`` recognise
cells in the polynomials. ``recurrent_cell`` runs the body once on random numbers to confirm a cell, and replaces the cell by a
native RNN, GRU or LSTM node. The rest of the body stays in a loop (``node_values``).
"""

__all__: list[str] = []
