import argparse
import io
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

import ortscan
from ortscan import api
from ortscan.__main__ import main
from ortscan.cli import streams
from ortscan.cli.invocation import ExitCode
from ortscan.cli.writing import result_lines
from ortscan.modelio import load
from ortscan.option_texts import read_byte_size, read_count, read_name_list, read_shape, read_tolerance
from ortscan.report.codes import CODES
from ortscan.targets import TARGETS
from rewrites.base.report import RewriteReport
from tests.support.small_models import MAP, PLAIN, RECURRENCE
from tests.support.text import parsed


@pytest.fixture
def save(tmp_path):
    def save(text, name="in.onnx"):
        onnx.save(parsed(text), tmp_path / name)
        return str(tmp_path / name)

    return save


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.onnx"


def run_model(path, **feeds):
    return ort.InferenceSession(path).run(None, feeds)


def the_error(capsys):
    """Return the only line on stderr, after checking that stdout is empty."""
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("ortscan: error: ")
    return line


# optimize


def test_optimize_writes_a_model_without_the_loop_that_computes_the_same(save, out):
    source, x = save(MAP), np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    assert main(["optimize", source, str(out)]) == 0
    assert "Scan" not in {node.op_type for node in onnx.load(out).graph.node}
    np.testing.assert_allclose(run_model(out, x=x)[0], run_model(source, x=x)[0], rtol=1e-5)


def test_optimize_shows_plain_lines_that_are_broken_nowhere_in_a_pipe(save, out, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["optimize", save(MAP), "-o", str(out), "-v"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert sum(line.startswith("verified on onnxruntime: equal on ") for line in lines) == 1
    assert ["Scan", "1", "0"] in [line.split() for line in lines]
    output = " ".join(captured.out.split())
    assert re.match(r"(.* · )?1 of 1 loop gone · equal on \d+ cases ", output)
    assert "verified on onnxruntime: " in output
    assert "wrote " in output


def test_a_loop_that_is_left_is_listed_with_its_reason(save, out, capsys):
    source = save(RECURRENCE)
    main(["optimize", source, str(out), "--json"])
    code = json.loads(capsys.readouterr().out)["report"]["loops"][0]["reasons"][0]["code"]
    assert main(["optimize", source, str(out)]) == 0
    printed = capsys.readouterr().out
    assert code in printed
    assert "ortscan explain" in printed


def test_json_is_all_there_is_on_stdout(save, out, capsys):
    source = save(MAP)
    assert main(["optimize", source, str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["input"], document["output"]["path"]) == (source, str(out))
    assert document["report"]["operators_before"]["Scan"] == 1
    assert document["report"]["loops"][0]["fate"] == "removed"
    assert document["verification"]["ok"] is True


def test_quiet_prints_nothing(save, out, capsys):
    assert main(["optimize", save(MAP), str(out), "-q", "--debug"]) == 0
    assert capsys.readouterr() == ("", "")
    assert out.exists()


def test_dry_run_writes_no_model(save, tmp_path, capsys):
    assert main(["optimize", save(MAP), "--dry-run"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]
    assert "nothing written (--dry-run)" in capsys.readouterr().out


@pytest.mark.parametrize(("strict", "code"), [([], 0), (["--strict"], 4)])
def test_strict_fails_and_writes_nothing_when_nothing_changed(save, out, capsys, strict, code):
    assert main(["optimize", save(PLAIN), str(out), *strict]) == code
    assert out.exists() == (code == 0)
    assert "nothing changed · the model has no Scan or Loop · " in capsys.readouterr().out


def test_strict_is_content_when_something_changed(save, out):
    assert main(["optimize", save(MAP), str(out), "--strict"]) == 0
    assert out.exists()


def computes_something_else(monkeypatch):
    real = api.rewritten

    def wrong(model, **options):
        _, report = real(model, **options)
        return load(parsed(PLAIN)), report

    monkeypatch.setattr(api, "rewritten", wrong)


def test_a_result_that_differs_is_never_written(save, out, capsys, monkeypatch):
    source = save(MAP)
    out.write_bytes(b"old")
    computes_something_else(monkeypatch)
    assert main(["optimize", source, str(out), "--report", str(out.with_suffix(".html"))]) == 3
    assert out.read_bytes() == b"old"
    captured = capsys.readouterr()
    assert "NOT verified on onnxruntime" in captured.out
    assert "nothing written" in captured.out
    assert captured.err.startswith("ortscan: error: ")
    assert "different: output" in out.with_suffix(".html").read_text()


def test_a_result_that_cannot_be_compared_is_never_written(save, out, tmp_path, capsys):
    data = str(tmp_path / "data.npz")
    np.savez(data, x=np.ones((0, 4), np.float32))
    assert main(["optimize", save(MAP), str(out), "--inputs", data, "-q"]) == 3
    assert not out.exists()
    assert "nothing was compared" in the_error(capsys)


def test_no_verify_writes_without_comparing(save, out, capsys, monkeypatch):
    source = save(MAP)
    computes_something_else(monkeypatch)
    assert main(["optimize", source, str(out), "--no-verify"]) == 0
    assert out.exists()
    assert "not verified (--no-verify)" in capsys.readouterr().out


def test_given_inputs_are_the_ones_compared_on(save, out, tmp_path, capsys):
    source, data = save(MAP), str(tmp_path / "data.npz")
    np.savez(data, x=np.ones((7, 4), np.float32))
    assert main(["optimize", source, str(out), "--inputs", data, "--json"]) == 0
    cases = json.loads(capsys.readouterr().out)["verification"]["cases"]
    assert [case["dims"] for case in cases] == [{"T": 7}]


def test_a_model_can_be_replaced_in_place(save):
    source = save(MAP)
    assert main(["optimize", source, source, "-q"]) == 0
    assert "Scan" not in {node.op_type for node in onnx.load(source).graph.node}


def test_stop_after_makes_only_so_many_changes(save, capsys):
    source = save(MAP)
    assert main(["optimize", source, "--dry-run", "--stop-after", "0", "--strict", "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["report"]["patches"] == []


def test_every_listed_pass_can_be_skipped(save, capsys):
    assert main(["optimize", "--list-passes"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names
    assert main(["optimize", save(MAP), "--dry-run", "--strict", "-q", "--skip", ",".join(names)]) == 4


def test_weights_go_beside_the_model_on_request(save, out, tmp_path):
    weights = ", ".join(["0.5"] * 1024)
    source = save(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[T, 1024] x) => (float[T, 1024] y) <float[1024] w = {{{weights}}}> {{ y = Mul(x, w) }}"""
    )
    assert main(["optimize", source, str(out), "-q", "--save-as-external-data"]) == 0
    assert out.stat().st_size < 2048
    assert len(list(tmp_path.iterdir())) == 3
    np.testing.assert_array_equal(run_model(out, x=np.ones((1, 1024), np.float32))[0], np.full((1, 1024), 0.5, np.float32))


def test_odd_names_pass_through(tmp_path, capsys):
    proto = parsed(MAP)
    proto.graph.node[0].name = "[bold]模型[/x] é"
    onnx.save(proto, tmp_path / "[bold]é.onnx")
    assert main(["optimize", str(tmp_path / "[bold]é.onnx"), str(tmp_path / "[red]out.onnx")]) == 0
    printed = "".join(capsys.readouterr().out.split())
    assert "[red]out.onnx" in printed
    assert "[bold]模型[/x]é" in printed
    assert (tmp_path / "[red]out.onnx").exists()


def test_options_may_stand_between_the_files(save, out, tmp_path):
    source = save(MAP)
    assert main(["optimize", source, "--no-verify", str(out), "-q"]) == 0
    assert out.exists()
    assert main(["migrate", "-q", source, "--opset", "19", "--no-verify", str(tmp_path / "19.onnx")]) == 0
    assert onnx.load(tmp_path / "19.onnx").opset_import[0].version == 19
    assert main(["verify", source, "--seed", "3", str(out)]) == 0
    assert main(["explain", "--json", source, "--skip", "dead-code"]) == 0


def test_what_to_do_where_the_original_runs_on_nothing_is_said(save, out, capsys):
    refuses = """
    <ir_version: 8, opset_import: ["": 18]>
    g (float[T, 4] x) => (float[T, 4] y) <int64 big = {1000000000000}> {
      row = Gather(x, big)
      y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { yi = Add(xi, row) }> (x)
    }
    """
    source = save(refuses)
    assert main(["optimize", source, str(out), "-q"]) == 3
    output = the_error(capsys)
    assert "--inputs" in output
    assert "--no-verify" in output
    assert main(["migrate", source, str(out), "--opset", "19", "-q"]) == 3
    assert "--no-verify" in the_error(capsys)
    assert main(["verify", source, source]) == 3
    assert "--inputs" in capsys.readouterr().out
    assert not out.exists()


def test_a_result_that_is_refuted_is_not_advised_to_be_written(save, out, capsys, monkeypatch):
    source = save(MAP)
    computes_something_else(monkeypatch)
    assert main(["optimize", source, str(out), "-q"]) == 3
    assert "--no-verify" not in the_error(capsys)


@pytest.mark.parametrize(("dry_run", "lines"), [(False, 1), (True, 2)])
def test_nobody_is_told_to_run_a_file_that_was_not_written(dry_run: bool, lines: int) -> None:
    report = RewriteReport(operators_after=Counter({"ai.ortscan.Scan1": 1}))
    assert len(result_lines(argparse.Namespace(dry_run=dry_run), report, None)) == lines


# explain


def test_explain_says_what_became_of_each_loop_and_changes_nothing(save, capsys):
    source = save(RECURRENCE)
    before = Path(source).read_bytes()
    assert main(["explain", source]) == 0
    printed = capsys.readouterr().out
    assert "main/Scan" in printed
    assert "why" in printed
    assert Path(source).read_bytes() == before


def test_explain_gives_json_and_a_page(save, tmp_path, capsys):
    page = tmp_path / "r.html"
    assert main(["explain", save(MAP), "--json", "--report", str(page)]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["loops"][0]["kind"] == "Scan"
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_explain_tells_what_a_code_means(capsys):
    code = next(iter(CODES))
    assert main(["explain", code.lower()]) == 0
    assert " ".join(CODES[code].text.split()) in " ".join(capsys.readouterr().out.split())


def test_explain_of_an_unknown_code_names_the_nearest(capsys):
    assert main(["explain", f"{next(iter(CODES))}X"]) == 2
    assert next(iter(CODES)) in the_error(capsys)


# verify


@pytest.mark.parametrize(("other", "code"), [(MAP, 0), (PLAIN, 3)])
def test_verify_tells_same_from_different_by_its_exit_code(save, capsys, other, code):
    assert main(["verify", save(MAP), save(other, "b.onnx"), "-v"]) == code
    printed = capsys.readouterr().out
    assert printed.startswith("verified" if code == 0 else "NOT verified")
    assert "worst error" in printed


def test_verify_gives_json(save, capsys):
    assert main(["verify", save(MAP), save(PLAIN, "b.onnx"), "--json", "--shape", "x:3,4"]) == 3
    assert json.loads(capsys.readouterr().out)["verification"]["ok"] is False


def test_tolerances_decide(save):
    near = MAP.replace("yi = Mul(t, t)", "c = Constant <value_float = 1.001> () u = Mul(t, t) yi = Mul(u, c)")
    models = [save(MAP), save(near, "b.onnx")]
    assert main(["verify", *models, "--rtol", "0.01"]) == 0
    assert main(["verify", *models, "--rtol", "1e-6", "--atol", "0"]) == 3


# errors


def broken_models(tmp_path):
    whole = parsed(MAP).SerializeToString()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "text.onnx").write_text("not a model")
    (tmp_path / "folder").mkdir()
    return [str(tmp_path / name) for name in ("nosuch.onnx", "cut.onnx", "empty.onnx", "text.onnx", "folder")]


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("verb", ["optimize", "explain", "verify"])
def test_what_is_not_a_model_is_one_clear_line(tmp_path, capsys, verb, which):
    broken = broken_models(tmp_path)[which]
    before = sorted(tmp_path.iterdir())
    rest = {"optimize": [str(tmp_path / "x.onnx")], "explain": [], "verify": [broken]}[verb]
    assert main([verb, broken, *rest]) == 1
    assert Path(broken).name in the_error(capsys)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("place", ["no/such/folder/x.onnx", "", "in.onnx/x.onnx"])
@pytest.mark.parametrize("option", ["-o", "--report"])
def test_where_nothing_can_be_written_is_told_before_the_work(save, tmp_path, capsys, monkeypatch, place, option):
    source = save(MAP)
    monkeypatch.setattr(api, "rewritten", lambda *_, **__: pytest.fail("the work was begun"))
    target = ["-o", str(tmp_path / "x.onnx")] if option == "--report" else []
    assert main(["optimize", source, *target, option, str(tmp_path / place)]) == 1
    assert str(tmp_path / place) in the_error(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]


@pytest.mark.parametrize("verb", [["optimize", "--dry-run"], ["explain"]])
def test_a_report_never_replaces_the_model(save, capsys, verb):
    source = save(MAP)
    before = Path(source).read_bytes()
    assert main([*verb, source, "--report", source]) == 2
    assert "would replace the model" in the_error(capsys)
    assert Path(source).read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["optimise"],
        ["optimize", "in.onnx"],
        ["optimize", "in.onnx", "a.onnx", "-o", "b.onnx"],
        ["optimize", "in.onnx", "--dry-run", "--shape", "x"],
        ["optimize", "in.onnx", "--dry-run", "--memory-budget", "lots"],
        ["optimize", "in.onnx", "--dry-run", "--passes", "nosuchpass"],
        ["optimize", "in.onnx", "--dry-run", "--target", "toaster"],
        ["optimize", "in.onnx", "--dry-run", "--opset", "99"],
        ["optimize", "in.onnx", "--dry-run", "--seed", "-1"],
        ["optimize", "in.onnx", "--no-verify", "a.onnx", "b.onnx"],
        ["verify", "in.onnx"],
    ],
)
def test_wrong_usage_gives_2(save, monkeypatch, capsys, words):
    monkeypatch.chdir(Path(save(MAP)).parent)
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error: " in captured.err


def test_inputs_that_are_no_npz_file_are_one_clear_line(save, out, tmp_path, capsys):
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "text.npz").write_text("x")
    for name in ("one.npy", "text.npz", "nosuch.npz"):
        assert main(["optimize", save(MAP), str(out), "--inputs", str(tmp_path / name)]) == 1
        assert name in the_error(capsys)


def test_an_empty_path_is_said_to_be_empty(save, out, tmp_path, capsys):
    source = save(MAP)
    for words in (
        ["optimize", source, ""],
        ["optimize", "", str(out)],
        ["verify", source, ""],
        ["explain", ""],
        ["optimize", source, str(out), "--inputs", ""],
    ):
        assert main(words) == 1
        assert "empty" in the_error(capsys)
    assert not out.exists()


@pytest.mark.parametrize(
    ("raised", "code", "message"), [(KeyboardInterrupt(), 130, "interrupted"), (ValueError("a\n b"), 1, "a b")]
)
def test_whatever_goes_wrong_is_one_line(save, out, capsys, monkeypatch, raised, code, message):
    def fail(*_, **__):
        raise raised

    source = save(MAP)
    monkeypatch.setattr(api, "rewritten", fail)
    assert main(["optimize", source, str(out)]) == code
    assert message in the_error(capsys)
    assert main(["optimize", source, str(out), "-vv"]) == code
    assert ("Traceback" in capsys.readouterr().err) == (code == 1)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("onnx_ir", "ortscan needs onnx_ir, which is not installed: pip install onnx-ir"),
        ("rich", "ortscan needs rich, which is not installed: pip install rich"),
        ("ortscan.report", "internal error; please report it"),
    ],
)
def test_a_missing_package_is_no_internal_error(save, monkeypatch, capsys, module, message):
    def fail(*_, **__):
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    source = save(MAP)
    monkeypatch.setattr(api, "rewritten", fail)
    assert main(["optimize", source, "--dry-run"]) == 1
    assert the_error(capsys).startswith(f"ortscan: error: {message}")


# the process, and the terminal


def python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)


def test_help_needs_nothing_heavy():
    code = (
        "import sys; from ortscan.__main__ import main; assert main(['optimize', '--help']) == 0; "
        "sys.exit(', '.join({'onnx', 'onnx_ir', 'onnxruntime', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = python(code)
    assert done.stderr.strip() == ""
    assert "--memory-budget" in done.stdout


def test_version_names_what_it_runs_on(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"ortscan {ortscan.__version__} (onnx {onnx.__version__}, ")


def test_where_the_library_is_missing_the_version_and_what_needs_it_say_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    assert main(["--version"]) == 0
    assert ", no native loop engine, " in capsys.readouterr().out
    decoder = Path(__file__).parents[3] / "examples" / "torch_attention_decoder.onnx"
    assert main(["optimize", str(decoder), str(tmp_path / "o.onnx"), "--native", "--verify", "quick"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "compiled loops run on onnxruntime here: the environment variable ORTSCAN_NATIVE is 0." in output


def test_the_help_and_the_readme_know_every_target_and_exit_code(capsys):
    assert main(["optimize", "--help"]) == 0
    shown = capsys.readouterr().out
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    for target in TARGETS:
        assert target in shown
        assert f'"{target}"' in readme
    assert all(word in shown for word in ("keep", "auto"))
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    codes = readme[readme.index("Exit codes:") :]
    for code in ExitCode:
        assert f"{int(code)} " in shown
        assert f"{int(code)} " in codes[: codes.index("\n\n")]


def test_the_exit_code_reaches_the_shell():
    done = subprocess.run([sys.executable, "-m", "ortscan", "explain", "nosuch.onnx"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ortscan: error: nosuch.onnx: No such file or directory\n"


@pytest.mark.parametrize("module", ["argparse", "ortscan.cli.command", "onnx", "onnx_ir", "onnxruntime"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str, save):
    code = f"""import runpy, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = ["ortscan", "explain", {save(MAP)!r}]
runpy.run_module("ortscan", run_name="__main__", alter_sys=True)"""
    done = python(code)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [[next(iter(CODES))], [next(iter(CODES)), "--json"], ["--list-codes"]])
def test_a_reader_that_leaves_early_is_no_error_message(words):
    command = [sys.executable, "-m", "ortscan", "explain", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def shell(line):
    done = subprocess.run(["sh", "-c", f"exec {sys.executable} -m ortscan {line}"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_a_closed_stdout_is_no_error(save, out):
    assert shell(f"optimize {save(MAP)} {out} >&-") == (0, "", "")
    onnx.checker.check_model(str(out), full_check=True)
    assert shell(f"optimize nosuch.onnx {out} <&- >&- 2>&-") == (1, "", "")


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_stdout_is_named(save):
    for verb in ("explain RECURRENCE", f"explain {save(MAP)}", "optimize --list-passes"):
        assert shell(f"{verb} >/dev/full") == (1, "", "ortscan: error: standard output: No space left on device\n")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "options", "coloured"), [({}, [], True), ({"NO_COLOR": "1"}, [], False), ({}, ["--no-color"], False)]
)
def test_colours_are_for_terminals_that_want_them(save, monkeypatch, variables, options, coloured):
    source = save(MAP)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **variables}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["explain", source, *options]) == 0
    assert ("\x1b[" in terminal.getvalue()) == coloured


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_slow_work_is_announced_to_whoever_watches(monkeypatch, stream, shown):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(streams, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with streams.show_progress("rewriting [bold]x") as step:
        time.sleep(0.15)
        step(1, 2)
    assert ("rewriting [bold]x" in stream.getvalue()) == shown


# values


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("256M", 256 << 20), ("1g", 1 << 30), ("1.5K", 1536), ("2GiB", 2 << 30), ("3MB", 3 << 20)]
)
def test_sizes_are_read(text, size):
    assert read_byte_size(text) == size


@pytest.mark.parametrize(
    ("text", "read"),
    [("x:64,1,128", ("x", (64, 1, 128))), ("x:[64, 1]", ("x", (64, 1))), ("a/b:0:2,3", ("a/b:0", (2, 3))), ("s:[]", ("s", ()))],
)
def test_shapes_are_read(text, read):
    assert read_shape(text) == read


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        *((read_shape, text) for text in ("x", "x:", ":3", "x:[3", "x:3]", "x:a", "x:3,,4", "x:-1")),
        *((read_byte_size, text) for text in ("", "M", "-1", "1X", "1 2")),
        *((read_tolerance, text) for text in ("-1", "nan", "inf", "much")),
        (read_name_list, "a,,b"),
        *((read_count, text) for text in ("-1", "", "1.5", "x")),
    ],
)
def test_values_that_make_no_sense_are_refused(reader, text):
    with pytest.raises(argparse.ArgumentTypeError):
        reader(text)


@pytest.mark.parametrize("verb", [["optimize"], ["migrate", "--opset", "20"]])
@pytest.mark.parametrize(("asked", "level"), [([], "full"), (["--verify", "quick"], "quick")])
def test_a_result_is_compared_in_full_unless_asked_otherwise(save, out, capsys, verb, asked, level):
    assert main([*verb, save(MAP), "-o", str(out), "--json", *asked]) == 0
    assert json.loads(capsys.readouterr().out)["verification"]["level"] == level


def test_verify_and_no_verify_contradict_each_other(save, out, capsys):
    assert main(["optimize", save(MAP), str(out), "--verify", "quick", "--no-verify"]) == 2
    assert "not allowed with" in capsys.readouterr().err
