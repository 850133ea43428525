"""What onnxruntime is given to open, where an optimised model refers to external data beside the original.

onnxruntime looks for external data below the folder of the model file, or for a model in bytes where an entry of the SessionOptions
says. That entry cannot be taken back, and would send every later model of the same SessionOptions there. So it is set only on
SessionOptions of our own; for a caller's, the optimised model stands beside the data while it is opened: in a folder with second
names (hard links) of the data files, or for a moment in the model's own folder, or beside copies.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.session.preparing import Prepared
from ortscan.session.settings import entry_of

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["FOLDER_ENTRY", "opened"]

FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"


@contextlib.contextmanager
def opened(prepared: Prepared, options: "ort.SessionOptions | None", is_ours: bool) -> Iterator[tuple[str | None, bytes | None]]:
    """Give the path or the bytes that a session opens; files made for that last as long as the block."""
    if prepared.data_folder is None:
        yield prepared.path, prepared.content
        return
    content = prepared.content if prepared.content is not None else Path(prepared.path or "").read_bytes()
    if entry_of(options, FOLDER_ENTRY):
        yield None, content
    elif is_ours:
        assert options is not None
        options.add_session_config_entry(FOLDER_ENTRY, prepared.data_folder)
        yield None, content
    else:
        with contextlib.ExitStack() as stack:
            stack.callback(prepared.after_links)
            yield _beside_its_data(content, prepared.data_folder, stack), None


def _beside_its_data(content: bytes, folder: str, stack: contextlib.ExitStack) -> str:
    try:
        return _gathered(content, folder, stack, os.link)
    except OSError:
        pass
    try:
        handle, path = tempfile.mkstemp(dir=folder, prefix=".ortscan-", suffix=".onnx")
    except OSError:
        return _gathered(content, folder, stack, shutil.copy)
    stack.callback(os.unlink, path)
    with open(handle, "wb") as file:
        file.write(content)
    return path


def _gathered(content: bytes, folder: str, stack: contextlib.ExitStack, bring: Callable[[str, str], object]) -> str:
    """Write the model into a new folder to which ``bring`` brings its data files. Raises OSError."""
    from ortscan.modelio.protos import locations_in
    from ortscan.modelio.reading import parse

    place = stack.enter_context(tempfile.TemporaryDirectory(prefix="ortscan-", ignore_cleanup_errors=True))
    for location in locations_in(parse(content, "the optimised model")):
        os.makedirs(os.path.dirname(os.path.join(place, location)), exist_ok=True)
        bring(os.path.realpath(os.path.join(folder, location)), os.path.join(place, location))
    path = os.path.join(place, "model.onnx")
    Path(path).write_bytes(content)
    return path
