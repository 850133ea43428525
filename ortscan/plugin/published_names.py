"""The functions with which packages of execution providers say what onnxruntime must load.

    onnxruntime.register_execution_provider_library(ortscan.get_ep_name(), ortscan.get_library_path())

Source: the packages onnxruntime-ep-webgpu 0.4.0 and onnxruntime-ep-openvino 1.8.1, which have the same three functions.
"""

from ortscan.edge.border import wrap_errors
from ortscan.errors import OptionError
from ortscan.native.library import library_path, why_not
from ortscan.plugin.callback import answer_plan_requests
from ortscan.plugin.register import PROVIDER

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


@wrap_errors
def get_library_path() -> str:
    """Return the path of ortscan's library, for ``onnxruntime.register_execution_provider_library``.

    In this process, the registered provider then also compiles loops of models that ortscan has not rewritten.

    Raises:
        OptionError: this installation has no library. The message says why.
    """
    path = library_path()
    if path is None:
        raise OptionError(f"get_library_path needs ortscan's library: {why_not()}")
    answer_plan_requests(path)
    return str(path)


def get_ep_name() -> str:
    """Return the name of ortscan's execution provider."""
    return PROVIDER


def get_ep_names() -> list[str]:
    """Return the names of all execution providers in ortscan's library. There is one."""
    return [PROVIDER]
