"""A recurrent cell in the words of its users: ``LSTM, forward, H=128, lengths by mask``."""

from rewrites.ops.rnn.functions import DEFAULTS
from rewrites.recurrences.cells.cell import Cell

__all__ = ["cell_in_words"]


def cell_in_words(cell: Cell, backwards: bool, masked: bool) -> str:
    """Say what ``cell`` is. ``backwards``: whether the last step comes first; ``masked``: whether rows keep states at times."""
    functions = tuple(function.name for function in cell.functions)
    parts = [
        cell.op_type,
        "" if functions == DEFAULTS[cell.op_type] else f"activations {', '.join(dict.fromkeys(functions))}",
        "backward" if backwards else "forward",
        f"H={cell.size}",
        "peepholes" if cell.peepholes is not None else "",
        "input and forget gates coupled" if cell.input_forget else "",
        "weights computed in the run" if cell.recipes else "",
        "lengths by mask" if masked else "",
    ]
    return ", ".join(filter(None, parts))
