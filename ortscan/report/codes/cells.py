"""Why a recurrent cell was not made a native RNN, GRU or LSTM node."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "CELL-EQUATIONS",
        "The states are computed by other equations than those of a cell.",
        "All operators in the loop are ones that cells have, but put together otherwise: a skip connection, a projection, a gate "
        "that is used twice, or a part that is computed in another precision.",
    ),
    Code(
        "CELL-FEATURES",
        "A state has an unknown number of features.",
        "Weights of known shapes tell it as a rule; declaring the shapes of the model's inputs helps where they do not.",
    ),
    Code(
        "CELL-MASK",
        "Rows keep their states in some steps, which this opset cannot say around a native node.",
        "The steps that each row runs are brought together by TopK and GatherND of opset 11; migrate the model to that or later.",
    ),
    Code(
        "CELL-OPERATOR",
        "An operator works on the state that no RNN, GRU or LSTM has.",
        "Such as a normalisation, a convolution, an attention or an activation of its own. The loop stays, as small as it can be.",
    ),
    Code(
        "CELL-PROBE",
        "A recognised cell could not be confirmed.",
        "Before a native node takes the place of a loop, the body is run once at random points and compared with the cell. It "
        "could not be run by itself, or differed; the latter would be a defect of ortscan worth a report.",
    ),
    Code(
        "CELL-QUANTIZED",
        "The state is quantized in each step, which no native node does alike.",
        "onnxruntime's DynamicQuantizeLSTM quantizes its input by the one range that all steps have together, where a loop does "
        "each step by its own, and the state by the range of those rows of the batch that a thread happens to work on. So its "
        "numbers are others, and with several threads not the same as with one. Products of what does not depend on the state "
        "leave the loop, with the numbers that they have in it.",
    ),
    Code(
        "CELL-ROWS",
        "The inputs and states of a recognised cell are not rows of one batch.",
        "A native node wants inputs of shape [steps, batch, features] and states of shape [batch, features] with the same batch. "
        "Declaring the shapes of the model's inputs, with one name for the batch, may help.",
    ),
    Code(
        "CELL-SEQUENCE",
        "The cell state of every step is needed, and rows do not run all steps.",
        "A native LSTM gives the hidden state of every step but the cell state of the last one only. Without masks a small loop "
        "beside the node computes it.",
    ),
    Code(
        "CELL-TARGET",
        "The target does not run the native node.",
        "Few execution providers run every recurrent operator in every form. Where the number of steps is known, a loop that the "
        "target does not run either is written out step by step; --fix-shape makes it known.",
    ),
    Code(
        "CELL-TYPE",
        "onnxruntime has no native node for this element type.",
        "RNN, GRU and LSTM run on float32, and on float16 where the weights fit it; a node on double loads and then fails.",
    ),
    Code(
        "COST-BIDIRECTIONAL",
        "One bidirectional node would be slower than the two.",
        "On a CPU, onnxruntime runs the two directions of a node one after the other, and its result has to be rearranged: one to "
        "three percent slower than two nodes, except for narrow nodes on one row. Other targets take one node.",
    ),
    Code(
        "COST-DIRECTION",
        "The node would run backwards more slowly than it runs between reversals.",
        "On a CPU, onnxruntime turns the steps of an LSTM or GRU round row by row, which costs more than two Slices from a few "
        "rows on. Typical shapes (shapes=) settle what is not known; other targets take the direction.",
    ),
    Code(
        "COST-NATIVE",
        "The native node would be slower than the loop.",
        "On a CPU, onnxruntime's RNN node is two to three times slower than a Scan from a batch of 4 on, and a GRU loses a little "
        "on large batches. Typical shapes (shapes=) settle what is not known; targets other than cpu take native nodes always.",
    ),
)
