"""The native loop engine: a library of one onnxruntime operator, ``ai.ortscan::Scan1``, which runs loop plans (LOOP_PLANS.md)."""

__all__: list[str] = []
