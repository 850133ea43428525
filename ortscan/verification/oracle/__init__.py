"""The original as it can be held against: where onnxruntime runs it wrongly, or not at all, a copy that means the same."""

__all__: list[str] = []
