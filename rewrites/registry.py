"""Lists all rules in the order in which they are tried. Only this module imports modules with rules."""

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from rewrites.cleanup import (
    common_subexpressions,
    dead_code,
    decide_branches,
    fold_constants,
    hoist_invariants,
    identities,
    pass_through_states,
    slices_of_joins,
    unused_results,
    unused_scan_inputs,
)
from rewrites.direction import both_directions, reversed_nodes
from rewrites.fission import chained_products, loop_fission, split_products, state_fission, sums_over_time
from rewrites.loop_form import (
    collected_sequences,
    constant_condition,
    fold_trip_counts,
    grown_by_concat,
    induction_states,
    loop_to_scan,
    no_steps,
    one_trip,
    roll_up,
    roll_up_trees,
    sequence_reads,
    step_slices,
    trip_count,
    written_rows,
)
from rewrites.native import float_loop, native_cell, native_loop
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrences import blocks_of_steps, delay_lines
from rewrites.recurrences.cells import recurrent_cell
from rewrites.recurrences.cumulative import cumulative, cumulative_logsumexp
from rewrites.recurrences.linear import constant_filter, gated_recurrence, linear_recurrence
from rewrites.recurrences.outer_products import blocked_outer_products, linear_attention
from rewrites.recurrent_nodes import (
    activation_defaults,
    batch_first,
    bfloat16_recurrence,
    double_recurrence,
    empty_recurrence,
    guard_recurrence,
    recurrent_attributes,
    rows_without_steps,
    sequence_lengths,
    stable_softplus,
)
from rewrites.repair import growing_state, guard_einsum, guard_quantized_lstm, guard_scan, own_outputs
from rewrites.rule import Rule
from rewrites.scan_form import (
    constant_states,
    end_steps,
    induction_inputs,
    induction_rows,
    pairwise_distance,
    reversals,
    scalar_replacement,
    scan_axes,
)
from rewrites.tidy import (
    axes_of_scalars,
    constants_of_calls,
    copy_stacked_strings,
    early_casts,
    keep_float_weights,
    level_half_products,
    move_before_dequantizing,
    products_of_copies,
    quantize_before_transposing,
    read_past_returning_casts,
    shapes_of_products,
    stateless_loops,
    weights_into_bodies,
    weights_into_branches,
)
from rewrites.unroll import early_exits, flatten_ifs, unroll, unroll_recurrent_nodes

__all__ = [
    "AFTER",
    "AXES_OF_SCALARS",
    "BEFORE",
    "DEFAULT_NODE_RULES",
    "FLATTEN_IFS",
    "GUARDS",
    "GUARD_RECURRENCE",
    "LAST",
    "NODE_RULES",
    "ON_MODELS",
    "ON_REQUEST",
    "PRODUCTS_AFTER",
    "RULES",
    "STATELESS_LOOPS",
    "WEIGHTS",
]

GUARD_RECURRENCE: Rule[RecurrentNode] = guard_recurrence.RULE
GUARDS: Mapping[str, Rule[ir.Node]] = {"Einsum": guard_einsum.RULE, "DynamicQuantizeLSTM": guard_quantized_lstm.RULE}
"""The rules on other nodes on which onnxruntime may crash, by operator."""

NODE_RULES: tuple[Rule[RecurrentNode], ...] = (
    recurrent_attributes.RULE,
    activation_defaults.RULE,
    sequence_lengths.RULE,
    bfloat16_recurrence.RULE,
    batch_first.RULE,
    double_recurrence.RULE,
    stable_softplus.RULE,
    rows_without_steps.RULE,
    empty_recurrence.RULE,
    guard_recurrence.RULE,
)
"""The rules on recurrent nodes in the order in which they are tried. After a rule fires, the order starts again."""

DEFAULT_NODE_RULES = tuple(rule for rule in NODE_RULES if rule.use != "asked")

RULES: tuple[Rule[Any], ...] = (
    *NODE_RULES,
    guard_einsum.RULE,
    guard_quantized_lstm.RULE,
    roll_up.RULE,
    roll_up_trees.RULE,
    own_outputs.RULE,
    growing_state.RULE,
    identities.RULE,
    unused_results.RULE,
    dead_code.RULE,
    unused_scan_inputs.RULE,
    pass_through_states.RULE,
    fold_constants.RULE,
    slices_of_joins.RULE,
    no_steps.RULE,
    one_trip.RULE,
    common_subexpressions.RULE,
    hoist_invariants.RULE,
    scan_axes.RULE,
    reversals.RULE,
    induction_inputs.RULE,
    induction_rows.RULE,
    trip_count.RULE,
    constant_condition.RULE,
    induction_states.RULE,
    sequence_reads.RULE,
    step_slices.RULE,
    written_rows.RULE,
    grown_by_concat.RULE,
    collected_sequences.RULE,
    loop_to_scan.RULE,
    guard_scan.RULE,
    scalar_replacement.RULE,
    end_steps.RULE,
    constant_states.RULE,
    pairwise_distance.RULE,
    delay_lines.RULE,
    constant_filter.RULE,
    recurrent_cell.RULE,
    linear_attention.RULE,
    blocked_outer_products.RULE,
    cumulative.RULE,
    sums_over_time.RULE,
    loop_fission.RULE,
    state_fission.RULE,
    split_products.RULE,
    chained_products.RULE,
    linear_recurrence.RULE,
    gated_recurrence.RULE,
    cumulative_logsumexp.RULE,
    blocks_of_steps.RULE,
    early_exits.RULE,
    unroll.RULE,
    float_loop.RULE,
    native_loop.RULE,
    unroll_recurrent_nodes.RULE,
    reversed_nodes.RULE,
    both_directions.RULE,
    native_cell.RULE,
)
"""All rules. The rules on one kind of subject are tried in this order. After a rule fires, the order starts again."""

FLATTEN_IFS: Rule[ir.Node] = flatten_ifs.RULE

BEFORE: tuple[Rule[ir.Model], ...] = (fold_trip_counts.RULE, decide_branches.RULE)
"""Rules on a model, tried before the rules on its loops."""

PRODUCTS_AFTER: tuple[Rule[ir.Model], ...] = (shapes_of_products.RULE, level_half_products.RULE, early_casts.RULE)
"""Rules on products of a model, tried after the rules on its loops and before ``insert_identities``."""

AFTER: tuple[Rule[ir.Model], ...] = (
    move_before_dequantizing.RULE,
    quantize_before_transposing.RULE,
    keep_float_weights.RULE,
    read_past_returning_casts.RULE,
    products_of_copies.RULE,
    constants_of_calls.RULE,
    copy_stacked_strings.RULE,
)
"""Rules on a model, tried after the rules on its loops. Without them onnxruntime may crash or compute something else."""

STATELESS_LOOPS: Rule[ir.Model] = stateless_loops.RULE
AXES_OF_SCALARS: Rule[ir.Model] = axes_of_scalars.RULE
WEIGHTS: tuple[Rule[ir.Model], ...] = (weights_into_bodies.RULE, weights_into_branches.RULE)
"""Rules that move weights into nested graphs, tried last."""

ON_MODELS: tuple[Rule[Any], ...] = (
    *BEFORE,
    FLATTEN_IFS,
    *PRODUCTS_AFTER,
    *AFTER,
    AXES_OF_SCALARS,
    STATELESS_LOOPS,
    *WEIGHTS,
)
"""All rules on a model as a whole, or on its Ifs."""

LAST = tuple(rule for rule in RULES if rule.crash_prone is not None)
"""Rules for loops on which onnxruntime may crash. Once another rule has fired, no option switches them off."""

ON_REQUEST = tuple(rule for rule in RULES if rule.use == "asked")
"""Rules that are used only if the caller names them."""
