"""Check files before any long work, choose the output path of a verb, and measure the sizes of models."""

import argparse
import stat
import zipfile
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.base.paths import is_path
from rewrites.base.errors import ModelFileError, OptionError, OrtscanError
from rewrites.base.plain_text import shown

__all__ = [
    "add_output",
    "check_npz",
    "check_output",
    "check_readable",
    "check_report",
    "check_writable",
    "name_of",
    "output_of",
    "size_of_model",
    "size_of_source",
]


def name_of(path: str, args: argparse.Namespace) -> str:
    """Return the name of the file ``path`` in messages.

    It is ``standard input`` or ``standard output`` if the file is a temporary copy.
    """
    names: dict[str, str] = getattr(args, "names", {})
    return names.get(path, path)


def check_readable(path: str, may_be_pipe: bool = True) -> None:
    """Raise ModelFileError or OSError unless ``path`` is a regular file or, with ``may_be_pipe``, a pipe."""
    if not path:
        raise ModelFileError("The path of a file to read is empty.")
    if not is_path(path):
        raise ModelFileError(f"{shown(path)} is not a path.")
    if Path(path).is_dir():
        raise ModelFileError(f"{path} is a folder, not a file.")
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode) and not (may_be_pipe and stat.S_ISFIFO(mode)):
        raise ModelFileError(f"{path} is not a regular file{' or a pipe' if may_be_pipe else ''}.")


def check_npz(path: str) -> None:
    """Raise ModelFileError or OSError unless ``path`` is a folder or a readable .npz file."""
    if is_path(path) and Path(path).is_dir():
        return
    check_readable(path, may_be_pipe=False)
    if not zipfile.is_zipfile(path):
        raise ModelFileError(f"{path} is not an .npz file.")


def check_writable(path: str) -> None:
    """Raise ModelFileError unless a file can be created or replaced at ``path``. Nothing is created."""
    from ortscan.modelio.destination import destination

    destination(path)


def check_report(path: str | None, *models: str | None) -> None:
    """Check that the file of ``--report`` can be written. Do nothing if ``path`` is None.

    Args:
        path: the file of ``--report``, or None.
        models: the files that the report must not replace. For a model, this includes its external data.

    Raises:
        OptionError: the report would replace one of these files.
        ModelFileError: the file cannot be written.
    """
    if path is None:
        return
    for model in models:
        if model is not None and (Path(model).resolve() == Path(path).resolve() or _is_part_of(path, model)):
            raise OptionError(f"--report {path} would replace the model.")
    check_writable(path)


def check_output(path: str, inputs: str | None) -> None:
    """Raise OptionError if a model at ``path`` would replace the file ``inputs``.

    Raise ModelFileError if no file can be written to ``path``. ``inputs`` is the path of ``--inputs``, or None.
    """
    if inputs is not None and Path(path).exists() and Path(path).samefile(inputs):
        raise OptionError(f"the output {path} would replace the inputs.")
    check_writable(path)


def _is_part_of(path: str, model: str) -> bool:
    """Return True if the file at ``path`` is ``model`` under another name, or external data of ``model``."""
    if not Path(path).is_file() or not Path(model).is_file():
        return False
    if Path(path).samefile(model):
        return True
    from ortscan.modelio.protos import locations_in
    from ortscan.modelio.reading import read

    with suppress(OrtscanError, ValueError, OSError):
        return any(Path(model).parent.joinpath(location).samefile(path) for location in locations_in(read(Path(model))))
    return False


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the output."""
    parser.add_argument(
        "output",
        metavar="OUT",
        nargs="?",
        help="the file to write; a folder, created if needed, if IN is a folder; - for standard output "
        "(--json then prints on stderr)",
    )
    parser.add_argument("-o", "--output", dest="output_option", metavar="OUT", help="another way to pass OUT")
    parser.add_argument("--dry-run", action="store_true", help="do everything except writing the model")
    parser.add_argument(
        "--save-as-external-data", action="store_true", help="write the weights to a separate file next to the model"
    )


def output_of(args: argparse.Namespace) -> str | None:
    """Return the path to write to, or None for --dry-run.

    Raise OptionError if the output is missing or named twice.
    """
    if args.output is not None and args.output_option is not None:
        raise OptionError("The output is named twice: as OUT and with -o.")
    output: str | None = args.output if args.output is not None else args.output_option
    if output is None and not args.dry_run:
        raise OptionError("The output is missing: name OUT, or pass --dry-run to write nothing.")
    return None if args.dry_run else output


if TYPE_CHECKING:
    import onnx

    from ortscan.modelio import LoadedModel


def size_of_source(source: "str | onnx.ModelProto", loaded: "LoadedModel") -> int:
    """Return the size of a model in bytes, including its external data.

    ``source`` is the path of the model, or the model itself if it came from a pipe. ``loaded`` has the files of the external data.
    """
    return (Path(source).stat().st_size if isinstance(source, str) else source.ByteSize()) + sum(file.size for file in loaded.files)


def size_of_model(path: str) -> int:
    """Return the size in bytes of a model file that ortscan wrote, plus its external data."""
    file = Path(path)
    total = file.stat().st_size
    if any(file.parent.glob(f"{escape(file.name)}*.data")):
        from ortscan.modelio.protos import tensors_in
        from ortscan.modelio.reading import read

        entries = (entry for tensor in tensors_in(read(file)) for entry in tensor.external_data)
        total += sum((file.parent / name).stat().st_size for name in {entry.value for entry in entries if entry.key == "location"})
    return total
