"""RNN, GRU and LSTM lose ``output_sequence`` in version 7.

    LSTM <output_sequence = 1> (x, w, r)  ->  LSTM (x, w, r)

``output_sequence`` only said whether the optional output Y is there, which the outputs' names say too.

The equations of version 1 read ``Xt*W + Ht-1*R``, those of version 7 ``Xt*(W^T) + Ht-1*(R^T)``. That is a correction of the
text: the shapes of W, ``[directions, gates * hidden, input]``, are the same in both, and only the transposed product fits them;
R, whose gates are square, was always stored beside W in the same layout. GRU 1 misspelt its default direction ("foward").
Layout (version 14) is an attribute whose default is what was before.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["drop_output_sequence", "spell_direction"]


def drop_output_sequence(step: Step) -> Sequence[ir.Value] | None:
    """Drop ``output_sequence``."""
    return step.like(output_sequence=None) if step.has("output_sequence") else None


def spell_direction(step: Step) -> Sequence[ir.Value] | None:
    """GRU 1 -> 3: "foward" is "forward"."""
    return step.like(direction="forward") if step.string("direction", "forward") == "foward" else None
