"""What recurrent nodes are marked with while rules look at them."""

__all__ = ["LOWERED"]


LOWERED = "lowered"
"""What a node is marked with that onnxruntime would not have run."""
