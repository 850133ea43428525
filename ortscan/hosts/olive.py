"""A pass for Olive, ``OrtscanOptimize``.

``olive run --config run.json --package-config olive.json`` finds the pass if ``olive.json`` names this module.
``python -m ortscan.hosts.olive olive.json`` writes this file. It lists all passes of the installed Olive, and ``OrtscanOptimize``.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from olive.hardware.accelerator import AcceleratorSpec
from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.package_config import OlivePackageConfig
from olive.passes import Pass
from olive.passes.pass_config import BasePassConfig, PassConfigParam

__all__ = ["OrtscanOptimize", "main", "package_config"]

_NAME = "OrtscanOptimize"
_MODULE = "ortscan.hosts.olive"  # ``__name__`` is ``__main__`` if the module runs as a script


class OrtscanOptimize(Pass):  # type: ignore[misc]
    """Takes Scan and Loop out of an ONNX model, as ``ortscan.optimize`` does.

    The setting ``options`` holds the options of ``optimize``.
    """

    @classmethod
    def _default_config(cls, accelerator_spec: AcceleratorSpec) -> dict[str, Any]:
        options = PassConfigParam(
            type_=dict, default_value={}, description="Options of ortscan.optimize, such as {'target': 'cuda'}."
        )
        return {"options": options}

    def _run_for_config(self, model: ONNXModelHandler, config: type[BasePassConfig], output_model_path: str) -> ONNXModelHandler:
        """Write the optimised model to ``output_model_path``, and return it. Olive calls this method."""
        from ortscan.api import optimize

        output = resolve_onnx_path(output_model_path, Path(model.model_path).name)
        optimize(model.model_path, output=output, **(config.options or {}))
        return ONNXModelHandler(output)


def package_config() -> dict[str, Any]:
    """Return Olive's own package configuration with the pass ``OrtscanOptimize`` added.

    The result is a dict that can be written as JSON.
    """
    config: dict[str, Any] = json.loads(Path(OlivePackageConfig.get_default_config_path()).read_text(encoding="utf-8"))
    everything = {"supported_providers": ["*"], "supported_accelerators": ["*"], "supported_precisions": ["*"]}
    config["passes"][_NAME] = {"module_path": f"{_MODULE}.{_NAME}", **everything}
    return config


def main() -> None:
    """Write the package configuration to the file that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m ortscan.hosts.olive", description="Write a package configuration for olive run --package-config."
    )
    parser.add_argument("file", type=Path, help="the JSON file to write")
    file = parser.parse_args().file
    try:
        file.write_text(json.dumps(package_config(), indent=1), encoding="utf-8")
    except OSError as error:
        parser.error(f"{file} cannot be written: {error.strerror or error}.")


if __name__ == "__main__":
    main()
