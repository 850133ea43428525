"""Models large enough to time ortscan itself."""

import onnx
import onnx.parser

from tests.support.text import parsed

__all__ = ["delay_line", "many_loops", "many_scans", "nodes_between_scans", "recurrent_body", "wide_body"]


def many_scans(count: int) -> onnx.ModelProto:
    """A chain of ``count`` small Scans."""
    scans = "".join(
        f"""h{k}, xs{k + 1} = Scan <num_scan_inputs = 1, body = step{k} (float[4] h, float[4] x) => (float[4] h2, float[4] y) {{
            a = Mul(x, x) s = Add(a, h) h2 = Tanh(s) y = Exp(h2) }}> (h, xs{k})\n"""
        for k in range(count)
    )
    text = f"main (float[T,4] xs0, float[4] h) => (float[T,4] ys) {{ {scans} ys = Identity(xs{count}) }}"
    return parsed(text)


def many_loops(count: int) -> onnx.ModelProto:
    """A chain of ``count`` small Loops of one state each."""
    loops = "".join(
        f"""x{k + 1} = Loop <body = step{k} (int64 i, bool go, float[4] h) => (bool more, float[4] h2) {{
            more = Identity(go) a = Mul(h, h) h2 = Tanh(a) }}> (trips, go, x{k})\n"""
        for k in range(count)
    )
    text = f"main (int64 trips, bool go, float[4] x0) => (float[4] y) {{ {loops} y = Identity(x{count}) }}"
    return parsed(text)


def nodes_between_scans(nodes: int) -> onnx.ModelProto:
    """A chain of ``nodes`` operators with a recurrent Scan in front and one behind."""
    scan = """Scan <num_scan_inputs = 1, body = step (float[4] s, float[4] x) => (float[4] t, float[4] z) {
        a = Mul(x, x) b = Add(a, s) t = Tanh(b) z = Exp(t) }>"""
    chain = " ".join(f"v{i + 1} = {('Relu', 'Tanh', 'Neg')[i % 3]}(v{i})" for i in range(nodes))
    text = (
        f"main (float[T,4] xs, float[4] h) => (float[T,4] ys) {{ hT, v0 = {scan} (h, xs) {chain} hU, ys = {scan} (h, v{nodes}) }}"
    )
    return parsed(text)


def wide_body(nodes: int) -> onnx.ModelProto:
    """One Scan without a recurrence whose body is a chain of ``nodes`` operators."""
    chain = " ".join(f"v{i + 1} = {'Tanh' if i % 3 else 'Relu'}(v{i})" for i in range(nodes - 1))
    text = f"""main (float[T,4] xs) => (float[T,4] ys) {{
        ys = Scan <num_scan_inputs = 1, body = step (float[4] v0) => (float[4] y) {{ {chain} y = Tanh(v{nodes - 1}) }}> (xs) }}"""
    return parsed(text)


def recurrent_body(nodes: int) -> onnx.ModelProto:
    """One Scan whose body is a chain of ``nodes`` operators, half of them before a recurrence and half after it."""
    half = nodes // 2
    before = " ".join(f"v{i + 1} = {'Tanh' if i % 3 else 'Relu'}(v{i})" for i in range(half))
    after = " ".join(f"w{i + 1} = {'Tanh' if i % 3 else 'Relu'}(w{i})" for i in range(half))
    text = f"""main (float[T,4] xs, float[4] h0) => (float[4] hT, float[T,4] ys) {{
        hT, ys = Scan <num_scan_inputs = 1, body = step (float[4] h, float[4] v0) => (float[4] w0, float[4] y) {{
            {before} w0 = Add(h, v{half}) {after} y = Tanh(w{half}) }}> (h0, xs) }}"""
    return parsed(text)


def delay_line(states: int) -> onnx.ModelProto:
    """One Scan that hands its input on from state to state."""
    held, new, last = (", ".join(f"float[4] {name}{i}" for i in range(states)) for name in ("h", "n", "q"))
    chain = "n0 = Identity(x) " + " ".join(f"n{i} = Identity(h{i - 1})" for i in range(1, states))
    names, given = ", ".join(f"q{i}" for i in range(states)), ", ".join(["h"] * states)
    text = f"""main (float[T,4] xs, float[4] h) => ({last}, float[T,4] ys) {{
        {names}, ys = Scan <num_scan_inputs = 1, body = step ({held}, float[4] x) => ({new}, float[4] y) {{
            {chain} y = Exp(h{states - 1}) }}> ({given}, xs) }}"""
    return parsed(text)
