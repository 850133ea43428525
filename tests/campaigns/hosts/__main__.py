"""Install tools of others beside ortscan, and run each by its own command: ``python -m tests.campaigns hosts [--only NAME]``.

Each tool gets a fresh environment. ortscan is installed there from a clone of what is committed, because a build writes into its folder.
It is installed without the native library, which takes long to build and is not needed.
The commands are those of the page on other tools. ``low_precision`` writes its outcomes to ``tests/data``, and the table in the document
that shows them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

from tests.support.corpus import big_corpus, shipped_corpus
from tests.support.low_precision_table import FILE
from tests.support.page_code import code_in
from tests.support.tables import write_tables

__all__ = ["main"]

ROOT = Path(__file__).parents[3]
PAGE = "how-to/pipelines.md"
MODEL = shipped_corpus() / "jax2onnx__scan_map.onnx"
"""A model that jax2onnx exported: a loop of two products and an activation."""


def python(environment: Path, code: str) -> None:
    """Run ``code`` in the environment, in its folder."""
    subprocess.run([environment / "bin" / "python", "-W", "ignore", "-c", textwrap.dedent(code)], cwd=environment, check=True)


def shell(environment: Path, code: str) -> None:
    """Run shell commands in the active environment, in its folder."""
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", code], cwd=environment, check=True, env={**os.environ, "PATH": path})


_SCAN_MODULE = """
import torch
from torch._higher_order_ops import scan
class Sum(torch.nn.Module):
    def forward(self, x, h0):
        return scan(lambda h, r: ((h + r), (h + r).clone()), h0, x)
module, inputs = Sum().eval(), (torch.randn(6, 2, 4), torch.randn(2, 4))
"""
_WHILE_MODULE = """
import torch
from torch._higher_order_ops import while_loop
class Doubled(torch.nn.Module):
    def forward(self, x):
        return while_loop(lambda n, v: n < 5, lambda n, v: (n + 1, v * 2), (torch.tensor(0), x))
module, inputs = Doubled().eval(), (torch.randn(2, 4),)
"""
_SAME_RESULTS = """
assert not {"Scan", "Loop"} & {node.op_type for node in program.model.graph.all_nodes()}
for left, right in zip(module(*inputs), program(*inputs)):
    torch.testing.assert_close(left, right)
import onnx
onnx.checker.check_model("out.onnx")
"""


def torch(environment: Path) -> None:
    """Optimise exported programs with one line, and run them by torch's own call."""
    (code,) = code_in(PAGE, "python", "A model that torch exported")
    for module in (_SCAN_MODULE, _WHILE_MODULE):
        python(environment, module + code + _SAME_RESULTS)


def onnx_ir(environment: Path) -> None:
    """Remove loops in a Sequential of onnx_ir, then run the optimiser of onnxscript."""
    (code,) = code_in(PAGE, "python", "onnx_ir and onnxscript")
    python(
        environment,
        code
        + textwrap.dedent("""
        import onnxscript.optimizer
        onnxscript.optimizer.optimize_ir(result.model)
        assert result.modified
        assert not {"Scan", "Loop"} & {node.op_type for node in result.model.graph.all_nodes()}
        """),
    )


def polygraphy(environment: Path) -> None:
    """Compare a session of ortscan with onnxruntime by ``polygraphy run``."""
    (commands,) = code_in(PAGE, "sh", "polygraphy")
    shell(environment, commands)


def olive(environment: Path) -> None:
    """Optimise by ``olive run``, with a pass of Olive itself after it."""
    (run,), (commands,) = code_in(PAGE, "json", "Olive"), code_in(PAGE, "sh", "Olive")
    (environment / "run.json").write_text(run, encoding="utf-8")
    shell(environment, commands)
    python(
        environment,
        """
        import onnx, pathlib
        (path,) = pathlib.Path("out").rglob("*.onnx")
        operators = [node.op_type for node in onnx.load(path).graph.node]
        assert operators.count("MatMulInteger") == 2 and not {*operators} & {"Scan", "Loop"}, operators
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
            shutil.copy(MODEL, environment / "model.onnx")
            install = [environment / "bin" / "pip", "install", "--quiet", *packages, f"{sources}[cpu]"]
            try:
                subprocess.run(install, check=True, env={**os.environ, "ORTSCAN_BUILD_NATIVE": "0"})
                run(environment)
            except subprocess.CalledProcessError as error:
                failed.append(name)
                print(f"{name}: failed with {error.returncode}", flush=True)
            else:
                print(f"{name}: ok", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
