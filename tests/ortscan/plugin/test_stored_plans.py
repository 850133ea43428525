"""Plans in a model's metadata: sessions find them without a planner, and other metadata does no harm."""

import base64
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from ortscan.__main__ import main
from ortscan.errors import OptionError
from ortscan.native import library as installed
from ortscan.native.building import compiler
from ortscan.plugin import callback
from ortscan.plugin.storing import KEY, store_plans
from rewrites.base.errors import ModelFileError
from tests.support.native_plans import library
from tests.support.plugin_sessions import SCAN, Array, asked_options, feeds_of_scan, taken
from tests.support.text import model_from_text

BRANCH = SCAN[SCAN.index("hT, ys") : SCAN.rindex("}")]
MODELS = {
    "a Scan": SCAN,
    "what onnxruntime folds": SCAN.replace(
        "a = Mul (s, x)", "k = Constant <value_float = 2.0> () j = Mul (k, k) i = Identity (s) l = Mul (i, j) a = Mul (l, x)"
    ),
    "a Loop over rows": """g (float[2,8] h, float[5,2,8] xs) => (float[2,8] hT, float[5,2,8] ys) <int64 n = {5}> {
      hT, ys = Loop <body = b (int64 i, bool c, float[2,8] s) => (bool d, float[2,8] s1, float[2,8] y) {
        d = Identity (c) x = Gather <axis = 0> (xs, i) s1 = Sub (x, s) y = Neg (s1) }> (n, "", h) }""",
    "a Scan in a branch": f"""g (float[2,8] h, float[T,2,8] xs) => (float[T,2,8] zs) {{
      zero = Constant <value_float = 0.0> () sum = ReduceSumSquare <keepdims = 0> (h) which = Greater (sum, zero)
      zs = If <then_branch = t () => (float[T,2,8] ys) {{ {BRANCH} }}, else_branch = e () => (float[T,2,8] us) {{ us = Neg (xs) }}> (which) }}""",
}
LEVELS = {name: level for name, level in vars(ort.GraphOptimizationLevel).items() if name.startswith("ORT_")}


@pytest.fixture
def nobody_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the planner by one without plans. Return the list of the loops that it is asked about."""
    asked: list[str] = []
    monkeypatch.setattr(callback, "planned", lambda model, title: asked.append(title))
    return asked


def stored(text: str, folder: Path) -> Path:
    """Write the model, then write it with its plans. Return the path of the second."""
    (folder / "bare.onnx").write_bytes(model_from_text(text, 18).SerializeToString())
    store_plans(folder / "bare.onnx", folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("what", MODELS)
def test_sessions_of_all_levels_find_the_plans(what: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = stored(MODELS[what], tmp_path)
    asked = request.getfixturevalue("nobody_plans")
    feeds = feeds_of_scan()
    wanted = ort.InferenceSession(tmp_path / "bare.onnx").run(None, feeds)
    for level in LEVELS.values():
        options = asked_options()
        options.graph_optimization_level = level
        for left, right in zip(ort.InferenceSession(path, options).run(None, feeds), wanted, strict=True):
            np.testing.assert_array_equal(left, right)
    assert taken(onnx.load(path), feeds, tmp_path) == 1
    assert asked == []


def test_the_rest_of_the_file_is_as_it_was(tmp_path: Path) -> None:
    path = stored(SCAN, tmp_path)
    bare, with_plans = (tmp_path / "bare.onnx").read_bytes(), path.read_bytes()
    assert with_plans.startswith(bare)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {prop.key[: len(KEY)] for prop in model.metadata_props} == {KEY}
    store_plans(path, path)
    assert path.read_bytes() == with_plans
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bare.onnx", "model.onnx"]


def test_other_metadata_stays(tmp_path: Path) -> None:
    model = model_from_text(SCAN, 18)
    helper.set_model_props(model, {"author": "nobody", KEY + "0" * 64: "old"})
    model.doc_string = "after"
    onnx.save(model, tmp_path / "model.onnx")
    store_plans(tmp_path / "model.onnx", tmp_path / "model.onnx")
    made = onnx.load(tmp_path / "model.onnx")
    assert [prop.value for prop in made.metadata_props if not prop.key.startswith(KEY)] == ["nobody"]
    assert KEY + "0" * 64 not in {prop.key for prop in made.metadata_props}
    assert (made.doc_string, made.graph) == ("after", model.graph)


DAMAGE: dict[str, Callable[[bytes], str]] = {
    "nothing": lambda answer: "",
    "no base64": lambda answer: "this is no plan",
    "noise": lambda answer: base64.b64encode(np.random.default_rng(0).bytes(5000)).decode(),
    "a part": lambda answer: base64.b64encode(answer[: len(answer) // 2]).decode(),
    "a part of a word": lambda answer: base64.b64encode(answer[:-1]).decode(),
    "another version": lambda answer: base64.b64encode(b"PLA9" + answer[4:]).decode(),
    "very many inputs": lambda answer: base64.b64encode(answer[:8] + struct.pack("<i", 2**31 - 1) + answer[12:]).decode(),
    "a model in place of a plan": lambda answer: base64.b64encode(answer[:4] + struct.pack("<i", 1) + answer[8:]).decode(),
    "a long text": lambda answer: "A" * 4_000_000,
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_plans_leave_the_loop_as_it_is(what: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model = onnx.load(stored(SCAN, tmp_path))
    request.getfixturevalue("nobody_plans")
    for prop in model.metadata_props:
        prop.value = DAMAGE[what](base64.b64decode(prop.value))
    options = asked_options()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    for left, right in zip(
        session.run(None, feeds_of_scan()), ort.InferenceSession(tmp_path / "bare.onnx").run(None, feeds_of_scan()), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_damaged_words_do_no_harm(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model, random = onnx.load(stored(SCAN, tmp_path)), np.random.default_rng(0)
    request.getfixturevalue("nobody_plans")
    options, prop = asked_options(), model.metadata_props[0]
    del model.metadata_props[1:]
    options.log_severity_level = 4
    answer = np.frombuffer(base64.b64decode(prop.value), np.int32)
    for _ in range(60):
        words = answer.copy()
        words[random.integers(len(words))] = random.choice([-1, 0, 1, 2, 7, 1 << 20, (1 << 31) - 1])
        model.metadata_props[0].value = base64.b64encode(words.tobytes()).decode()
        session = ort.InferenceSession(model.SerializeToString(), options)
        try:
            session.run(None, feeds_of_scan())
        except ort.capi.onnxruntime_pybind11_state.InvalidArgument:
            continue


def test_a_model_with_data_in_other_files_gets_its_plans_beside_them(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model = model_from_text(SCAN.replace("x)\n", "x)").replace("c = Tanh (a)", "b = Mul (a, w) c = Tanh (b)"), 18, check=False)
    model.graph.initializer.append(numpy_helper.from_array(np.linspace(0, 1, 8, dtype=np.float32), "w"))
    onnx.save(model, tmp_path / "bare.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ModelFileError, match="must be in the same folder"):
        store_plans(tmp_path / "bare.onnx", tmp_path / "elsewhere" / "model.onnx")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    store_plans(tmp_path / "bare.onnx", tmp_path / "model.onnx")
    asked = request.getfixturevalue("nobody_plans")
    one, other = (
        ort.InferenceSession(tmp_path / f"{name}.onnx", asked_options()).run(None, feeds_of_scan()) for name in ("bare", "model")
    )
    np.testing.assert_array_equal(one[1], other[1])
    assert asked
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [("model.onnx", b"", ModelFileError), ("model.onnx", b"no model", ModelFileError), ("model.onnxtxt", b"", ModelFileError)],
)
def test_what_is_no_model_is_one_error(name: str, content: bytes, error: type[Exception], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error):
        store_plans(tmp_path / name, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


def test_without_a_library_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare.onnx").write_bytes(model_from_text(SCAN, 18).SerializeToString())
    monkeypatch.setattr(installed, "_built", lambda: None)
    with pytest.raises(OptionError, match="library"):
        store_plans(tmp_path / "bare.onnx", tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_the_command_line_says_what_became_of_each_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        SCAN.replace("hT, ys = Scan", "[first] hT, us = Scan").rstrip("} \n")
        + """
      hU, ys = [second] Scan <num_scan_inputs = 1, body = b (float[B,8] r, float[B,8] z) => (float[B,8] r1, float[B,8] v) { r1 = Asinh (r) v = Mul (r, z) }> (hT, us)
    }"""
    )
    (tmp_path / "in.onnx").write_bytes(model_from_text(text.replace("[second] Scan", "Scan"), 18).SerializeToString())
    assert main(["compile", str(tmp_path / "in.onnx"), "-o", str(tmp_path / "out.onnx")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Scan 'first': compiled"
    assert lines[1] == "a Scan: no plan"
    assert lines[2].endswith("plans for 1 of 2 loops")


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that runs models through onnxruntime's C interface."""
    command, folder = compiler() or ["cc"], tmp_path_factory.mktemp("runner")
    if shutil.which(command[0]) is None:
        pytest.skip("no compiler")
    (shared,) = (Path(ort.__file__).parent / "capi").glob("libonnxruntime.so.*.*")
    program = folder / "plan_runner"
    source = Path(__file__).parents[2] / "support" / "plan_runner.c"
    (folder / "libonnxruntime.so.1").symlink_to(shared)
    flags = ["-O1", "-Wno-incompatible-pointer-types", f"-Wl,-rpath,{folder}"]
    subprocess.run([*command, *flags, str(source), str(folder / "libonnxruntime.so.1"), "-o", str(program)], check=True)
    return program


def run_in_c(runner: Path, model: Path, feeds: Mapping[str, Array], runs: int, *more: str) -> tuple[bytes, float]:
    """Return the outputs of the model in the C program, and its shortest time."""
    inputs, outputs = model.parent / "inputs", model.parent / "outputs"
    inputs.write_bytes(
        b"".join(
            struct.pack(f"<Q{len(name)}s{1 + array.ndim}Q", len(name), name.encode(), array.ndim, *array.shape) + array.tobytes()
            for name, array in feeds.items()
        )
    )
    done = subprocess.run(
        [runner, model, inputs, outputs, str(runs), *more], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return outputs.read_bytes(), float(done.stdout)


def test_a_program_in_c_runs_the_plans(runner: Path, tmp_path: Path) -> None:
    path, feeds = stored(SCAN, tmp_path), feeds_of_scan(1000, 1)
    wanted, plain = run_in_c(runner, tmp_path / "bare.onnx", feeds, 20)
    unplanned, _ = run_in_c(runner, tmp_path / "bare.onnx", feeds, 1, str(library()))
    found, planned = run_in_c(runner, path, feeds, 20, str(library()))
    assert found == wanted == unplanned
    assert planned < plain / 2
