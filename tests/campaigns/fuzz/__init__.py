"""Whole random models, rewritten and compared with what onnxruntime made of the originals: ``python -m tests.campaigns fuzz``."""
