"""Why an RNN, GRU or LSTM node that onnxruntime does not run was not made one that it runs."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "RNN-ACTIVATION",
        "The activations of a recurrent node are not those of its operator.",
        "Either a name is unknown, or there are not as many as the operator's text asks for: 1 for an RNN, 2 for a GRU and 3 for "
        "an LSTM, twice as many if it is bidirectional. What the missing ones should be is not said anywhere.",
    ),
    Code(
        "RNN-ATTRIBUTE",
        "An attribute of a recurrent node has no meaning.",
        "The operator's text does not allow its value or its kind, or it is that of a function which could not be inlined.",
    ),
    Code(
        "RNN-DIRECTIONS",
        "Two nodes of opposite directions have different activations.",
        "The standard operator runs each direction with its own, but the libraries behind this target want the same for both.",
    ),
    Code(
        "RNN-HIDDEN-SIZE",
        "The number of hidden features of a recurrent node is not known, or is none.",
        "onnxruntime demands a hidden_size of 1 or more. It could be read off the shape of a weight or a state, but none is known; "
        "declaring the shape of R helps.",
    ),
    Code(
        "RNN-INPUT",
        "An input of a recurrent node is missing or of a type without meaning.",
        "X, W and R are needed, and lengths of sequences are whole numbers.",
    ),
    Code(
        "RNN-OPSET",
        "What a recurrent node would become needs a later opset.",
        "Leave the opset to ortscan (opset auto), or convert the model to opset 9 or later.",
    ),
)
