"""Recognise recurrent cells in the bodies of loops, and replace them by native RNN, GRU and LSTM nodes.

``interpretation`` and ``operators`` read a body as polynomials, in which activations and linear maps are the variables.
``find_cells`` and ``masks`` read it once for each assumption about masks and weights. ``gates`` and ``gated_cells`` recognise cells
in the polynomials. ``recurrent_cell`` confirms a cell by running the body once on random numbers, and replaces it. The rest of the
body stays in a loop (``node_values``).
"""

__all__: list[str] = []
