"""A runner for ``polygraphy run`` that runs a session of ortscan.

``polygraphy run model.onnx --onnxrt --ortscan`` compares a session of ortscan with onnxruntime. polygraphy finds
``argument_groups`` through the entry point ``polygraphy.run.plugins``.
"""

from typing import Any

from polygraphy.backend.onnxrt import OnnxrtRunner
from polygraphy.tools.args import ModelArgs
from polygraphy.tools.args.base import BaseRunnerArgs
from polygraphy.tools.script import make_invocable

__all__ = ["OrtscanRunnerArgs", "argument_groups", "ortscan_runner"]


class OrtscanRunnerArgs(BaseRunnerArgs):  # type: ignore[misc]
    """ortscan Inference: running inference with a session of ortscan.

    Depends on:

        - ModelArgs
    """

    def get_name_opt_impl(self) -> tuple[str, str]:
        """Return the name of the runner and its command-line flag without dashes."""
        return "ortscan", "ortscan"

    def add_to_script_impl(self, script: Any) -> None:
        """Add the runner to the script that polygraphy generates."""
        script.add_import(imports=["ortscan_runner"], frm="ortscan.hosts.polygraphy")
        script.add_runner(make_invocable("ortscan_runner", self.arg_groups[ModelArgs].path))


def argument_groups() -> list[Any]:
    """Return the groups of command-line arguments that ``polygraphy run`` gets from ortscan."""
    return [OrtscanRunnerArgs()]


def ortscan_runner(path: str) -> Any:
    """Return a runner of polygraphy that runs the optimised model.

    When the runner is activated, it optimises the model at ``path``.
    """
    from ortscan.session.inference_session import InferenceSession

    return OnnxrtRunner(lambda: InferenceSession(path), name="ortscan")
