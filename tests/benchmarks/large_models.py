"""Models large enough to time ortscan itself."""

import onnx
import onnx.parser

__all__ = ["many_scans", "wide_body"]

_HEADER = '<ir_version: 9, opset_import: ["": 18]>'


def many_scans(count: int) -> onnx.ModelProto:
    """A chain of ``count`` small Scans."""
    scans = "".join(
        f"""h{k}, xs{k + 1} = Scan <num_scan_inputs = 1, body = step{k} (float[4] h, float[4] x) => (float[4] h2, float[4] y) {{
            a = Mul(x, x) s = Add(a, h) h2 = Tanh(s) y = Exp(h2) }}> (h, xs{k})\n"""
        for k in range(count)
    )
    text = f"main (float[T,4] xs0, float[4] h) => (float[T,4] ys) {{ {scans} ys = Identity(xs{count}) }}"
    return onnx.parser.parse_model(_HEADER + text)


def wide_body(nodes: int) -> onnx.ModelProto:
    """One Scan without a recurrence whose body is a chain of ``nodes`` operators."""
    chain = " ".join(f"v{i + 1} = {'Tanh' if i % 3 else 'Relu'}(v{i})" for i in range(nodes - 1))
    text = f"""main (float[T,4] xs) => (float[T,4] ys) {{
        ys = Scan <num_scan_inputs = 1, body = step (float[4] v0) => (float[4] y) {{ {chain} y = Tanh(v{nodes - 1}) }}> (xs) }}"""
    return onnx.parser.parse_model(_HEADER + text)
