"""The execution providers that can be had without their hardware, and how: a wheel, a plugin beside onnxruntime, a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnxruntime

__all__ = ["PROVIDERS", "Missing", "Provider", "cache_folder"]

_HERE = Path(__file__).parent


class Missing(Exception):
    """What a provider needs is not here; says what."""


@dataclass(frozen=True)
class Provider:
    """One provider: the target of ortscan it stands for, packages it comes from, and how much it may round.

    ``plugin``: the module of a plugin, where it is one. ``browser``: whether it runs in a page. ``runtime``: the onnxruntime of its wheel.
    """

    name: str
    target: str
    provider: str
    packages: tuple[str, ...]
    plugin: str = ""
    options: dict[str, str] = field(default_factory=dict)
    browser: bool = False
    tolerance: float = 1e-4
    about: str = ""
    timed: bool = True

    def run(self, jobs: Sequence[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
        """Give the answer of each job, in order; one that ends the process is answered for here, and the next ones run in another."""
        command, left = self._command(folder), list(jobs)
        while left:
            listed = folder / f"{self.name}.jobs.json"
            listed.write_text(json.dumps(left))
            run = subprocess.run(
                [*command, listed], capture_output=True, text=True, timeout=3600, check=False, env=self._environment()
            )
            answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
            yield from (answer for answer in answers if "begun" not in answer)
            done = {answer["name"] for answer in answers if "name" in answer}
            begun = [answer["begun"] for answer in answers if "begun" in answer and answer["begun"] not in done]
            ended = {"failed": f"the process ended with {run.returncode}"}
            if not begun and run.returncode:
                raise Missing(f"{self.name} does not start: {run.stderr.strip().splitlines()[-1:]}")
            left = [job for job in left if job["name"] not in done]
            for job in [job for job in left if job["name"] in begun]:
                left.remove(job)
                yield {"name": job["name"], "results": self._one_by_one(job, folder) if len(job["models"]) > 1 else [ended]}

    def _one_by_one(self, job: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
        """Return what each model of a job comes to in a process of its own."""
        alone = [{**job, "name": f"{job['name']} {at}", "models": [path]} for at, path in enumerate(job["models"])]
        return [
            result for one in alone for answer in self.run([one], folder) if "results" in answer for result in answer["results"]
        ]

    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def _command(self, folder: Path) -> list[str | Path]:
        place = cache_folder() / self.name
        how: dict[str, Any] = {"provider": self.provider, "options": self.options}
        if not self.browser:
            if self.plugin:
                how["plugin"] = self.plugin
            return [_python(place, self.packages), "-W", "ignore", _HERE / "child.py", json.dumps(how)]
        browser, node = (shutil.which(name) for name in ("chromium", "node"))
        if not browser or not node:
            raise Missing("a page needs chromium and node: apt-get install chromium nodejs npm")
        if not (place / "node_modules").exists():
            place.mkdir(parents=True, exist_ok=True)
            (place / "package.json").write_text("{}")
            subprocess.run(["npm", "install", "--silent", *self.packages], cwd=place, check=True, capture_output=True)
        return [node, _HERE / "child.mjs", json.dumps({**how, "folder": str(place), "browser": browser})]

    def provider_names(self) -> tuple[str, ...]:
        """Return what onnxruntime calls it where it says which nodes it has."""
        return {"webgpu": ("WebGpuExecutionProvider", "JsExecutionProvider"), "wasm": ("CPUExecutionProvider",)}.get(
            self.provider, (self.plugin or self.provider,)
        )

    def runtime(self) -> str | None:
        """Return the release of its onnxruntime where that is older than the one installed here."""
        found = re.search(r"onnxruntime(?:-openvino|-web)? (\d+\.\d+)", self.versions())
        here = ".".join(onnxruntime.__version__.split(".")[:2])
        return found[1] if found and found[1] != here else None

    def versions(self) -> str:
        """Return what it was run with."""
        self._command(cache_folder())
        place = cache_folder() / self.name
        if self.browser:
            found = {
                name: json.loads((place / "node_modules" / name / "package.json").read_text())["version"] for name in self.packages
            }
            chromium = subprocess.run(["chromium", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
            return f"onnxruntime-web {found['onnxruntime-web']} in Chromium {chromium}"
        ask = "import importlib.metadata as m, sys; print(', '.join(n + ' ' + m.version(n) for n in sys.argv[1:]))"
        said = subprocess.run(
            [_python(place, self.packages), "-c", ask, *self.packages[:-1]], capture_output=True, text=True, check=True
        )
        return said.stdout.strip()


def cache_folder() -> Path:
    """Return where environments and packages are kept: ``ORTSCAN_TEST_CACHE``, or a folder of the user's cache."""
    return Path(os.environ.get("ORTSCAN_TEST_CACHE") or Path.home() / ".cache" / "ortscan-tests")


def _python(place: Path, packages: Sequence[str]) -> Path:
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        venv.create(place, with_pip=True, clear=True)
        try:
            subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            raise Missing(f"{' '.join(packages)} cannot be installed: {error.stderr.strip().splitlines()[-1]}") from error
        (place / "installed").touch()
    return python


_WEB = ("onnxruntime-web", "playwright-core")

PROVIDERS: tuple[Provider, ...] = (
    Provider("openvino", "openvino", "OpenVINOExecutionProvider", ("onnxruntime-openvino", "numpy"), options={"device_type": "CPU"}, about="its CPU device"),
    Provider(
        "qnn", "qnn", "onnxruntime_qnn", ("onnxruntime", "onnxruntime-qnn", "numpy"), plugin="onnxruntime_qnn",
        options={"backend_path": "{package}/libQnnHtp.so", "soc_model": "57", "htp_arch": "75"}, tolerance=2e-2, about="the simulator that its HTP backend is on x86, as a Snapdragon 8 Gen 3; its times say nothing", timed=False,
    ),
    Provider("web-webgpu", "webgpu", "webgpu", _WEB, browser=True, tolerance=1e-3, about="WebGPU by SwiftShader, without a GPU"),
    Provider("web-wasm", "cpu", "wasm", _WEB, browser=True, about="one thread"),
)  # fmt: skip

if sys.platform != "linux":  # pragma: no cover
    PROVIDERS = tuple(each for each in PROVIDERS if each.name != "qnn")
