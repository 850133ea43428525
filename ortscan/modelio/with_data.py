"""Writes a model and a file of external data such that at every moment there is a model whose data is there.

What is replaced is the model, in one step; its data has another name than that of the model before. Where the data is to have the
name that the data before had, it is copied to that once the model needs the old data no more, and the model is replaced once more.
So the process may be killed anywhere: what is there is the old model or the new one. A second name of one file (a hard link) would
save the copy, but onnx refuses data that has two.
"""

import filecmp
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import onnx
import onnx_ir as ir

from ortscan.base.temporary import insisting
from ortscan.modelio.data_files import DataFile
from ortscan.modelio.data_layout import write_data
from ortscan.modelio.destination import DataPath, data_path
from ortscan.modelio.loaded import LoadedModel
from ortscan.modelio.model_file import write_model
from ortscan.modelio.protos import tensors_in
from ortscan.modelio.replacing import Replacement
from ortscan.modelio.serialising import external_slots, serialised
from ortscan.modelio.slots import AttributeSlot, Slot
from ortscan.modelio.tensors import FileTensor, bytes_needed
from rewrites.base.errors import ModelFileError

__all__ = ["SMALL", "write_with_data"]

SMALL = 1024
"""Tensors of no more bytes than this are always embedded."""


def write_with_data(loaded: LoadedModel, slots: Sequence[Slot], given: Path, target: Path, source: Path | None) -> None:
    """Write the model to ``target``, which ``given`` leads to, and the tensors that are not small to a file beside it.

    ``source``: the file the model came from. Raises ModelFileError and OSError.
    """
    outside = [slot for slot in slots if _belongs_outside(slot)]
    inside = [slot for slot in external_slots(slots) if not _belongs_outside(slot)]
    if not outside:
        with Replacement() as files:
            write_model(serialised(loaded, inside), target, files)
            files.commit()
        return
    if os.path.realpath(given.parent) != str(target.parent):
        raise ModelFileError(
            f"{given} is a symbolic link into another folder, and the model has external data, which only one of them could find; "
            f"give {target} as the output."
        )
    read = [tensor.data for tensor in (slot.get() for slot in slots) if isinstance(tensor, FileTensor)]
    used = list(dict.fromkeys([*loaded.files, *read]))
    place = data_path(target, source, used)
    overwritten = [file for file in used if any(file.is_now_at(path) for path in (place.settled, *place.obsolete) if path)]
    with Replacement() as files:
        data = files.open(place.path)
        moved = write_data(outside, data, place.path.name)
        proto = serialised(loaded, inside, moved)
        if place.is_taken:
            data.flush()
            _write_beside(Path(data.name), proto, target, place)
            return
        write_model(proto, target, files)
        again = Replacement()
        try:
            files.commit()
            if place.settled is not None:
                with suppress(OSError):  # where there is no room for a copy, the first name will do
                    copied = DataFile(str(place.path), hold=False)
                    copied.append_to(again.open(place.settled), 0, copied.size)
                    write_model(_renamed(proto, place.settled.name), target, again)
                    again.commit()
        finally:
            insisting(lambda: _tidy(place, files, again))
    for file in overwritten:
        for reader in file.readers:
            reader.invalidate()


def _tidy(place: DataPath, files: Replacement, again: Replacement) -> None:
    again.clear()
    if not files.is_done:
        return
    unneeded = [] if place.settled is None else [place.path if again.is_done else place.settled]
    for path in (*unneeded, *place.obsolete):
        with suppress(OSError):
            path.unlink()


def _write_beside(data: Path, proto: onnx.ModelProto, target: Path, place: DataPath) -> None:
    """Write the model to ``target`` beside what has the name of its data already, if that is the same."""
    there = place.settled
    assert there is not None
    if there.is_symlink() or not filecmp.cmp(data, there, shallow=False):
        raise ModelFileError(
            f"{target} cannot be written: its external data would go to {there}, which is there already and is not of a model at "
            f"{target}; remove it or choose another output."
        )
    with Replacement() as files:
        write_model(_renamed(proto, there.name), target, files)
        files.commit()


def _renamed(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Let all external data of ``proto``, which is in one file, be in the file ``name``."""
    for tensor in tensors_in(proto):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
    return proto


def _belongs_outside(slot: Slot) -> bool:
    tensor = slot.get()
    return bytes_needed(tensor) > SMALL and (not isinstance(slot, AttributeSlot) or isinstance(tensor, ir.ExternalTensor))
