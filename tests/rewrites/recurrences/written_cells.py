"""Recurrent cells in the many ways in which exporters write them: ONNX text of a Scan, and weights for it.

A cell is written with `{x}` for the input of a step, `{h}` and `{c}` for its states; an encoding says how its gates come about.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx

__all__ = ["ENCODINGS", "Written", "written", "written_cells"]

INPUT, HIDDEN = 3, 4
SIGMOIDS = {
    "Sigmoid": "{y} = Sigmoid ({x})",
    "exp": "{y}_n = Neg ({x})  {y}_e = Exp ({y}_n)  {y}_p = Add (one, {y}_e)  {y} = Div (one, {y}_p)",
    "reciprocal": "{y}_n = Neg ({x})  {y}_e = Exp ({y}_n)  {y}_p = Add ({y}_e, one)  {y} = Reciprocal ({y}_p)",
    "tanh": "{y}_h = Mul ({x}, half)  {y}_t = Tanh ({y}_h)  {y}_s = Mul ({y}_t, half)  {y} = Add ({y}_s, half)",
}
ENCODINGS = (
    "one product for all gates",
    "input and state side by side",
    "a product for each gate",
    "Gemm with transposed weights",
    "weights transposed in the body",
    "gates in another order",
    "projection before the loop",
    "biases on both sides",
    "split by Slice",
    "split by Gather",
    "split by Reshape",
    "Einsum",
    "rows of one",
    "weights on the left",
    "weights on the left of transposed rows",
)


@dataclass(frozen=True)
class Written:
    """A Scan as ONNX text, its weights, and the numbers of its gates and states."""

    name: str
    body: str
    before: str
    scanned: str
    weights: dict[str, np.ndarray]
    states: tuple[str, ...]
    width: int
    rank: int = 2

    def model(self, *, steps: int | str = 6, rows: int | str = 2, reverse: bool = False, opset: int = 18) -> onnx.ModelProto:
        """Give the model: final states, and the hidden state of each step."""
        lead = f"{rows}," if self.rank == 2 else ""
        declared = "".join(f"float[{lead}{HIDDEN}] {state}0, " for state in self.states)
        finals = [f"float[{lead}{HIDDEN}] {state}n" for state in self.states]
        inner = ", ".join([*(f"float[{lead}{HIDDEN}] {state}" for state in self.states), f"float[{lead}{self.width}] x"])
        nexts = ", ".join([*(f"float[{lead}{HIDDEN}] {state}1" for state in self.states), f"float[{lead}{HIDDEN}] y"])
        directions = ", scan_input_directions = [1], scan_output_directions = [1]" if reverse else ""
        results = ", ".join([*(f"{state}n" for state in self.states), "ys"])
        text = f"""<ir_version: 8, opset_import: ["": {opset}]>
        g ({declared}float[{steps},{lead}{INPUT}] xs) => ({", ".join(finals)}, float[{steps},{lead}{HIDDEN}] ys) {{
            {self.before}
            {results} = Scan <num_scan_inputs = 1{directions}, body = step ({inner}) => ({nexts}) {{
                {self.body} y = Identity (h1)
            }}> ({", ".join(f"{state}0" for state in self.states)}, {self.scanned})
        }}"""
        model = onnx.parser.parse_model(text)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items())
        return model

    def feeds(self, *, steps: int = 6, rows: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
        """Random inputs."""
        rng = np.random.default_rng(seed)
        lead = (rows,) if self.rank == 2 else ()
        shapes = {"xs": (steps, *lead, INPUT)} | {f"{state}0": (*lead, HIDDEN) for state in self.states}
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def written(
    kind: str,
    encoding: str,
    sigmoid: str = "Sigmoid",
    change: Callable[[str], str] | None = None,
    sigmoids: dict[str, str] = SIGMOIDS,
) -> Written:
    """Write a cell of `kind` ("RNN", "GRU", "GRU before", "LSTM", "LSTM peepholes", "LSTM coupled")."""
    recipe = _RECIPES[kind]
    gates = recipe.gates
    cell = _with_sigmoids(recipe.cell, sigmoids[sigmoid])
    body, before, scanned, weights, width = _gates(encoding, gates, recipe.split_hidden)
    weights |= {"one": np.float32(1).reshape(1), "half": np.float32(0.5).reshape(1)}
    if "peep" in cell:
        rng = np.random.default_rng(5)
        weights |= {f"peep_{gate}": rng.standard_normal(HIDDEN).astype(np.float32) for gate in "ifo"}
    text = f"{body} {cell}"
    text = text if change is None else change(text)
    rank = 1 if encoding == "rows of one" else 2
    return Written(f"{kind}, {encoding}, {sigmoid}", text, before, scanned, weights, recipe.states, width, rank)


def written_cells() -> Iterator[Written]:
    """Every cell in every encoding, and with every way to write a sigmoid."""
    for kind in _RECIPES:
        for number, encoding in enumerate(ENCODINGS):
            yield written(kind, encoding, list(SIGMOIDS)[number % len(SIGMOIDS)])


@dataclass(frozen=True)
class _Recipe:
    """`cell` reads a pre-activation `a_<gate>` for each gate.

    With `split_hidden`, the last gate comes in two parts: `a_<gate>` of the input and `b_<gate>` of the hidden state.
    """

    gates: tuple[str, ...]
    states: tuple[str, ...]
    cell: str
    split_hidden: bool = False


_RECIPES = {
    "RNN": _Recipe(("i",), ("h",), "h1 = Tanh (a_i)"),
    "GRU": _Recipe(
        ("z", "r", "n"),
        ("h",),
        "z = S(a_z)  r = S(a_r)  rh = Mul (r, b_n)  an = Add (a_n, rh)  n = Tanh (an)  d = Sub (h, n)  zd = Mul (z, d)  h1 = Add (n, zd)",
        True,
    ),
    "GRU keeping the rest": _Recipe(
        ("z", "r", "n"),
        ("h",),
        """z = S(a_z)  r = S(a_r)  rh = Mul (b_n, r)  an = Add (rh, a_n)  n = Tanh (an)
        k = Sub (one, z)  zn = Mul (z, n)  kh = Mul (k, h)  h1 = Add (kh, zn)""",
        True,
    ),
    "LSTM": _Recipe(
        ("i", "f", "g", "o"),
        ("h", "c"),
        "i = S(a_i)  f = S(a_f)  g = Tanh (a_g)  o = S(a_o)  ig = Mul (i, g)  fc = Mul (f, c)  c1 = Add (fc, ig)  t = Tanh (c1)  h1 = Mul (o, t)",
    ),
    "LSTM peepholes": _Recipe(
        ("i", "f", "g", "o"),
        ("h", "c"),
        """pi = Mul (peep_i, c)  ai = Add (a_i, pi)  i = S(ai)  pf = Mul (c, peep_f)  af = Add (a_f, pf)  f = S(af)  g = Tanh (a_g)
        ig = Mul (g, i)  fc = Mul (c, f)  c1 = Add (ig, fc)  po = Mul (peep_o, c1)  ao = Add (a_o, po)  o = S(ao)  t = Tanh (c1)
        h1 = Mul (t, o)""",
    ),
    "LSTM coupled": _Recipe(
        ("f", "g", "o"),
        ("h", "c"),
        """f = S(a_f)  g = Tanh (a_g)  o = S(a_o)  k = Sub (one, f)  kg = Mul (k, g)  fc = Mul (f, c)  c1 = Add (kg, fc)  t = Tanh (c1)
        h1 = Mul (o, t)""",
    ),
}


def _with_sigmoids(cell: str, sigmoid: str) -> str:
    parts = []
    for statement in cell.replace("\n", "  ").split("  "):
        if " = S(" in statement:
            y, x = statement.strip().split(" = S(")
            parts.append(sigmoid.format(y=y, x=x.rstrip(")")))
        else:
            parts.append(statement.strip())
    return "  ".join(part for part in parts if part)


def _gates(encoding: str, gates: tuple[str, ...], split_hidden: bool) -> tuple[str, str, str, dict[str, np.ndarray], int]:
    """Return the text that computes `a_<gate>`, the text before the loop, the scanned inputs, weights, and the scanned width."""
    rng = np.random.default_rng(len(encoding))
    count = len(gates)
    w = {gate: (rng.standard_normal((INPUT, HIDDEN)) / 2).astype(np.float32) for gate in gates}
    r = {gate: (rng.standard_normal((HIDDEN, HIDDEN)) / 2).astype(np.float32) for gate in gates}
    b = {gate: (rng.standard_normal(HIDDEN) / 2).astype(np.float32) for gate in gates}
    order = tuple(reversed(gates)) if encoding == "gates in another order" else gates
    wide = {"W": np.concatenate([w[g] for g in order], 1), "R": np.concatenate([r[g] for g in order], 1)}
    wide["B"] = np.concatenate([b[g] for g in order])
    last = order[-1] if order is gates else order[0]
    tail = f"a_{last}" if split_hidden else ""

    def halves(x_part: str, h_part: str, split: Callable[[str, str], str]) -> str:
        """Split both parts into gates and add those, all but the last where that stays in two."""
        text = f"{split(x_part, 'u')} {split(h_part, 'v')}"
        for gate in order:
            if f"a_{gate}" == tail:
                text = text.replace(f"u_{gate}", f"a_{gate}").replace(f"v_{gate}", f"b_{gate}")
            else:
                text += f" a_{gate} = Add (u_{gate}, v_{gate})"
        return text

    def by_split(value: str, letter: str) -> str:
        parts = ", ".join(f"{letter}_{g}" for g in order)
        return f"{parts} = Split <axis = -1, num_outputs = {count}> ({value})" if count > 1 else f"{parts} = Identity ({value})"

    def by_slice(value: str, letter: str) -> str:
        cuts = []
        for i, g in enumerate(order):
            wide.update({f"at{i}": np.array([i * HIDDEN]), f"at{i + 1}": np.array([(i + 1) * HIDDEN]), "last": np.array([-1])})
            cuts.append(f"{letter}_{g} = Slice ({value}, at{i}, at{i + 1}, last)")
        return " ".join(cuts)

    def by_gather(value: str, letter: str) -> str:
        for i in range(count):
            wide[f"places{i}"] = np.arange(i * HIDDEN, (i + 1) * HIDDEN)
        return " ".join(f"{letter}_{g} = Gather <axis = -1> ({value}, places{i})" for i, g in enumerate(order))

    def by_reshape(value: str, letter: str) -> str:
        wide["cut"] = np.array([0, count, HIDDEN])
        for i in range(count):
            wide[f"at{i}"] = np.array(i)
        parts = " ".join(f"{letter}_{g} = Gather <axis = 1> ({letter}_cut, at{i})" for i, g in enumerate(order))
        return f"{letter}_cut = Reshape ({value}, cut) {parts}"

    def by_rows(value: str, letter: str) -> str:
        parts = ", ".join(f"{letter}_{g}" for g in order)
        return f"{parts} = Split <axis = 0, num_outputs = {count}> ({value})" if count > 1 else f"{parts} = Identity ({value})"

    def turned() -> str:
        """Turn the gates of columns, which so far are called `a_<gate>` and `b_<gate>`, to rows."""
        names = [f"a_{gate}" for gate in order] + ([f"b_{last}"] if split_hidden else [])
        return " ".join(f"{name} = Transpose ({name}_c)" for name in names)

    width, before, scanned = INPUT, "", "xs"
    text = "xw0 = MatMul (x, W)  xw = Add (xw0, B)  hr = MatMul (h, R)  "
    split = {"split by Slice": by_slice, "split by Gather": by_gather, "split by Reshape": by_reshape}.get(encoding, by_split)
    if encoding == "input and state side by side" and not split_hidden:
        wide["WR"] = np.concatenate([wide.pop("W"), wide.pop("R")])
        text = f"xh = Concat <axis = -1> (x, h)  xhw = MatMul (xh, WR)  all = Add (xhw, B)  {by_split('all', 'a')}"
        return text, before, scanned, wide, width
    if encoding == "one product for all gates" and not split_hidden:
        return f"{text} all = Add (xw, hr)  {by_split('all', 'a')}", before, scanned, wide, width
    if encoding == "a product for each gate":
        text = ""
        for g in gates:
            wide |= {f"W{g}": w[g], f"R{g}": r[g], f"B{g}": b[g]}
            u, v = (f"a_{g}", f"b_{g}") if f"a_{g}" == tail else (f"u_{g}", f"v_{g}")
            text += f"m_{g} = MatMul (x, W{g})  {u} = Add (m_{g}, B{g})  {v} = MatMul (h, R{g})  "
        wide = {name: array for name, array in wide.items() if name not in ("W", "R", "B")}
        return text + halves("", "", lambda _value, _letter: ""), before, scanned, wide, width
    if encoding == "Gemm with transposed weights":
        wide |= {"W": np.ascontiguousarray(wide["W"].T), "R": np.ascontiguousarray(wide["R"].T)}
        text = "xw = Gemm <transB = 1> (x, W, B)  hr = Gemm <transB = 1> (h, R)  "
    elif encoding == "weights transposed in the body":
        wide |= {"W": np.ascontiguousarray(wide["W"].T), "R": np.ascontiguousarray(wide["R"].T)}
        text = "WT = Transpose (W)  RT = Transpose (R)  xw0 = MatMul (x, WT)  xw = Add (B, xw0)  hr = MatMul (h, RT)  "
    elif encoding == "projection before the loop":
        before, scanned, width = "ps = MatMul (xs, W)  qs = Add (ps, B)", "qs", count * HIDDEN
        text = "xw = Identity (x)  hr = MatMul (h, R)  "
    elif encoding == "biases on both sides":
        wide["C"] = (rng.standard_normal(count * HIDDEN) / 2).astype(np.float32)
        text = "xw0 = MatMul (x, W)  xw = Add (xw0, B)  hr0 = MatMul (h, R)  hr = Add (hr0, C)  "
    elif encoding == "weights on the left":
        wide["Bcol"] = wide.pop("B")[:, None]
        text = """xt = Transpose (x)  WT = Transpose <perm = [1, 0]> (W)  xw0 = MatMul (WT, xt)  xw = Add (xw0, Bcol)
        ht = Transpose (h)  RT = Transpose (R)  hr = MatMul (RT, ht)  """
        columns = halves("xw", "hr", by_rows)
        for name in ("a_", "b_"):
            columns = re.sub(rf"\b({name}\w+)", r"\1_c", columns)
        return f"{text} {columns} {turned()}", before, scanned, wide, width
    elif encoding == "weights on the left of transposed rows":
        wide["Bcol"] = wide.pop("B")[:, None]
        text = "xwt = Gemm <transA = 1, transB = 1> (W, x, Bcol)  hrt = Gemm <transA = 1, transB = 1> (R, h)  "
        text += "xw = Transpose (xwt)  hr = Transpose (hrt)  "
    elif encoding == "Einsum":
        text = 'xw0 = Einsum <equation = "bi,io->bo"> (x, W)  xw = Add (xw0, B)  hr = Einsum <equation = "io,bi->bo"> (R, h)  '
    return text + halves("xw", "hr", split), before, scanned, wide, width
