"""The ONNX project's own node tests, each wrapped in a Scan, given to ``ortscan.optimize`` and compared on onnxruntime."""
