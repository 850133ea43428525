"""Loops that read, compute and write a row in each step, in the forms that exporters use, for any sizes, as ONNX text."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

__all__ = ["CELLS", "READS", "WRITES", "RowLoop"]

_GRID = """us = Shape (u) d0 = Gather (us, s0) d1 = Gather (us, s1) d2 = Gather (us, s2)
    r0 = Range (s0, d0, s1) r1 = Range (s0, d1, s1) r2 = Range (s0, d2, s1) {move} x0 = Unsqueeze ({0}, ax12) x1 = Unsqueeze ({1}, ax02)
    x2 = Unsqueeze ({2}, ax01) e0 = Expand (x0, us) e1 = Expand (x1, us) e2 = Expand (x2, us)
    y0 = Unsqueeze (e0, three) y1 = Unsqueeze (e1, three) y2 = Unsqueeze (e2, three) p = Concat <axis = 3> (y0, y1, y2)
    t1 = ScatterND (t, p, u)"""
_PARTS = """q = Unsqueeze (i, zero) q1 = Add (q, one) sa = Slice (t, zero, q, {axis}) sb = Slice (t, q1, far, {axis})
    u = Unsqueeze (h2, {axis}) t1 = Concat <axis = {at}> (sa, u, sb)"""
_ROW_AND_CELLS = "q = Unsqueeze (i, zero) q1 = Expand (q, rows) q2 = Reshape (q1, tall)"


def _grid(axis: int) -> str:
    names = [f"r{k}" if k != axis else "at" for k in range(3)]
    return f"u = Unsqueeze (h2, {('zero', 'one', 'two')[axis]}) " + _GRID.format(*names, move=f"at = Add (r{axis}, i)")


WRITES: dict[str, tuple[str, str]] = {
    "one place": ("TBH", "q = Unsqueeze (i, zero) p = Unsqueeze (q, zero) u = Unsqueeze (h2, zero) t1 = ScatterND (t, p, u)"),
    "one place, a vector": ("TBH", "q = Unsqueeze (i, zero) t1 = ScatterND (t, q, h2)"),
    "one place, deep": ("TBH", "q = Unsqueeze (i, zero) p = Unsqueeze (q, ax01) u = Unsqueeze (h2, ax01) t1 = ScatterND (t, p, u)"),
    "as TorchScript writes it": (
        "TBH",
        """g = Gather <axis = 0> (t, i) gs = Shape (g) e = Expand (h2, gs) q = Unsqueeze (i, zero) qs = Shape (q) p = Unsqueeze (q, m1)
        ts = Shape (t) rest = Slice (ts, one, far, zero) us = Concat <axis = 0> (qs, rest) u = Reshape (e, us) t1 = ScatterND (t, p, u)""",
    ),
    "a grid, axis 0": ("TBH", _grid(0)),
    "a grid, axis 1": ("BTH", _grid(1)),
    "a grid, axis 2": ("BHT", _grid(2)),
    "a place for each row": ("TBH", f"{_ROW_AND_CELLS} p = Concat <axis = 1> (q2, each_row) t1 = ScatterND (t, p, h2)"),
    "a place for each row, axis 1": ("BTH", f"{_ROW_AND_CELLS} p = Concat <axis = 1> (each_row, q2) t1 = ScatterND (t, p, h2)"),
    "a place for each cell": (
        "TBH",
        "q = Unsqueeze (i, zero) qq = Expand (q, full) p = Concat <axis = 2> (qq, each_cell) t1 = ScatterND (t, p, h2)",
    ),
    "element by element": (
        "TBH",
        "hs = Shape (h2) us = Concat <axis = 0> (one, hs) p = Expand (i, us) u = Unsqueeze (h2, zero) t1 = ScatterElements <axis = 0> (t, p, u)",
    ),
    "element by element, axis 1": (
        "BTH",
        "p = Expand (i, middle) u = Unsqueeze (h2, one) t1 = ScatterElements <axis = 1> (t, p, u)",
    ),
    "element by element, axis 2": (
        "BHT",
        "p = Expand (i, last) u = Unsqueeze (h2, two) t1 = ScatterElements <axis = -1> (t, p, u)",
    ),
    "where its number is": ("TBH", "n = Reshape (numbers, column) e = Equal (n, i) u = Unsqueeze (h2, zero) t1 = Where (e, u, t)"),
    "where its number is, without its axis": ("TBH", "n = Reshape (numbers, column) e = Equal (n, i) t1 = Where (e, h2, t)"),
    "where its number is, axis 2": ("BHT", "e = Equal (numbers, i) u = Unsqueeze (h2, two) t1 = Where (e, u, t)"),
    "between the others": ("TBH", _PARTS.format(axis="zero", at=0)),
    "between the others, axis 1": ("BTH", _PARTS.format(axis="one", at=1)),
    "appended": ("0BH", "u = Unsqueeze (h2, zero) t1 = Concat <axis = 0> (t, u)"),
    "put in front": ("0BH", "u = Unsqueeze (h2, zero) t1 = Concat <axis = 0> (u, t)"),
    "appended, axis 1": ("B0H", "u = Unsqueeze (h2, one) t1 = Concat <axis = 1> (t, u)"),
    "appended, axis 2": ("BH0", "u = Unsqueeze (h2, two) t1 = Concat <axis = 2> (t, u)"),
    "appended as rows": ("0H", "t1 = Concat <axis = 0> (t, h2)"),
    "appended as columns": ("B0", "t1 = Concat <axis = 1> (t, h2)"),
}
"""The axes of what is written (0: the one that grows), and how ``h2`` [B, H] is written into ``t`` at ``i``."""

READS: dict[str, tuple[str, str]] = {
    "a number": ("TBH", "x = Gather (xs, i)"),
    "a vector": ("TBH", "q_ = Unsqueeze (i, zero) g_ = Gather (xs, q_) x = Squeeze (g_, zero)"),
    "a number, axis 1": ("BTH", "x = Gather <axis = 1> (xs, i)"),
    "a vector, axis 1": ("BTH", "q_ = Unsqueeze (i, zero) g_ = Gather <axis = 1> (xs, q_) x = Squeeze (g_, one)"),
    "a number, last axis": ("BHT", "x = Gather <axis = -1> (xs, i)"),
    "a slice": ("TBH", "q_ = Unsqueeze (i, zero) q1_ = Add (q_, one) g_ = Slice (xs, q_, q1_, zero) x = Squeeze (g_, zero)"),
    "a slice, axis 1": ("BTH", "q_ = Unsqueeze (i, zero) q1_ = Add (q_, one) g_ = Slice (xs, q_, q1_, one) x = Squeeze (g_, one)"),
    "by GatherND": ("TBH", "q_ = Unsqueeze (i, zero) x = GatherND (xs, q_)"),
    "by GatherND, deep": ("TBH", "q_ = Unsqueeze (i, ax01) g_ = GatherND (xs, q_) x = Squeeze (g_, zero)"),
    "without all axes of one": ("TBH", "q_ = Unsqueeze (i, zero) g_ = Gather (xs, q_) s_ = Squeeze (g_) x = Reshape (s_, row)"),
    "a slice of all axes": (
        "TBH",
        "q_ = Unsqueeze (i, zero) b_ = Concat <axis = 0> (q_, zero, zero) e_ = Add (b_, front) g_ = Slice (xs, b_, e_, ax012) x = Reshape (g_, row)",
    ),
}
CELLS = {
    "a sum": "a_ = Mul (h, half) h2 = Add (a_, x)",
    "a cell": "a_ = MatMul (h, r) b_c = MatMul (x, w) c_ = Add (a_, b_c) h2 = Tanh (c_)",
    "a cell by Gemm": "a_ = Gemm <transB = 1> (h, r) b_c = Gemm <transB = 1> (x, w) c_ = Add (a_, b_c) h2 = Tanh (c_)",
    "no state": "h2 = Tanh (x)",
    "a running sum": "h2 = Add (h, x)",
}


@dataclass(frozen=True)
class RowLoop:
    """A Loop of `steps` over `rows` of `width`. `free` has the letters of T, B and H that are declared by name."""

    write: str
    read: str
    cell: str
    sizes: tuple[int, int, int]
    free: str = ""
    size: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", dict(zip("TBH0", (*self.sizes, 0), strict=True)))

    def feeds(self) -> dict[str, np.ndarray]:
        random = np.random.default_rng(sum(self.sizes))
        shapes = {"xs": READS[self.read][0], "h0": "BH"}
        return {name: random.standard_normal([self.size[c] for c in axes]).astype(np.float32) for name, axes in shapes.items()}

    def text(self) -> str:
        (axes, write), (source, read) = WRITES[self.write], READS[self.read]
        before, parts, weights = "", [], self._weights()
        for letter in axes:
            if letter in self.free:
                before += f" d{letter} = Gather (n_, a{letter})"
                weights.append(f"int64[1] a{letter} = {{{source.index(letter)}}}")
                parts.append(f"d{letter}")
            else:
                weights.append(f"int64[1] c{letter} = {{{self.size[letter]}}}")
                parts.append(f"c{letter}")
        weights.append(f"int64 t_axis = {{{source.index('T')}}}")
        many = ",".join("?" * len(axes))
        return f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[{self._said(source)}] xs, float[{self._said("BH")}] h0)
            => (float[{self._said("BH")}] hT, float[{self._said(axes)}] tT, float[?,?,?] st) <{", ".join(weights)}> {{
            n_ = Shape (xs) tn = Gather (n_, t_axis) {before} shape = Concat <axis = 0> ({", ".join(parts)}) t0 = ConstantOfShape (shape)
            hT, tT, st = Loop <body = b (int64 i, bool ci, float[{self._said("BH")}] h, float[{self._said(axes, "M")}] t)
                => (bool co, float[?,?] h2, float[{many}] t1, float[?,?] y) {{
                    {read} {CELLS[self.cell]} {write} y = Neg (h2) co = Identity (ci)
            }}> (tn, yes, h0, t0) }}"""

    def _said(self, axes: str, grown: str = "N") -> str:
        return ",".join(grown if c == "0" else c if c in self.free else str(self.size[c]) for c in axes)

    def _weights(self) -> list[str]:
        steps, rows, width = self.sizes
        vectors = {"zero": [0], "one": [1], "two": [2], "three": [3], "m1": [-1], "far": [2**62], "ax01": [0, 1], "ax12": [1, 2]}
        vectors |= {"ax02": [0, 2], "ax012": [0, 1, 2], "row": [rows, width], "front": [1, rows, width], "middle": [rows, 1, width]}
        vectors |= {"last": [rows, width, 1], "rows": [rows], "tall": [rows, 1], "full": [rows, width, 1], "column": [steps, 1, 1]}
        vectors |= {"numbers": list(range(steps))}
        results = [f"int64[{len(items)}] {name} = {{{_listed(items)}}}" for name, items in vectors.items()]
        results += [f"int64 s{k} = {{{k}}}" for k in range(3)] + ["float half = {0.5}", "bool yes = {1}"]
        results.append(f"int64[{rows},1] each_row = {{{_listed(range(rows))}}}")
        cells = [place for cell in np.ndindex(rows, width) for place in cell]
        results.append(f"int64[{rows},{width},2] each_cell = {{{_listed(cells)}}}")
        for name, shift in (("r", 1), ("w", 2)):
            results.append(
                f"float[{width},{width}] {name} = {{{_listed((k + shift) % 3 / 4 + 0.1 for k in range(width * width))}}}"
            )
        return results


def _listed(items: object) -> str:
    return ", ".join(map(str, items))  # type: ignore[call-overload]
