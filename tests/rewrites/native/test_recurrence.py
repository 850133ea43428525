"""Recurrent nodes in a body: a plan computes their equations, and returns what onnxruntime returns."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.rewrites.native.harness import compiled, same_numbers

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ROWS, FEATURES, HIDDEN, OUTER = 3, 5, 20, 4


def model(
    kind: str,
    *,
    steps: int = 1,
    rows: int | str = ROWS,
    bias: bool = True,
    initial: bool = True,
    lengths: list[int] | None = None,
    peepholes: bool = False,
    dtype: type = np.float32,
    computed_lengths: bool = False,
    **attributes: object,
) -> onnx.ModelProto:
    """A Scan of 4 steps whose body has a recurrent node of `steps` steps. The final states of the node are states of the Scan."""
    rng = np.random.default_rng(7)
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    gates = GATES[kind] * HIDDEN
    shapes = {"W": (ways, gates, FEATURES), "R": (ways, gates, HIDDEN), "B": (ways, 2 * gates), "P": (ways, 3 * HIDDEN)}
    weights = {name: rng.normal(size=shape).astype(dtype) * dtype(0.4) for name, shape in shapes.items()}
    used = {"W", "R"} | ({"B"} if bias else set()) | ({"P"} if peepholes else set())
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items() if name in used]
    if lengths is not None:
        initializers.append(numpy_helper.from_array(np.array(lengths, np.int32), "L"))
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    count = "L" if lengths is not None else "counted" if computed_lengths else ""
    operands = ["x", "W", "R", "B" if bias else "", count, *(states if initial else [""] * len(states))]
    operands += ["P"] if peepholes else []
    after = [f"{state}1" for state in states]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node(kind, operands, ["y", *(f"{state}0" for state in after)], hidden_size=HIDDEN, **attributes)]
    nodes += [helper.make_node("Add", [f"{state}10", state], [f"{state}1"]) for state in states]
    if computed_lengths:
        nodes.insert(0, helper.make_node("Cast", ["n"], ["counted"], to=TensorProto.INT32))

    def info(name: str, *shape: int | str, kind: int = element) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    state_shape, x_shape, y_shape = (ways, rows, HIDDEN), (steps, rows, FEATURES), (steps, ways, rows, HIDDEN)
    body = helper.make_graph(
        nodes,
        "body",
        [*(info(state, *state_shape) for state in states), info("x", *x_shape)],
        [*(info(name, *state_shape) for name in after), info("y", *y_shape)],
    )
    scan = helper.make_node("Scan", [*(f"{state}_in" for state in states), "xs"], [*(f"{state}_out" for state in states), "ys"],
                            body=body, num_scan_inputs=1)  # fmt: skip
    inputs = [*(info(f"{state}_in", *state_shape) for state in states), info("xs", OUTER, *x_shape)]
    inputs += [info("n", ROWS, kind=TensorProto.INT64)] if computed_lengths else []
    outputs = [*(info(f"{state}_out", *state_shape) for state in states), info("ys", OUTER, *y_shape)]
    graph = helper.make_graph([scan], "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("steps", [1, 3])
def test_each_direction_and_number_of_steps_is_computed(kind: str, direction: str, steps: int) -> None:
    same_numbers(model(kind, direction=direction, steps=steps))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    "form", [{"bias": False}, {"initial": False}, {"clip": 0.3}, {"lengths": [3, 2, 1]}, {"lengths": [0, 3, 2]}]
)
def test_optional_inputs_and_attributes_are_read(kind: str, form: dict[str, object]) -> None:
    same_numbers(model(kind, direction="bidirectional", steps=3, **form))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("initial", [True, False])
def test_the_number_of_rows_may_be_free(kind: str, initial: bool) -> None:
    assert same_numbers(model(kind, steps=2, rows="B", initial=initial), B=3).symbols


@pytest.mark.parametrize("bias", [True, False])
def test_a_gru_resets_before_or_after_the_product(bias: bool) -> None:
    same_numbers(model("GRU", linear_before_reset=1, steps=2, bias=bias))
    same_numbers(model("GRU", linear_before_reset=0, steps=2, bias=bias))


@pytest.mark.parametrize("form", [{"peepholes": True}, {"input_forget": 1}, {"peepholes": True, "input_forget": 1, "clip": 0.5}])
def test_the_forms_of_an_lstm_are_computed(form: dict[str, object]) -> None:
    same_numbers(model("LSTM", steps=2, **form))  # type: ignore[arg-type]


ALPHAS = {"Affine": [0.5], "Elu": [0.7], "HardSigmoid": [0.3], "LeakyRelu": [0.05], "ScaledTanh": [0.8], "ThresholdedRelu": [0.2]}
BETAS = {"Affine": [0.1], "HardSigmoid": [0.4], "ScaledTanh": [0.9]}


@pytest.mark.parametrize("name", [*ALPHAS, "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"])
def test_each_activation_is_computed(name: str) -> None:
    parameters = {"activation_alpha": ALPHAS.get(name), "activation_beta": BETAS.get(name)}
    same_numbers(model("RNN", steps=2, activations=[name], **{key: value for key, value in parameters.items() if value}))


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"computed_lengths": True, "steps": 2}, "NATIVE-FORM"),
        ({"activations": ["ThresholdedRelu"]}, "NATIVE-FORM"),
        ({"dtype": np.float64}, "NATIVE-FORM"),
    ],
)
def test_other_nodes_have_no_plan(form: dict[str, object], code: str) -> None:
    _, reason = compiled(model("RNN", **form))  # type: ignore[arg-type]
    assert getattr(reason, "code", None) == code
