"""The rules in the order in which a loop meets them; the first that fires starts the row again."""

from types import ModuleType

from rewrites.rules.cleanup import (
    common_subexpressions,
    dead_code,
    fold_constants,
    hoist_invariants,
    identities,
    pass_through_states,
    unused_results,
    unused_scan_inputs,
)
from rewrites.rules.direction import both_directions, turned_nodes
from rewrites.rules.fission import split_loop, split_states, sums_over_time
from rewrites.rules.loop_form import (
    collected_sequences,
    constant_condition,
    counter_states,
    grown_by_concat,
    loop_to_scan,
    no_steps,
    one_trip,
    sequence_reads,
    step_slices,
    trip_count,
    written_rows,
)
from rewrites.rules.recurrence import recurrent_cell
from rewrites.rules.repair import growing_scan, guard_scan, own_outputs
from rewrites.rules.rnn_nodes import (
    activation_defaults,
    batch_first,
    bfloat16,
    double,
    empty_recurrence,
    empty_rows,
    guard_recurrence,
    plain_attributes,
    sequence_lengths,
    stable_softplus,
)
from rewrites.rules.scan_form import (
    counted_inputs,
    counted_rows,
    end_steps,
    packed_states,
    pairwise_distance,
    reversals,
    scan_axes,
)
from rewrites.rules.unroll import unroll

__all__ = ["ALWAYS", "DEFAULT_NODE_RULES", "LAST", "NODE_RULES", "ON_REQUEST", "RULES"]

ALWAYS: tuple[ModuleType, ...] = (own_outputs,)
"""Rules that no option switches off: without them onnxruntime computes garbage."""

LAST: tuple[ModuleType, ...] = (scan_axes,)
"""Rules that no option switches off where any other has fired, for loops of which they say that they may end the process."""

ON_REQUEST: tuple[ModuleType, ...] = (guard_recurrence, guard_scan)
"""Rules that are used only where they are asked for by name."""

NODE_RULES: tuple[ModuleType, ...] = (
    plain_attributes,
    activation_defaults,
    sequence_lengths,
    bfloat16,
    batch_first,
    double,
    stable_softplus,
    empty_rows,
    empty_recurrence,
    guard_recurrence,
)
"""The rules on recurrent nodes in the order in which a node meets them; the first that fires starts the row again."""

DEFAULT_NODE_RULES = tuple(rule for rule in NODE_RULES if rule is not guard_recurrence)

RULES: tuple[ModuleType, ...] = (
    *NODE_RULES,
    own_outputs,
    growing_scan,
    identities,
    unused_results,
    dead_code,
    unused_scan_inputs,
    pass_through_states,
    fold_constants,
    no_steps,
    one_trip,
    common_subexpressions,
    hoist_invariants,
    scan_axes,
    reversals,
    counted_inputs,
    counted_rows,
    trip_count,
    constant_condition,
    counter_states,
    sequence_reads,
    step_slices,
    written_rows,
    grown_by_concat,
    collected_sequences,
    loop_to_scan,
    guard_scan,
    packed_states,
    end_steps,
    pairwise_distance,
    recurrent_cell,
    sums_over_time,
    split_loop,
    split_states,
    unroll,
    turned_nodes,
    both_directions,
)
