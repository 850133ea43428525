"""A C program that loads only onnxruntime and the library gets the same results as Python."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.native import building
from tests.rewrites.harness import scan
from tests.support.native_plans import library
from tests.support.text import model_from_text

SOURCE = Path(__file__).parents[2] / "campaigns" / "native" / "run_model.c"
RUNTIME = sorted((Path(ort.__file__).parent / "capi").glob("libonnxruntime.so.*"))
CELL = scan(
    "a = MatMul (h, W) b = Add (a, x) c = Mul (b, b) h1 = Tanh (c) y = Neg (h1)",
    inputs="float[1,5] h, float[1,5] x",
    outputs="float[1,5] h1, float[1,5] y",
    given="float[1,5] s, float[9,1,5] xs, float[5,5] W",
    results="float[1,5] z, float[9,1,5] ys",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = building.compiler() or ["cc"]
    if shutil.which(command[0]) is None or sys.platform == "win32" or not RUNTIME:
        pytest.skip("no compiler, or no shared object of onnxruntime")
    made = tmp_path_factory.mktemp("c") / "run_model"
    include = f"-I{Path(building.__file__).parent / 'c'}"
    subprocess.run([*command, "-std=gnu11", "-O1", "-w", include, str(SOURCE), "-ldl", "-lpthread", "-o", str(made)], check=True)
    return made


def ran(program: Path, used: str, model: onnx.ModelProto, *more: str) -> subprocess.CompletedProcess[str]:
    file = program.parent / "model.onnx"
    onnx.save(model, file)
    command = [str(program), str(RUNTIME[-1]), used, str(file), *(more or ["1"])]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def by_python(model: onnx.ModelProto) -> list[np.ndarray]:
    feeds = {}
    for index, given in enumerate(model.graph.input):
        shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
        i = np.arange(np.prod(shape, dtype=int))
        feeds[given.name] = (((7 * i + 3 * index) % 16) / 16 - 0.5).astype(np.float32).reshape(shape)
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(library()))
    return list(ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds))


def test_a_compiled_loop_runs_in_many_threads_without_python(program: Path) -> None:
    model = ortscan.optimize(model_from_text(CELL, 18), native=True, verify=False)
    assert "Scan1" in {node.op_type for node in model.graph.node}
    done = ran(program, str(library()), model, "50", "4")
    assert done.returncode == 0, done.stderr
    lines = [np.array(line.split(), np.float32) for line in done.stdout.splitlines()]
    for got, wanted in zip(lines, by_python(model), strict=True):
        np.testing.assert_array_equal(got, wanted.reshape(-1))


def test_the_same_file_runs_without_the_library(program: Path) -> None:
    model = ortscan.optimize(model_from_text(CELL, 18), native=True, verify=False)
    done = ran(program, "", model)
    assert done.returncode == 0, done.stderr
    lines = [np.array(line.split(), np.float32) for line in done.stdout.splitlines()]
    for got, wanted in zip(lines, by_python(model), strict=True):
        np.testing.assert_allclose(got, wanted.reshape(-1), rtol=1e-5, atol=1e-6)


def test_invalid_plan_is_a_clear_error(program: Path) -> None:
    model = ortscan.optimize(model_from_text(CELL, 18), native=True, verify=False)
    next(node for node in model.graph.node if node.op_type == "Scan1").attribute[0].s = b"AAAA"
    done = ran(program, str(library()), model)
    assert done.returncode == 1
    assert "the session: " in done.stderr
    assert "plan" in done.stderr
