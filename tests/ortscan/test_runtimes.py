import subprocess
import sys
from pathlib import Path

import onnx
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

import ortscan
from ortscan.modelio import load
from ortscan.ort import oldest, sessions
from ortscan.ort.runtimes import Runtime, known_runtimes, runtime_named
from ortscan.running.crash_risks import may_crash, may_crash_loading
from ortscan.soundness.lacking import lacking
from rewrites.base.errors import OptionError, OrtscanError
from tests.support.runtimes import table_of
from tests.support.text import parsed

MAP = """<ir_version: {ir}, opset_import: ["" : {opset}]>
g (float[T, 2] x) => (float[T, 2] y) {{
  y = Scan <num_scan_inputs = 1, body = b (float[2] xi) => (float[2] yi) {{ yi = Tanh(xi) }}> (x)
}}"""


def model(opset: int = 21, ir: int = 10) -> onnx.ModelProto:
    return parsed(MAP.format(opset=opset, ir=ir))


def versions(proto: onnx.ModelProto) -> tuple[int, int]:
    return proto.opset_import[0].version, proto.ir_version


@pytest.mark.parametrize(("version", "wanted"), [("1.16", (19, 9)), ("1.17.3", (20, 9)), ("1.20", (21, 10)), (None, (21, 10))])
def test_a_result_is_in_an_opset_and_a_format_that_the_runtime_loads(version, wanted):
    assert versions(ortscan.optimize(model(), runtime=version)) == wanted


def test_the_format_alone_is_taken_down_too():
    assert versions(ortscan.optimize(model(20, 10), runtime="1.17")) == (20, 9)
    assert versions(ortscan.migrate(model(20, 10), 20, runtime="1.17")) == (20, 9)
    without_loops = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    assert versions(ortscan.optimize(without_loops, runtime="1.17")) == (18, 9)
    assert "lowered from IR version 10 to 9, the newest of onnxruntime 1.17" in ortscan.explain(model(), runtime="1.17").messages


def test_migrate_goes_no_further_than_the_runtime():
    for opset in ("latest", "auto"):
        assert versions(ortscan.migrate(model(18, 8), opset, runtime="1.17"))[0] == 20
        assert versions(ortscan.migrate(model(21, 10), opset, runtime="1.17")) == (20, 9)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ortscan.optimize(model(), runtime="1.2"),
        lambda: ortscan.optimize(model(), runtime=1.17),  # type: ignore[arg-type]
        lambda: ortscan.optimize(model(), runtime="1.17", opset="keep"),
        lambda: ortscan.optimize(model(), runtime="1.17", opset=21),
        lambda: ortscan.optimize(model(18), runtime="1.17", native=True),
        lambda: ortscan.migrate(model(18), 21, runtime="1.17"),
    ],
)
def test_what_a_runtime_cannot_have_is_one_clear_error(ask):
    with pytest.raises(OptionError, match=r"1[.]17|from '1[.]16'"):
        ask()


def test_a_model_that_cannot_be_taken_down_is_refused():
    new = parsed("""<ir_version: 10, opset_import: ["" : 22]>
        g (float[T, 2] x) => (float[T, 2] y) { y = RoiAlign <mode = "avg"> (x, x, x) }""")
    del new.graph.node[:]
    new.graph.node.append(onnx.helper.make_node("Gelu", ["x"], ["y"]))
    with pytest.raises(OrtscanError):
        ortscan.optimize(new, runtime="1.16")


def test_a_rewrite_for_which_the_runtime_has_no_kernel_is_not_made_and_is_no_defect(monkeypatch, recwarn):
    running_sum = parsed("""<ir_version: 8, opset_import: ["" : 18]>
      g (float[2] s, float[40, 2] x) => (float[40, 2] y) {
        last, y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] e) => (float[2] k, float[2] o) {
          k = Add(h, e)
          o = Identity(k)
        }> (s, x)
      }""")
    assert "CumSum" in {node.op_type for node in ortscan.optimize(running_sum, runtime="1.17").graph.node}
    real = Runtime.has_kernel
    monkeypatch.setattr(Runtime, "has_kernel", lambda self, domain, op, *rest: op != "CumSum" and real(self, domain, op, *rest))
    report = ortscan.explain(running_sum, runtime="1.17", passes=["cumulative"])
    assert "RUNTIME" in [reason.code for reason in report.loops[0].reasons]
    assert "onnxruntime 1.17 has no kernel for CumSum" in " ".join(report.messages)
    assert recwarn.list == []


def lacks(text: str, version: str) -> str | None:
    proto = parsed(text)
    empty = parsed('<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Neg(x) }')
    return lacking(load(proto).model, runtime_named(version), load(empty).model)


def test_kernels_are_told_by_release_version_and_type():
    add = '<ir_version: 8, opset_import: ["" : 18]> g ({0}[2] x) => ({0}[2] y) {{ y = Add(x, x) }}'
    assert "no kernel for Add producing 'y': Add of tensor(int8)" in str(lacks(add.format("int8"), "1.20"))
    assert lacks(add.format("int8"), "1.21") is None
    for version in ("1.16", "1.32"):
        assert lacks(add.format("float"), version) is None
        assert lacks(add.format("float16"), version) is None
    inside = """<ir_version: 8, opset_import: ["" : 18]> g (int8[T, 2] x) => (int8[T, 2] y) {
      y = Scan <num_scan_inputs = 1, body = b (int8[2] xi) => (int8[2] yi) { yi = Add(xi, xi) }> (x) }"""
    assert "Add of tensor(int8)" in str(lacks(inside, "1.20"))


def test_what_runs_as_its_function_or_as_a_constant_needs_no_kernel():
    gelu = '<ir_version: 9, opset_import: ["" : 20]> g (float[2] x) => (float[2] y) { y = Gelu(x) }'
    constant = '<ir_version: 8, opset_import: ["" : 18]> g () => (float[1] y) { y = Constant <value_floats = [1.0]> () }'
    assert lacks(gelu, "1.17") is lacks(constant, "1.16") is None


def test_a_kernel_without_an_end_is_for_its_first_version_alone():
    assert runtime_named("1.20").has_kernel("", "Acos", 7, {"T": "tensor(float)"})
    assert not runtime_named("1.20").has_kernel("", "Acos", 22, {"T": "tensor(float)"})
    assert runtime_named("1.21").has_kernel("", "Acos", 22, {"T": "tensor(float)"})


def test_the_table_says_of_the_installed_onnxruntime_what_it_says_itself():
    version = onnxruntime.__version__.rpartition(".")[0]
    version = version if version in known_runtimes() else list(known_runtimes())[-1]
    runtime = runtime_named(version)
    kernels = [kernel for kernel in get_all_opkernel_def() if kernel.provider == "CPUExecutionProvider"]
    known = sum(
        runtime.has_kernel(
            kernel.domain,
            kernel.op_name,
            kernel.version_range[0],
            {name: types[0] for name, types in kernel.type_constraints.items()},
        )
        for kernel in kernels
    )
    assert known > 0.9 * len(kernels)
    assert known == len(kernels) or version != onnxruntime.__version__.rpartition(".")[0]


def test_the_table_has_of_each_kernel_the_releases_that_have_it():
    one, other = ["", "A", 1, 2**31 - 1, [["T", ["tensor(float)"]]]], ["", "A", 1, 5, [["T", ["tensor(float)"]]]]
    said = [("1.1.0", {"opset": 1, "ml": 1, "ir": 2, "kernels": each}) for each in ([one], [one, other], [other], [one])]
    table = table_of(said)
    assert table["kernels"][":A"] == [[1, None, {"T": 0}, 0, 1], [1, None, {"T": 0}, 3, 3], [1, 5, {"T": 0}, 1, 2]]


@pytest.fixture
def release(monkeypatch):
    def say(version):
        monkeypatch.setattr(onnxruntime, "__version__", version)
        oldest.is_old.cache_clear()

    yield say
    monkeypatch.undo()
    oldest.is_old.cache_clear()


def test_an_installed_onnxruntime_that_is_too_old_is_warned_of_and_runs_in_processes_of_its_own(release):
    model = parsed('<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Tanh (x) }')
    release("1.24.4")
    with pytest.warns(
        ortscan.OrtscanWarning, match="onnxruntime 1.24.4 is installed, but ortscan is tested only with 1.31 and later"
    ):
        oldest.warn_of_old.__wrapped__()
    assert may_crash(model, None)
    assert may_crash_loading(model)
    release("1.31.0+cu13")
    oldest.warn_of_old.__wrapped__()
    assert not may_crash_loading(model)


def test_the_oldest_release_without_a_warning_is_the_one_that_the_package_requires():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    version = ".".join(map(str, oldest.OLDEST))
    assert [f"onnxruntime{build}>={version}; python_version >= '3.11'" in project for build in ("", "-gpu")] == [True, True]


def test_a_question_to_an_old_release_is_warned_of_too(release):
    release("1.24.4")
    oldest.warn_of_old.cache_clear()
    sessions._has_kernel.cache_clear()
    with pytest.warns(ortscan.OrtscanWarning, match=r"^onnxruntime 1\.24\.4 is installed"):
        assert sessions.has_kernel(model(18, 8))
    oldest.warn_of_old.cache_clear()


WITHOUT = """
import sys
sys.modules["onnxruntime"] = None
import onnx, ortscan
from ortscan.__main__ import main
for ask in (lambda: ortscan.optimize(sys.argv[1]), lambda: ortscan.verify(sys.argv[1], sys.argv[1]), lambda: ortscan.InferenceSession):
    try:
        ask()
    except ortscan.OrtscanError as error:
        print(error)
print(main(["--version"]), main(["explain", "RUNTIME"]), main(["optimize", sys.argv[1], "--dry-run"]))
"""


def test_without_onnxruntime_one_sentence_says_so(tmp_path):
    onnx.save(model(18, 8), tmp_path / "m.onnx")
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, tmp_path / "m.onnx"], capture_output=True, text=True, check=True, timeout=120
    )
    sentence = "ortscan needs onnxruntime, and no build of it is installed: "
    assert ran.stdout.count(sentence) == 3
    assert ran.stderr.startswith(f"ortscan: error: {sentence}")
    assert ran.stderr.count("\n") == 1
    assert "no onnxruntime" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "0 0 1"
