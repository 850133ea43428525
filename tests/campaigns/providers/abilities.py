"""Small models that ask a provider one question each: does it run a Scan, a GRU that is clipped, two directions at once?"""

from dataclasses import dataclass

import numpy as np
import onnx

from tests.support.text import parsed

__all__ = ["ABILITIES", "Ability", "feeds", "model_of"]

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_OTHERS = {"RNN": '["Relu"]', "GRU": '["Sigmoid", "Relu"]', "LSTM": '["Sigmoid", "Relu", "Tanh"]'}
_T, _B, _I, _H = 5, 2, 4, 8
_IR, _OPSET = 8, 18
_OPSETS = range(17, 26)


@dataclass(frozen=True)
class Ability:
    """One question. ``operator``: the node asked about, or ``*`` for all; ``text``: a model of it, between nodes that every provider has.

    ``limit``: the field of ``Recurrent`` that answers.
    """

    name: str
    operator: str
    text: str
    weights: dict[str, tuple[int, ...]]
    limit: str = ""


def _model(body: str, inputs: str, outputs: str) -> str:
    return f'<ir_version: {_IR}, opset_import: ["": {_OPSET}]> g ({inputs}) => ({outputs}) {{ {body} }}'


def _recurrent(
    operator: str, what: str = "", attributes: str = "", directions: int = 1, extra: str = "", steps: int | str = _T
) -> Ability:
    """A node of fixed sizes between a Relu and a Relu; ``extra``: its operands from the bias on."""
    gates = _GATES[operator]
    weights = {"w": (directions, gates * _H, _I), "r": (directions, gates * _H, _H)}
    operands = [part.strip() for part in extra.split(",")] if extra else []
    shapes = {"b": (directions, 2 * gates * _H), "h0": (directions, _B, _H), "c0": (directions, _B, _H), "p": (directions, 3 * _H)}
    weights |= {name: shapes[name] for name in operands if name in shapes}
    every = f"hidden_size={_H}" + (f", {attributes}" if attributes else "")
    called = ", ".join(["x1", "w", "r", *operands])
    body = f"x1 = Relu (x) y = {operator} <{every}> ({called}) z = Relu (y)"
    inputs = f"float[{steps},{_B},{_I}] x" + (f", int32[{_B}] lengths" if "lengths" in operands else "")
    text = _model(body, inputs, f"float[{steps},{directions},{_B},{_H}] z")
    return Ability(f"{operator}{', ' if what else ''}{what}", operator, text, weights)


def _limited(ability: Ability, limit: str) -> Ability:
    return Ability(ability.name, ability.operator, ability.text, ability.weights, limit)


_SCAN = _model(
    "x1 = Relu (x) h, y = Scan <num_scan_inputs = 1, body = b (float[2,4] s, float[2,4] e) => (float[2,4] s1, float[2,4] o)"
    " { a = Sin (s) s1 = Add (a, e) o = Identity (s1) }> (h0, x1) z = Relu (y)",
    f"float[{_T},2,4] x, float[2,4] h0", f"float[{_T},2,4] z",
)  # fmt: skip
_LOOP = _model(
    "x1 = Relu (x) m = Constant <value = int64[1] {5}> () h = Loop <body = b (int64 i, bool c, float[2,4] s) => (bool c1, float[2,4] s1)"
    " { c1 = Identity (c) a = Sin (s) s1 = Add (a, x1) }> (m, , x1) z = Relu (h)",
    "float[2,4] x", "float[2,4] z",
)  # fmt: skip
_IF = _model(
    "x1 = Relu (x) y = If <then_branch = t () => (float[2,4] p) { p = Sin (x1) }, else_branch = e () => (float[2,4] q) { q = Cos (x1) }> (c)"
    " z = Relu (y)", "float[2,4] x, bool c", "float[2,4] z",
)  # fmt: skip


def _opset(number: int) -> Ability:
    """The nodes that rewritten models are made of, in one opset; each changed its version in 23 or 24 at the latest."""
    movement = (
        "x1 = Relu (x) t = Transpose <perm = [1, 0, 2]> (x1) s = Constant <value = int64[3] {0, 0, -1}> () u = Reshape (t, s)"
        " a = Constant <value = int64[1] {0}> () v = Unsqueeze (u, a) q = Squeeze (v, a) k = Transpose <perm = [1, 0, 2]> (q)"
        f" y = LSTM <hidden_size={_H}> (k, w, r) i = Identity (y) z = Relu (i)"
    )
    text = f'<ir_version: 10, opset_import: ["": {number}]> g (float[{_T},{_B},{_I}] x) => (float[{_T},1,{_B},{_H}] z) {{ {movement} }}'
    return Ability(f"opset {number}", "*", text, {"w": (1, 4 * _H, _I), "r": (1, 4 * _H, _H)})


ABILITIES: tuple[Ability, ...] = (
    Ability("Scan", "Scan", _SCAN, {}),
    Ability("Loop", "Loop", _LOOP, {}),
    Ability("If", "If", _IF, {}),
    Ability("If, the other branch", "If", _IF.replace("(c)", "(d)").replace(" y = If", " d = Not (c) y = If"), {}),
    *(
        one
        for op in ("RNN", "GRU", "LSTM")
        for one in (
            _recurrent(op),
            _recurrent(op, "any number of steps", steps="T"),
            _recurrent(op, "reverse", 'direction="reverse"'),
            _recurrent(op, "bidirectional", 'direction="bidirectional"', 2),
            _recurrent(op, "bias and first state", "", 1, "b, , h0" + (", c0" if op == "LSTM" else "")),
            _limited(_recurrent(op, "lengths", "", 1, "b, lengths"), "lengths"),
            _limited(_recurrent(op, "clip", "clip=0.3"), "clip"),
            _limited(_recurrent(op, "other activations", f"activations={_OTHERS[op]}"), "activations"),
        )
    ),
    _recurrent("GRU", "linear_before_reset=1", "linear_before_reset=1"),
    _limited(_recurrent("GRU", "linear_before_reset=0", "linear_before_reset=0", 1, "b"), "reset_before"),
    _limited(_recurrent("LSTM", "peepholes", "", 1, "b, , h0, c0, p"), "peepholes"),
    _limited(_recurrent("LSTM", "coupled gates", "input_forget=1"), "input_forget"),
    *(_opset(number) for number in _OPSETS),
)


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Values for each input: lengths that differ, a condition that holds, numbers else."""
    rng = np.random.default_rng(3)
    made: dict[str, np.ndarray] = {}
    for each in model.graph.input:
        kind = each.type.tensor_type
        shape = tuple(dim.dim_value or _T for dim in kind.shape.dim)
        if each.name == "lengths":
            made[each.name] = np.array([3, _T], np.int32)
        elif kind.elem_type == onnx.TensorProto.BOOL:
            made[each.name] = np.ones(shape, bool)
        else:
            made[each.name] = rng.standard_normal(shape).astype(np.float32)
    return made


def model_of(ability: Ability) -> onnx.ModelProto:
    """Return the model with its weights."""
    rng = np.random.default_rng(7)
    weights = {name: (rng.standard_normal(shape) * 0.4).astype(np.float32) for name, shape in ability.weights.items()}
    return parsed(ability.text, weights=weights)
