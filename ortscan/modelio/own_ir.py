"""A serialised model as onnx_ir, of which nothing is written to when the IR is changed."""

import onnx
import onnx_ir as ir

from ortscan.modelio.slots import tensor_slots
from ortscan.modelio.tensors import own_tensor

__all__ = ["own_ir"]


def own_ir(proto: onnx.ModelProto) -> ir.Model:
    """Return ``proto`` as IR; its tensors are objects of their own, since who renames one of onnx_ir's renames the message's."""
    model = ir.from_proto(proto)
    for slot in tensor_slots(model):
        tensor = slot.get()
        if not isinstance(tensor, ir.ExternalTensor):
            slot.put(own_tensor(tensor, is_ours=False))
    return model
