"""Defects of onnxruntime's RNN, GRU and LSTM."""

from rewrites.ops.quirks.quirk import Kind, Quirk

__all__ = ["RECURRENT_NODES"]

RECURRENT_NODES = (
    Quirk(
        id="ORT-RECURRENT-LAYOUT",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="A recurrent node whose batch axis comes first (layout 1) is not loaded.",
        worked_round=(
            "rewrites.recurrent_nodes.batch_first",
            "rewrites.recurrences.cells.native_node",
            "rewrites.batching.fold_into_batch",
            "ortscan.verification.oracle.runnable",
        ),
    ),
    Quirk(
        id="ORT-RECURRENT-BFLOAT16",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="There is no recurrent kernel for bfloat16.",
        worked_round=("rewrites.recurrent_nodes.bfloat16_recurrence",),
    ),
    Quirk(
        id="ORT-RECURRENT-DOUBLE",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="An LSTM or GRU on float64 is loaded and fails when it runs; an RNN is not loaded.",
        worked_round=(
            "rewrites.recurrent_nodes.double_recurrence",
            "ortscan.verification.oracle.runnable",
            "rewrites.recurrences.cells.suitability",
        ),
    ),
    Quirk(
        id="ORT-RECURRENT-SOFTPLUS",
        seen="1.31-1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="Softplus in a recurrent node is log(1 + exp(x)), which is infinite from about 88 on.",
        worked_round=("rewrites.recurrent_nodes.stable_softplus", "rewrites.recurrences.cells.gates"),
    ),
    Quirk(
        id="ORT-RECURRENT-DEFAULTS",
        seen="1.31-1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="Affine, ScaledTanh and ThresholdedRelu in a recurrent node take 0 for each parameter that is not given.",
        worked_round=(
            "rewrites.recurrent_nodes.activation_defaults",
            "rewrites.ops.rnn.recurrent_node",
            "rewrites.ops.rnn.functions",
        ),
    ),
    Quirk(
        id="ORT-RECURRENT-EMPTY-ROW",
        seen="1.31-1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="A row of length 0 ends in zeros instead of its initial state.",
        worked_round=(
            "rewrites.recurrent_nodes.rows_without_steps",
            "rewrites.recurrences.cells.native_node",
            "rewrites.unroll.unroll_recurrent_nodes",
        ),
    ),
    Quirk(
        id="ORT-RNN-NO-STEPS",
        seen="1.31-1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="An RNN without steps ends in zeros instead of its initial state.",
        worked_round=("rewrites.recurrent_nodes.empty_recurrence", "rewrites.recurrences.cells.native_node"),
    ),
    Quirk(
        id="ORT-GRU-NO-STEPS",
        seen="1.31-1.32",
        kind=Kind.DEATH,
        symptom="A GRU without lengths and steps ends the process.",
        worked_round=(
            "rewrites.recurrent_nodes.empty_recurrence",
            "rewrites.recurrent_nodes.guard_recurrence",
            "rewrites.driver.unshielded",
            "ortscan.running.crash_risks",
            "rewrites.recurrences.cells.native_node",
        ),
    ),
    Quirk(
        id="ORT-LSTM-NO-STEPS",
        seen="1.31-1.32",
        kind=Kind.GARBAGE,
        symptom="An LSTM without lengths and steps gives uninitialised memory as its last cell.",
        worked_round=(
            "rewrites.recurrent_nodes.empty_recurrence",
            "ortscan.running.crash_risks",
            "tests.campaigns.fuzz.unwritten",
            "rewrites.recurrences.cells.native_node",
        ),
    ),
    Quirk(
        id="ORT-RECURRENT-NO-ROWS",
        seen="1.31-1.32",
        kind=Kind.DEATH,
        symptom="A GRU or LSTM without rows ends the process.",
        worked_round=(
            "rewrites.recurrent_nodes.empty_recurrence",
            "rewrites.recurrent_nodes.guard_recurrence",
            "rewrites.batching.fold_into_batch",
            "rewrites.driver.unshielded",
            "ortscan.running.crash_risks",
            "ortscan.running.guarded_nodes",
            "rewrites.recurrences.cells.native_node",
        ),
    ),
    Quirk(
        id="ORT-QUANTIZED-LSTM-NO-STEPS",
        seen="1.32",
        kind=Kind.GARBAGE,
        symptom="A DynamicQuantizeLSTM without lengths and steps gives uninitialised memory as its last cell.",
        worked_round=("ortscan.running.crash_risks",),
    ),
    Quirk(
        id="ORT-QUANTIZED-LSTM-NO-ROWS",
        seen="1.32",
        kind=Kind.DEATH,
        symptom="A DynamicQuantizeLSTM without rows ends the process.",
        worked_round=(
            "rewrites.repair.guard_quantized_lstm",
            "rewrites.driver.unshielded",
            "ortscan.running.crash_risks",
            "ortscan.running.guarded_nodes",
        ),
    ),
    Quirk(
        id="ORT-RECURRENT-HIDDEN-SIZE",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="A recurrent node without hidden_size, which the text lets it leave out, is not loaded.",
        worked_round=("rewrites.recurrent_nodes.recurrent_attributes", "rewrites.ops.rnn.recurrent_node"),
    ),
    Quirk(
        id="ORT-RECURRENT-ACTIVATION-NAMES",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="An RNN refuses names of activations in small letters, which GRU and LSTM take.",
        worked_round=("rewrites.recurrent_nodes.recurrent_attributes", "rewrites.ops.rnn.recurrent_node"),
    ),
    Quirk(
        id="ORT-RECURRENT-CLIP",
        seen="1.31-1.32",
        kind=Kind.REFUSAL,
        symptom="A GRU or LSTM whose clip is 0 or less, by which exporters mean none, is not loaded.",
        worked_round=("rewrites.recurrent_nodes.recurrent_attributes", "rewrites.ops.rnn.recurrent_node"),
    ),
    Quirk(
        id="ORT-RECURRENT-NAN",
        seen="1.31-1.32",
        kind=Kind.WRONG_NUMBERS,
        symptom="Activations of recurrent nodes take NaN for a number: Relu of an RNN gives 0.",
        worked_round=(
            "ortscan.verification.judge.precision",
            "ortscan.verification.judge.compare_outputs",
            "tests.campaigns.fuzz.damage_judging",
        ),
    ),
)
