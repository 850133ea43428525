"""Puts a model with a loop on a provider that runs none: its number of steps is fixed, and the steps are written out.

python examples/without_loops.py
"""

import onnx

import ortscan

BEFORE = """<ir_version: 10, opset_import: ["": 18]>
smoother (float[T, 4] xs, float[4] start) => (float[4] last, float[T, 4] ys) <float keep = {0.9}, float take = {0.1}> {
   last, ys = Scan <num_scan_inputs = 1, body = step (float[4] s, float[4] x) => (float[4] next, float[4] y) {
      a = Mul (s, keep)
      b = Mul (x, take)
      c = Add (a, b)
      next = Tanh (c)
      y = Identity (next)
   }> (start, xs)
}
"""


def main() -> None:
    """Show the model before and after, and where what was a loop runs."""
    model = onnx.parser.parse_model(BEFORE)
    print(f"before:\n{BEFORE}")
    for shapes in (None, {"xs": [3, 4]}):
        for loop in ortscan.explain(model, target="coreml", fix_shapes=shapes).loops:
            print(f"with xs {shapes['xs'] if shapes else 'of any length'}, {loop.where} runs as: {loop.runs}")
    unrolled = ortscan.optimize(model, target="coreml", fix_shapes={"xs": [3, 4]})
    print(f"\nafter:\n{onnx.printer.to_text(unrolled)}")
    print(ortscan.verify(model, unrolled, shapes={"xs": [3, 4]}).summary())


if __name__ == "__main__":
    main()
