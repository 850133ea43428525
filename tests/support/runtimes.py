"""Generate the table of the features of each onnxruntime: ``python -m tests.support.runtimes FOLDER``.

Each wheel is installed in its own environment in FOLDER, which reports its CPU kernels and the opsets and IR versions that it
loads. The result is written to ``ortscan/ort/runtimes.json``.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "ortscan" / "ort" / "runtimes.json"
RELEASES = [
    *("1.16.3", "1.17.3", "1.18.1", "1.19.2", "1.20.1", "1.21.1", "1.22.1", "1.23.2", "1.24.4", "1.25.1", "1.26.0", "1.27.0"),
    *("1.28.0", "1.29.0", "1.30.0", "1.31.1", "1.32.0"),
]
"""The last of each minor release."""

_NEWEST_ML = max(schema.since_version for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == "ai.onnx.ml")
_OLDEST = {"opset": 8, "ml": 1, "ir": 4}

ASKED = """
import json, sys
from pathlib import Path
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
onnxruntime.set_default_logger_severity(4)
def loads(path):
    try:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True
folder = Path(sys.argv[1])
newest = {kind: max(int(path.stem[len(kind):]) for path in folder.glob(kind + "*.onnx") if loads(path)) for kind in ("opset", "ml", "ir")}
kernels = [
    (kernel.domain, kernel.op_name, *kernel.version_range, sorted((name, sorted(types)) for name, types in kernel.type_constraints.items()))
    for kernel in get_all_opkernel_def() if kernel.provider == "CPUExecutionProvider"
]
print(json.dumps({**newest, "kernels": kernels}))
"""


def write_probes(folder: Path) -> None:
    """Write models of one node for every opset and every IR version."""
    folder.mkdir(parents=True, exist_ok=True)
    info = onnx.helper.make_tensor_value_info
    newest = {"opset": onnx.defs.onnx_opset_version(), "ml": _NEWEST_ML, "ir": int(onnx.IR_VERSION)}
    for kind, most in newest.items():
        for number in range(_OLDEST[kind], most + 1):
            node = onnx.helper.make_node("Shape", ["a"], ["b"])
            graph = onnx.helper.make_graph([node], "g", [info("a", 1, [2])], [info("b", 7, [1])])
            opsets = {"": number if kind == "opset" else 13, "ai.onnx.ml": number if kind == "ml" else 1}
            imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
            model = onnx.helper.make_model(graph, ir_version=number if kind == "ir" else 8, opset_imports=imports)
            onnx.save(model, folder / f"{kind}{number}.onnx")


def python_of(release: str, folder: Path) -> Path:
    """Return the interpreter of the environment of a release, which is created if necessary."""
    place = folder / release
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        numpy = "numpy<2" if release < "1.19" else "numpy"
        subprocess.run([python, "-m", "pip", "install", "-q", f"onnxruntime=={release}", numpy], check=True)
    return python


def asked(release: str, folder: Path) -> dict[str, Any]:
    """Return the report of a release."""
    said = subprocess.run([python_of(release, folder), "-c", ASKED, folder / "probes"], check=True, capture_output=True, text=True)
    return dict(json.loads(said.stdout))


def table_of(said: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the table: for each kernel the indices of the first and last release of each span that has it."""
    releases: list[dict[str, Any]] = []
    seen: dict[str, list[list[int]]] = {}
    for index, (release, facts) in enumerate(said):
        releases.append(
            {"version": release.rpartition(".")[0], "opset": facts["opset"], "ml": facts["ml"], "ir_version": facts["ir"]}
        )
        for kernel in sorted({json.dumps(kernel) for kernel in facts["kernels"]}):
            spans = seen.setdefault(kernel, [])
            if spans and spans[-1][1] == index - 1:
                spans[-1][1] = index
            else:
                spans.append([index, index])
    names = sorted({name for kernel in seen for _, types in json.loads(kernel)[4] for name in types})
    number = {name: index for index, name in enumerate(names)}
    lists: dict[str, int] = {}
    kernels: dict[str, list[Any]] = {}
    for kernel, spans in sorted(seen.items()):
        domain, op_type, first, last, constraints = json.loads(kernel)
        types = {
            variable: lists.setdefault(json.dumps([number[name] for name in taken]), len(lists)) for variable, taken in constraints
        }
        for since, until in spans:
            kernels.setdefault(f"{domain}:{op_type}", []).append([first, last if last < 1 << 30 else None, types, since, until])
    return {"releases": releases, "types": names, "lists": [json.loads(each) for each in lists], "kernels": kernels}


def written(table: dict[str, Any]) -> str:
    """Return the table as text with a line for each operator."""
    lines = [f'"{name}": {json.dumps(table[name], separators=(",", ":"))}' for name in ("releases", "types", "lists")]
    rows = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in sorted(table["kernels"].items())
    )
    return "{\n" + ",\n".join(lines) + ',\n"kernels": {\n' + rows + "\n}}\n"


def main() -> None:
    """Ask all releases, and write the table."""
    folder = Path(sys.argv[1]).resolve()
    write_probes(folder / "probes")
    TABLE.write_text(written(table_of((release, asked(release, folder)) for release in RELEASES)), encoding="utf-8")


if __name__ == "__main__":
    main()
