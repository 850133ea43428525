"""Serialises a loaded model with chosen tensors embedded, or written elsewhere, whatever they were before."""

from collections.abc import Iterable, Sequence

import onnx
import onnx_ir as ir

from ortscan.modelio.loaded import LoadedModel, to_proto, written
from ortscan.modelio.protos import tensors_in
from ortscan.modelio.slots import Slot, substituted
from ortscan.modelio.tensors import reference_to
from rewrites.base.errors import InvariantBroken

__all__ = ["external_slots", "serialised"]

_MARK = "ortscan-embed:"


def external_slots(slots: Iterable[Slot]) -> list[Slot]:
    """Return those that hold external tensors."""
    return [slot for slot in slots if isinstance(slot.get(), ir.ExternalTensor)]


def serialised(loaded: LoadedModel, embed: Sequence[Slot], moved: Sequence[tuple[Slot, ir.ExternalTensor]] = ()) -> onnx.ModelProto:
    """Serialise with the external tensors of ``embed`` inside, and those of ``moved`` as the references given.

    At no time is more than one tensor in memory a second time. The loaded model is as before afterwards.

    Raises:
        InvariantBroken: another reference to external data would be left, or the model is broken.
    """
    tensors = [slot.get() for slot in embed]
    marks = [
        (slot, reference_to(tensor, f"{_MARK}{number}")) for number, (slot, tensor) in enumerate(zip(embed, tensors, strict=True))
    ]
    with substituted([*marks, *moved]):
        proto = written(loaded) if marks or moved else to_proto(loaded)
    places = {reference.location for _, reference in moved}
    for message in tensors_in(proto):
        if message.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next(entry.value for entry in message.external_data if entry.key == "location")
        if location.startswith(_MARK):
            message.ClearField("external_data")
            message.ClearField("data_location")
            message.raw_data = tensors[int(location.removeprefix(_MARK))].tobytes()
        elif location not in places:
            raise InvariantBroken(f"Tensor {message.name!r} would be left referring to {location!r}.")
    return proto
