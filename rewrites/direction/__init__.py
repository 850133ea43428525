"""Removes reversals around RNN, GRU and LSTM nodes, and joins nodes of opposite directions.

A forward and a reverse node on the same sequence become one bidirectional node.

``scan_form`` removes reversals around Scans.
"""

__all__: list[str] = []
