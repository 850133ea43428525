"""What every floor may use: files, locks, processes, and walks over models as protobuf has them.

Nothing here imports onnxruntime, or knows what an operator means.
"""

__all__: list[str] = []
