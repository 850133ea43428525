"""Pairs of models that compute the same up to the order of sums and the roundings of their types."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from tests.campaigns.verification_pairs.harmless import harmless_pairs, harmless_sizes
from tests.campaigns.verification_pairs.honest_at_named_values import honest_at_named_values, honest_by_roundings
from tests.campaigns.verification_pairs.pair import Pair, pair, with_weights
from tests.support.text import model_from_text

__all__ = ["honest_pairs"]

_TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16}
_NUMBERS = {"float": 1, "double": 11, "float16": 10}
_AXIS = "a = Constant <value_ints = [{}]> ()"


def honest_pairs() -> list[Pair]:
    """All of them, in an order that does not change."""
    families = (_products, _wide, _sums, _fused, _recurrent, _distances, _recurrences, _halves, _branches)
    free = [one for family in families for one in family()]
    return [*free, *map(_fixed, free[::5]), *honest_by_roundings(), *harmless_pairs(), *harmless_sizes(), *honest_at_named_values()]


def _fixed(one: Pair) -> Pair:
    """The pair with one row, or some steps, by declaration."""
    models = []
    for model in (one.before, one.after):
        fixed = onnx.ModelProto()
        fixed.CopyFrom(model)
        for value in (*fixed.graph.input, *fixed.graph.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.HasField("dim_param"):
                    dim.dim_value = {"N": 1, "B": 1}.get(dim.dim_param, 3)
        models.append(fixed)
    return Pair(f"{one.name}, of a fixed shape", *models)


def _weights(seed: int, kind: str, **shapes: Sequence[int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape).astype(_TYPES[kind]) for name, shape in shapes.items()}


def _weighted(name: str, before: str, after: str, weights: dict[str, np.ndarray], opset: int = 18) -> Pair:
    models = [with_weights(model_from_text(text, opset), weights) for text in (before, after)]
    return Pair(name, *models)


def _products() -> Iterator[Pair]:
    for kind in _TYPES:
        for width in (3, 16, 64, 200) if kind != "float16" else (3, 8):
            for seed in range(8):
                text = f"g ({kind}[N, {width}] x, {kind}[{width}, {width}] v, {kind}[{width}, {width}] w) => ({kind}[N, {width}] y) {{{{ {{}} }}}}"
                weights = _weights(seed, kind, v=(width, width), w=(width, width))
                weights = {name: (array / np.sqrt(width)).astype(array.dtype) for name, array in weights.items()}
                grouped = text.format("p = MatMul(x, v) y = MatMul(p, w)"), text.format("q = MatMul(v, w) y = MatMul(x, q)")
                yield _weighted(f"a product of three, {kind}, {width}, {seed}", *grouped, weights)
                turned = text.format("p = MatMul(x, v) s = Add(p, x) y = MatMul(s, w)")
                apart = text.format("p = MatMul(x, v) s = MatMul(p, w) t = MatMul(x, w) y = Add(s, t)")
                yield _weighted(f"a distributed product, {kind}, {width}, {seed}", turned, apart, weights)


def _wide() -> Iterator[Pair]:
    for kind in ("float", "double"):
        for width in (256, 1024, 4096):
            for activation in ("Tanh", "Relu", "Sigmoid", "Identity"):
                half = width // 2
                declared = f"{kind}[N, 32] x, {kind}[32, {width}] v, {kind}[{width}, 8] w"
                text = f"g ({declared}) => ({kind}[N, 8] y) {{{{ p = MatMul(x, v) h = {activation}(p) {{}} }}}}"
                split = f"""k = Constant <value_ints = [{half}, {half}]> () l = Constant <value_ints = [{half}, {half}]> ()
                  h1, h2 = Split <axis = 1> (h, k) w1, w2 = Split <axis = 0> (w, l) y1 = MatMul(h1, w1) y2 = MatMul(h2, w2) y = Add(y2, y1)"""
                weights = _weights(width, kind, v=(32, width), w=(width, 8))
                yield _weighted(
                    f"a wide layer, {kind}, {width}, {activation}", text.format("y = MatMul(h, w)"), text.format(split), weights
                )
    for width in (512, 1500):
        for activation in ("Tanh", "Sigmoid", "Relu"):
            declared = f"float[N, 64] x, float[64, {width}] u, float[{width}, {width}] v, float[{width}, 8] w"
            text = f"g ({declared}) => (float[N, 8] y) {{{{ p = MatMul(x, u) h = {activation}(p) q = {{}} k = {activation}(q) y = MatMul(k, w) }}}}"
            weights = _weights(width, "float", u=(64, width), v=(width, width), w=(width, 8))
            turned = text.replace("q = {}", "ht = Transpose(h) vt = Transpose(v) qt = MatMul(vt, ht) q = {}").format(
                "Transpose(qt)"
            )
            yield _weighted(f"a wide net without scaling, {width}, {activation}", text.format("MatMul(h, v)"), turned, weights)
    for depth in (2, 3, 4):
        for seed in range(4):
            names = [f"w{at}" for at in range(depth)]
            declared = ", ".join(["float[N, 64] x", *(f"float[64, 64] {name}" for name in names)])
            steps, other, last = [], [], "x"
            for at, name in enumerate(names):
                steps.append(f"p{at} = MatMul({last}, {name}) h{at} = Relu(p{at})")
                other.append(f"t{at} = Transpose(v{at}) p{at} = MatMul({last}, t{at}) h{at} = Max(z, p{at})")
                last = f"h{at}"
            flipped = " ".join(f"v{at} = Transpose({name})" for at, name in enumerate(names))
            text = f"g ({declared}) => (float[N, 64] y) {{{{ z = Constant <value_float = 0.0> () {{}} y = Identity({last}) }}}}"
            weights = _weights(seed, "float", **dict.fromkeys(names, (64, 64)))
            yield _weighted(
                f"a deep net without scaling, {depth}, {seed}",
                text.format(" ".join(steps)),
                text.format(f"{flipped} {' '.join(other)}"),
                weights,
            )


def _sums() -> Iterator[Pair]:
    for kind in _TYPES:
        text = f"g ({kind}[T, B, 4] x) => ({kind}[B, 4] y) {{{{ {_AXIS.format(0)} {{}} }}}}"
        back = """m = Constant <value_ints = [-1]> () e = Constant <value_ints = [-9223372036854775807]> ()
          r = Slice(x, m, e, a, m) y = ReduceSum <keepdims = 0> (r, a)"""
        plain = text.format("y = ReduceSum <keepdims = 0> (x, a)")
        yield pair(f"a sum from the end, {kind}", plain, text.format(back))
        text = text.replace("[T, B, 4] x", "[6, B, 4] x")
        mean = f"n0 = Shape <start = 0, end = 1> (x) n = Cast <to = {_NUMBERS[kind]}> (n0) s = ReduceSum <keepdims = 0> (x, a) y = Div(s, n)"
        yield pair(f"a mean, {kind}", text.format("y = ReduceMean <keepdims = 0> (x, a)"), text.format(mean))
        if kind == "float16":
            continue
        scan = """y0 = CumSum(x, t) e = Constant <value_ints = [-1]> () f = Constant <value_ints = [9223372036854775807]> ()
          u = Slice(y0, e, f, a) y = Squeeze(u, a)"""
        plain = text.format("y = ReduceSum <keepdims = 0> (x, a)")
        yield pair(f"a running sum, {kind}", plain, text.format(f"t = Constant <value_int = 0> () {scan}"))
        loop = f"""g ({kind}[T, 4] x, {kind}[4] h) => ({kind}[T, 4] y) {{{{
          last, y = Scan <num_scan_inputs = 1, body = b ({kind}[4] s, {kind}[4] e) => ({kind}[4] n, {kind}[4] o) {{{{ {{}} }}}}> (h, x) }}}}"""
        for op, one, other in (("Add", "CumSum", "Add"),):
            whole = f"g ({kind}[T, 4] x, {kind}[4] h) => ({kind}[T, 4] y) {{ t = Constant <value_int = 0> () c = {one}(x, t) y = {other}(c, h) }}"
            yield pair(f"a scan of sums, {kind}", loop.format(f"n = {op}(s, e) o = Identity(n)"), whole)
        variance = """m = ReduceMean <keepdims = 1> (x, a) {}"""
        two = text.format(variance.format("d = Sub(x, m) q = Mul(d, d) y = ReduceMean <keepdims = 0> (q, a)"))
        one = text.format(
            "q = Mul(x, x) m = ReduceMean <keepdims = 0> (x, a) p = Mul(m, m) u = ReduceMean <keepdims = 0> (q, a) y = Sub(u, p)"
        )
        yield pair(f"a variance, {kind}", two, one)


def _fused() -> Iterator[Pair]:
    spellings = {
        "sigmoid": ("y = Sigmoid(x)", "n = Neg(x) e = Exp(n) s = Add(e, one) y = Reciprocal(s)"),
        "mirrored sigmoid": ("s = Sigmoid(x) y = Sub(one, s)", "n = Neg(x) y = Sigmoid(n)"),
        "tanh": ("y = Tanh(x)", "d = Add(x, x) s = Sigmoid(d) t = Add(s, s) y = Sub(t, one)"),
        "softmax": (
            "y = Softmax <axis = -1> (x)",
            "m = ReduceMax <keepdims = 1> (x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s)",
        ),
        "log-softmax": (
            "y = LogSoftmax <axis = -1> (x)",
            "m = ReduceMax <keepdims = 1> (x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) l = Log(s) y = Sub(d, l)",
        ),
        "norm": (
            "u = ReduceMean(x, a) c = Sub(x, u) q = Mul(c, c) v = ReduceMean(q, a) w = Add(v, eps) r = Sqrt(w) y = Div(c, r)",
            "u = ReduceMean(x, a) c = Sub(x, u) q = Mul(c, c) v = ReduceMean(q, a) w = Add(v, eps) r = Sqrt(w) i = Reciprocal(r) y = Mul(c, i)",
        ),
        "swish": ("s = Sigmoid(x) y = Mul(x, s)", "n = Neg(x) e = Exp(n) s = Add(e, one) y = Div(x, s)"),
        "square": ("y = Mul(x, x)", "y = Pow(x, two)"),
        "thirds": ("t = Mul(x, third) y = Add(t, x)", "k = Add(third, one) y = Mul(x, k)"),
        "divided": ("y = Div(x, three)", "y = Mul(x, third)"),
        "blend": (
            "s = Sigmoid(x) c = Sub(one, s) l = Mul(x, s) r = Mul(c, one) y = Add(l, r)",
            "s = Sigmoid(x) d = Sub(x, one) p = Mul(s, d) y = Add(p, one)",
        ),
    }
    for kind, number in _NUMBERS.items():
        constants = "".join(
            f"{name}0 = Constant <value = double {{{{{value}}}}}> () {name} = Cast <to = {number}> ({name}0) "
            for name, value in (("one", 1.0), ("two", 2.0), ("three", 3.0), ("third", 1 / 3), ("eps", 1e-3))
        )
        for name, texts in spellings.items():
            for width in (4, 9, 40):
                text = f"g ({kind}[N, {width}] x) => ({kind}[N, {width}] y) {{{{ {constants} {_AXIS.format(-1)} {{}} }}}}"
                yield pair(f"{name}, {kind}, {width}", *(text.format(each) for each in texts))


def _recurrent() -> Iterator[Pair]:
    for width in (2, 5, 16):
        for seed in range(8):
            declared = f"float[T, B, 3] x, float[1, B, {width}] h, float[1, {width}, 3] w, float[1, {width}, {width}] r"
            node = f"g ({declared}) => (float[T, B, {width}] y) {{ z = Constant <value_ints = [1]> () y0, l = RNN <hidden_size = {width}> (x, w, r, , , h) y = Squeeze(y0, z) }}"
            scan = f"""g ({declared}) => (float[T, B, {width}] y) {{
              z = Constant <value_ints = [0]> () h2 = Squeeze(h, z) w2 = Squeeze(w, z) r2 = Squeeze(r, z)
              wt = Transpose(w2) rt = Transpose(r2) p = MatMul(x, wt)
              l, y = Scan <num_scan_inputs = 1, body = b (float[B, {width}] s, float[B, {width}] e) => (float[B, {width}] n, float[B, {width}] o) {{
                q = MatMul(s, rt) t = Add(q, e) n = Tanh(t) o = Identity(n) }}> (h2, p) }}"""
            weights = _weights(seed, "float", w=(1, width, 3), r=(1, width, width))
            yield _weighted(f"an RNN, {width}, {seed}", scan, node, weights)
            four = f"float[T, B, 3] x, float[1, B, {width}] h, float[1, {4 * width}, 3] w, float[1, {4 * width}, {width}] r"
            gates = f"g ({four}) => (float[T, B, {width}] y) {{ "
            lstm = f"""{gates}z = Constant <value_ints = [1]> () y0, l = LSTM <hidden_size = {width}> (x, w, r, , , h) y = Squeeze(y0, z) }}"""
            loop = f"""{gates}z = Constant <value_ints = [0]> () h2 = Squeeze(h, z) w2 = Squeeze(w, z) r2 = Squeeze(r, z)
              wt = Transpose(w2) rt = Transpose(r2) p = MatMul(x, wt) c0 = Sub(h2, h2)
              l, m, y = Scan <num_scan_inputs = 1, body = b (float[B, {width}] s, float[B, {width}] c, float[B, {4 * width}] e)
                => (float[B, {width}] n, float[B, {width}] d, float[B, {width}] o) {{
                q = MatMul(s, rt) t = Add(q, e) i1, o1, f1, g1 = Split <axis = 1, num_outputs = 4> (t)
                i2 = Sigmoid(i1) o2 = Sigmoid(o1) f2 = Sigmoid(f1) g2 = Tanh(g1) u = Mul(i2, g2) v = Mul(f2, c) d = Add(u, v)
                k = Tanh(d) n = Mul(o2, k) o = Identity(n) }}> (h2, c0, p) }}"""
            weights = _weights(seed, "float", w=(1, 4 * width, 3), r=(1, 4 * width, width))
            yield _weighted(f"an LSTM, {width}, {seed}", loop, lstm, weights)


def _distances() -> Iterator[Pair]:
    for kind in ("float", "double"):
        for width in (4, 30):
            for seed in range(4):
                text = f"g ({kind}[N, {width}] x, {kind}[7, {width}] v) => ({kind}[N, 7] y) {{{{ {_AXIS.format(-1)} {{}} }}}}"
                direct = """o = Constant <value_ints = [1]> () x1 = Unsqueeze(x, o) d = Sub(x1, v) q = Mul(d, d)
                  y = ReduceSum <keepdims = 0> (q, a)"""
                shifted = """o = Constant <value_ints = [1]> () x1 = Unsqueeze(x, o) d = Sub(v, x1) n = Abs(d) l = Mul(n, n)
                  y = ReduceSum <keepdims = 0> (l, a)"""
                yield _weighted(
                    f"squared distances, {kind}, {width}, {seed}",
                    text.format(direct),
                    text.format(shifted),
                    _weights(seed, kind, v=(7, width)),
                )
                einsum = (
                    text.replace("[7, ", "[7, ").format("vt = Transpose(v) y = MatMul(x, vt)"),
                    text.format('y = Einsum <equation = "ni,mi->nm"> (x, v)'),
                )
                yield _weighted(f"inner products, {kind}, {width}, {seed}", *einsum, _weights(seed, kind, v=(7, width)))


def _recurrences() -> Iterator[Pair]:
    for kind in ("float", "double"):
        for decay in ("0.3", "0.5", "0.9", "0.99", "1.0", "-0.7", "1.01"):
            scan = f"""g ({kind}[T, 4] x, {kind}[4] h) => ({kind}[T, 4] y) {{{{
              k0 = Constant <value = double {{{{{decay}}}}}> () k = Cast <to = {_NUMBERS[kind]}> (k0)
              last, y = Scan <num_scan_inputs = 1, body = b ({kind}[4] s, {kind}[4] e) => ({kind}[4] n, {kind}[4] o) {{{{ {{}} }}}}> (h, x) }}}}"""
            forms = ("d = Mul(s, k) n = Add(d, e) o = Identity(n)", "d = Div(e, k) f = Add(d, s) n = Mul(f, k) o = Identity(n)")
            yield pair(f"a linear recurrence, {kind}, {decay}", *(scan.format(form) for form in forms))
            forms = (
                "d = Mul(s, k) f = Add(d, e) n = Tanh(f) o = Identity(n)",
                "d = Mul(s, k) f = Add(e, d) g2 = Add(f, f) q = Sigmoid(g2) q2 = Add(q, q) i = Div(k, k) n = Sub(q2, i) o = Identity(n)",
            )
            yield pair(f"a bounded recurrence, {kind}, {decay}", *(scan.format(form) for form in forms))


def _halves() -> Iterator[Pair]:
    for width in (3, 8, 24):
        for seed in range(8):
            declared = f"float16[N, {width}] x, float16[{width}, {width}] w"
            text = f"g ({declared}) => (float16[N, {width}] y) {{{{ {{}} }}}}"
            weights = _weights(seed, "float16", w=(width, width))
            weights = {name: (array / np.sqrt(width)).astype(np.float16) for name, array in weights.items()}
            wide = "x1 = Cast <to = 1> (x) w1 = Cast <to = 1> (w) p = MatMul(x1, w1) t = Tanh(p) y = Cast <to = 10> (t)"
            yield _weighted(
                f"half in float32, {width}, {seed}", text.format("p = MatMul(x, w) y = Tanh(p)"), text.format(wide), weights
            )
            both = f"g ({declared}, double[N, 4] v) => (float16[N, {width}] y, double[N, 4] z) {{{{ z = Sin(v) {{}} }}}}"
            yield _weighted(
                f"half beside double, {width}, {seed}", both.format("p = MatMul(x, w) y = Tanh(p)"), both.format(wide), weights
            )
    for seed in range(8):
        text = "g (float[N, 8] x, float[8, 8] w) => (float[N, 8] y) {{ x1 = Cast <to = 10> (x) w1 = Cast <to = 10> (w) {} }}"
        weights = {"w": _weights(seed, "float", w=(8, 8))["w"] / 3}
        inner = (
            "p = MatMul(x1, w1) q = Tanh(p) y = Cast <to = 1> (q)",
            "x2 = Cast <to = 1> (x1) w2 = Cast <to = 1> (w1) p = MatMul(x2, w2) y = Tanh(p)",
        )
        yield _weighted(f"half inside, {seed}", *(text.format(each) for each in inner), weights)


def _branches() -> Iterator[Pair]:
    for kind in ("float", "double"):
        for width in (3, 16):
            for seed in range(4):
                text = f"g ({kind}[N, {width}] x, {kind}[{width}, 5] w) => ({kind}[N, 5] y, int64[N] i) {{{{ {{}} i = ArgMax <axis = 1, keepdims = 0> (y) }}}}"
                half = f"h = Constant <value_float = 0.5> () k = Cast <to = {_NUMBERS[kind]}> (h)"
                forms = "y = MatMul(x, w)", f"d = Add(x, x) p = MatMul(d, w) {half} y = Mul(p, k)"
                weights = _weights(seed, kind, w=(width, 5))
                yield _weighted(
                    f"the largest of products, {kind}, {width}, {seed}", *(text.format(each) for each in forms), weights
                )
                gate = f"g ({kind}[N, {width}] x, {kind}[{width}, 5] w) => ({kind}[N, 5] y) {{{{ {{}} s = Sigmoid(p) y = Mul(s, p) }}}}"
                yield _weighted(
                    f"a gate, {kind}, {width}, {seed}",
                    gate.format("p = MatMul(x, w)"),
                    gate.format("t = Transpose(w) u = Transpose(t) p = MatMul(x, u)"),
                    _weights(seed, kind, w=(width, 5)),
                )
