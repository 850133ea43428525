"""The shape of the code itself: imports run down the floors and never in a circle, cheap imports, public names in every module."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from rewrites.rule import Rule

ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "rewrites").rglob("*.py"), *(ROOT / "ortscan").rglob("*.py")])
REWRITES = [file for file in FILES if file.is_relative_to(ROOT / "rewrites")]
FLOORS = {
    "rewrites": [
        "base",
        "graph",
        "ops",
        "loops",
        "analysis",
        "batching",
        "scans",
        "rule",
        *(
            "cleanup",
            "scan_form",
            "loop_form",
            "fission",
            "recurrent_nodes",
            "unroll",
            "recurrences",
            "repair",
            "direction",
            "tidy",
            "weights",
        ),
        "native",
        "migration",
        "stepping",
        "python_ops",
        "registry",
        "driver",
    ],
    "ortscan": [
        *(
            "errors",
            "base",
            "ort",
            "targets",
            "option_texts",
            "option_types",
            "model_options",
            "options",
            "verb_options",
            "option_words",
            "rule_choice",
            "modelio",
            "edge",
            "native",
            "custom_ops",
            "running",
            "soundness",
        ),
        *(
            "migration",
            "drawing",
            "page",
            "report",
            "verification",
            "benchmark",
            "pipeline",
            "advice",
            "plugin",
            "cache",
            "session",
            "api",
            "benching",
            "explaining",
            "looping",
            "passes",
            "hosts",
            "cli",
            "__main__",
        ),
    ],
    "ortscan.verification": [
        *(
            "result_html",
            "result",
            "inputs",
            "oracle",
            "judge",
            "compare_settings",
            "compare_models",
            "cut_loop",
            "compare_steps",
            "compare_loops",
            "verifier",
        )
    ],
}
HEAVY = {"onnxruntime", "onnxruntime_extensions", "rich", "torch"}


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in FILES}
IMPORTABLE = [name for name in MODULES if not name.startswith("ortscan.hosts.")]
"""The modules of ``ortscan.hosts`` import tools of others, which need not be installed."""


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (alias.name for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            assert inner.level == 0, "a relative import"
            yield from (f"{inner.module}.{alias.name}" for alias in inner.names)


def imported_at_once(tree: ast.AST) -> Iterator[str]:
    """What is imported when the module is: not in functions, and not for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imported_at_once(node)


def top(name: str) -> str:
    return name.partition(".")[0]


def test_there_are_modules_to_look_at() -> None:
    assert {"rewrites.driver.engine", "ortscan.api", "rewrites.repair.own_outputs"} <= MODULES.keys()


def test_rewrites_needs_no_runtime_and_no_product() -> None:
    forbidden = {"ortscan", "onnxruntime", "onnxruntime_extensions", "tests"}
    assert [name_of(file) for file in REWRITES if {top(name) for name in imported(tree_of(file))} & forbidden] == []


@pytest.mark.parametrize("package", FLOORS)
def test_no_import_runs_up_the_floors(package: str) -> None:
    """Imports in functions count too: they are made late, not hidden."""
    floors = {floor: height for height, floor in enumerate(FLOORS[package])}
    inside = {name: floor for name in MODULES if (floor := floor_of(name, package))}
    assert set(inside.values()) == floors.keys()
    arrows = [(name, other) for name in inside for other in needed(name) if other in inside]
    assert len(arrows) > len(inside)
    assert [(name, other) for name, other in arrows if floors[inside[other]] > floors[inside[name]]] == []


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for type checkers count too."""
    needs = {name: {*needed(name)} - {name} for name in MODULES}
    while ends := {name for name in needs if not needs[name] or not any(name in others for others in needs.values())}:
        needs = {name: others - ends for name, others in needs.items() if name not in ends}
    assert sorted(needs) == []


def test_nothing_inside_a_package_asks_the_package_itself() -> None:
    """What it offers to users stands above all floors."""
    asking = [(name, other) for name, file in MODULES.items() for other in imported(tree_of(file)) if other.startswith("ortscan")]
    outside = [(name, other) for name, other in asking if name != "ortscan" and top(other) == "ortscan"]
    assert [
        (name, other) for name, other in outside if other == "ortscan" or (other.count(".") == 1 and other not in MODULES)
    ] == []


def floor_of(module: str, package: str) -> str:
    """The floor of ``package`` that a module is on; none for the package itself, and for what is elsewhere."""
    return module.removeprefix(f"{package}.").partition(".")[0] if module.startswith(f"{package}.") else ""


def needed(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, whenever and whatever for."""
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported(node):
                found = name if name in MODULES else name.rpartition(".")[0]
                if found in MODULES:
                    yield found


def test_no_module_is_over_250_lines() -> None:
    assert [name for name, file in MODULES.items() if len(file.read_text(encoding="utf-8").splitlines()) > 250] == []


def test_rule_modules_are_imported_by_the_registry_alone() -> None:
    rules = {name for name, _ in rule_modules()}
    assert len(rules) > 40
    others = MODULES.keys() - {"rewrites.registry"}
    assert [(name, rule) for name in others for rule in needed(name) if rule in rules] == []


def test_every_rule_is_in_the_registry() -> None:
    """A rule that nobody registers is never asked."""
    registry = importlib.import_module("rewrites.registry")
    asked = {id(rule) for rule in (*registry.RULES, *registry.ON_MODELS)}
    assert [name for name, module in rule_modules() if id(module.RULE) not in asked] == []


def test_a_rule_is_found_by_its_name() -> None:
    """Where two rules have one name, which options use together, the file of one of them has it."""
    rules = [(name, module.RULE.name) for name, module in rule_modules()]
    found = {rule for name, rule in rules if name.rpartition(".")[2] == rule.replace("-", "_")}
    assert [(name, rule) for name, rule in rules if rule not in found] == []
    assert len(rules) > 40


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, file in MODULES.items() if not ast.get_docstring(tree_of(file))] == []


def test_every_module_says_what_it_offers_and_has_it() -> None:
    silent = [name for name in IMPORTABLE if not isinstance(getattr(importlib.import_module(name), "__all__", None), list)]
    assert silent == []
    missing = [(name, offer) for name, module in loaded() for offer in module.__all__ if not hasattr(module, offer)]
    assert missing == []


def rule_modules() -> list[tuple[str, ModuleType]]:
    return [(name, module) for name, module in loaded() if isinstance(getattr(module, "RULE", None), Rule)]


def loaded() -> Iterator[tuple[str, ModuleType]]:
    return ((name, importlib.import_module(name)) for name in IMPORTABLE)


def test_only_the_command_line_prints() -> None:
    prints = ("print", "sys.stdout.write", "sys.stderr.write")
    quiet = [file for file in FILES if not file.is_relative_to(ROOT / "ortscan" / "cli")]
    calls = [(file, node) for file in quiet for node in ast.walk(tree_of(file)) if isinstance(node, ast.Call)]
    assert [(name_of(file), call.lineno) for file, call in calls if ast.unparse(call.func) in prints] == []


def test_no_module_imports_a_runtime_or_a_screen_before_it_is_needed() -> None:
    screens = [ROOT / "ortscan" / "cli", ROOT / "ortscan" / "report"]
    subclasses = [ROOT / "ortscan" / "session" / name for name in ("inference_session.py", "running.py")]
    rest = [file for file in FILES if file not in subclasses and not any(file.is_relative_to(folder) for folder in screens)]
    assert [name_of(file) for file in rest if {top(name) for name in imported_at_once(tree_of(file))} & HEAVY] == []


def in_a_fresh_interpreter(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_ortscan_imports_no_runtime() -> None:
    code = f"import sys, ortscan; print(*sorted({HEAVY!r} & sys.modules.keys()))"
    assert in_a_fresh_interpreter(code).split() == []


def test_optimizing_a_model_without_loops_needs_no_runtime() -> None:
    code = (
        "import onnx, sys, ortscan\n"
        "text = '<ir_version: 10, opset_import: [\"\": 18]> g (float[2] x) => (float[2] y) { y = Exp (x) }'\n"
        "ortscan.optimize(onnx.parser.parse_model(text))\n"
        "print('onnxruntime' in sys.modules)"
    )
    assert in_a_fresh_interpreter(code).split() == ["False"]


def test_every_module_can_be_the_first_to_be_imported() -> None:
    """Whatever comes first, nothing is met half loaded: no module needs itself, counting the packages it makes Python load."""
    needs = {name: set(loaded_by(name, file)) - {name} for name, file in MODULES.items()}
    done: set[str] = set()
    while ready := {name for name in needs if name not in done and needs[name] <= done}:
        done |= ready
    assert sorted(needs.keys() - done) == []


def loaded_by(module: str, file: Path) -> Iterator[str]:
    for name in imported_at_once(tree_of(file)):
        found = name if name in MODULES else name.rpartition(".")[0]
        if found not in MODULES:
            continue
        yield found
        parts = found.split(".")
        packages = (".".join(parts[:count]) for count in range(1, len(parts)))
        yield from (package for package in packages if not f"{module}.".startswith(f"{package}."))


@pytest.mark.parametrize("module", ["rewrites.loops.parts", "rewrites.driver.engine", "ortscan.api"])
def test_a_module_can_indeed_be_imported_alone(module: str) -> None:
    in_a_fresh_interpreter(f"import {module}")
