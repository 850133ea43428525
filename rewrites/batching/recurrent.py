"""RNN, LSTM and GRU inside a step: the steps of the outer loop become more rows of the batch.

``LSTM(x [S, B, I])`` -> ``[steps, S, B, I]`` becomes ``[S, steps * B, I]``; weights must be loop-invariant.

Works round ORT-RECURRENT-LAYOUT and ORT-RECURRENT-NO-ROWS.
"""

from collections.abc import Sequence

from rewrites.batching.call import Call, Result
from rewrites.batching.dims import step_dims
from rewrites.batching.folding import folded, folded_at, unfolded_at
from rewrites.batching.table import rule
from rewrites.graph.marks import ROWS_OF_STEPS

__all__ = ["ROWS_OF_STEPS", "recurrent"]


_WEIGHTS = (1, 2, 3, 7)


@rule("GRU", "LSTM", "RNN", since=7)
def recurrent(call: Call) -> Sequence[Result]:
    """States have their batch axis, as the data have, as axis 1; lengths of sequences are one for each row."""
    call.needs_steps("ORT ends the process where there is no row")
    call.same_weights(*_WEIGHTS)
    if call.node.attributes.get_int("layout", 0):
        raise call.refuse("NO-BATCHING-RULE", "the batch axis comes first, which ORT does not run")
    values = call.values
    for index in (0, 5, 6):
        if call.given(index) is not None:
            values[index] = folded_at(call, index, 1)
    if call.given(4) is not None:
        values[4] = folded(call, 4)
    batch = step_dims(call, call.operand(0))[1]
    results = call.build.like(call.node, values)
    ROWS_OF_STEPS.put(call.build.nodes[-1], True)
    ranks = (4, 3, 3)
    return [Result(unfolded_at(call, y, rank - 2, batch, rank)) for y, rank in zip(results, ranks, strict=False)]
