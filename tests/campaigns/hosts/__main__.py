"""Install tools of others beside ortscan, and run each by its own command: ``python -m tests.campaigns hosts [--only NAME]``.

Each tool gets a fresh environment. ortscan is installed there from a clone of what is committed, because a build writes into its folder.
``low_precision`` writes its outcomes to ``tests/data``, and the table in the document that shows them.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

from tests.support.corpus import big_corpus
from tests.support.low_precision_table import FILE
from tests.support.tables import write_tables

__all__ = ["main"]

ROOT = Path(__file__).parents[3]
FLOATS = ROOT / "examples" / "mlp_per_step.onnx"


def python(environment: Path, code: str) -> None:
    """Run ``code`` in the environment, in its folder."""
    subprocess.run([environment / "bin" / "python", "-W", "ignore", "-c", textwrap.dedent(code)], cwd=environment, check=True)


def torch(environment: Path) -> None:
    """Optimise an exported program with one line, and run it by torch's own call."""
    python(
        environment,
        """
        import torch, ortscan
        from torch._higher_order_ops import scan
        class Sum(torch.nn.Module):
            def forward(self, x, h0):
                return scan(lambda h, r: ((h + r), (h + r).clone()), h0, x)
        example = torch.randn(6, 2, 4), torch.randn(2, 4)
        program = torch.onnx.export(Sum().eval(), example, dynamo=True, dynamic_shapes=({0: "T"}, {}), verbose=False)
        after = ortscan.optimize(program)
        assert isinstance(after, type(program))
        assert "Scan" not in [node.op_type for node in after.model.graph.all_nodes()]
        for left, right in zip(program(*example), after(*example)):
            torch.testing.assert_close(left, right)
        """,
    )


def onnx_ir(environment: Path) -> None:
    """Remove loops in a Sequential of onnx_ir, with a pass of onnxscript after it."""
    python(
        environment,
        f"""
        import onnx_ir, onnxscript.optimizer, ortscan
        model = onnx_ir.load({str(FLOATS)!r})
        result = onnx_ir.passes.Sequential(ortscan.passes.RemoveLoops(), onnx_ir.passes.common.RemoveUnusedNodesPass())(model)
        onnxscript.optimizer.optimize_ir(result.model)
        assert result.modified
        assert not {{"Scan", "Loop"}} & {{node.op_type for node in result.model.graph.all_nodes()}}
        """,
    )


def polygraphy(environment: Path) -> None:
    """Compare a session of ortscan with onnxruntime by ``polygraphy run``."""
    subprocess.run([environment / "bin" / "polygraphy", "run", FLOATS, "--onnxrt", "--ortscan"], cwd=environment, check=True)


def olive(environment: Path) -> None:
    """Optimise by ``olive run``, with a pass of Olive itself after it."""
    python(
        environment,
        f"""
        import json
        from ortscan.hosts.olive import package_config
        json.dump(package_config(), open("olive.json", "w"))
        model = {{"type": "ONNXModel", "model_path": {str(FLOATS)!r}}}
        passes = {{"loops": {{"type": "OrtscanOptimize", "options": {{"target": "cpu"}}}}, "int8": {{"type": "OnnxDynamicQuantization"}}}}
        run = {{"input_model": model, "passes": passes, "output_dir": "out", "cache_dir": "cache", "no_artifacts": True}}
        json.dump(run, open("run.json", "w"))
        """,
    )
    command = [environment / "bin" / "olive", "run", "--config", "run.json", "--package-config", "olive.json"]
    subprocess.run(command, cwd=environment, check=True)
    python(
        environment,
        """
        import onnx, pathlib
        (path,) = pathlib.Path("out").rglob("*.onnx")
        operators = {node.op_type for node in onnx.load(path).graph.node}
        assert "MatMulInteger" in operators and not operators & {"Scan", "Loop"}, operators
        """,
    )


def low_precision(environment: Path) -> None:
    """Quantise models of each exporter and convert them to float16, before and after ``ortscan.optimize``."""
    folder, outcomes = big_corpus(), environment / "low_precision.json"
    if folder is None:
        sys.exit("low_precision needs the larger corpus: set ORTSCAN_CORPUS to its folder.")
    code = f"from tests.campaigns.hosts.low_precision import write; write({str(folder)!r}, {str(outcomes)!r})"
    subprocess.run([environment / "bin" / "python", "-W", "ignore", "-c", code], cwd=environment / "sources", check=True)
    shutil.copy(outcomes, FILE)
    write_tables()


HOSTS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "torch": (torch, ["torch", "onnxscript"]),
    "onnx_ir": (onnx_ir, ["onnxscript"]),
    "polygraphy": (polygraphy, ["polygraphy"]),
    "olive": (olive, ["olive-ai", "requests"]),
    "low_precision": (low_precision, ["onnxconverter-common", "sympy"]),
}
"""For each tool: the function that runs it, and the packages to install."""


def main() -> None:
    """Run the tools and print a line for each. Exit with 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns hosts")
    parser.add_argument("--only", choices=HOSTS, help="run only this tool")
    chosen = parser.parse_args().only
    failed = []
    for name, (run, packages) in HOSTS.items():
        if chosen not in (None, name):
            continue
        with tempfile.TemporaryDirectory(prefix=f"ortscan-{name}-") as folder:
            environment, sources = Path(folder), Path(folder) / "sources"
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            subprocess.run(["git", "clone", "--quiet", ROOT, sources], check=True)
            install = [environment / "bin" / "pip", "install", "--quiet", *packages, f"{sources}[cpu]"]
            try:
                subprocess.run(install, check=True)
                run(environment)
            except subprocess.CalledProcessError as error:
                failed.append(name)
                print(f"{name}: failed with {error.returncode}", flush=True)
            else:
                print(f"{name}: ok", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
