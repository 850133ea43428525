"""Runs models on one execution provider, in the environment of that provider: it needs numpy and onnxruntime alone.

``python child.py HOW JOBS`` reads a list of jobs and prints a line of JSON for each: where the nodes went, the times, or what was refused.
"""

import importlib
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort


def options_of(how: dict[str, Any]) -> tuple[ort.SessionOptions, dict[str, Any]]:
    """Return the options of a session on the provider, and what else makes one."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if "plugin" not in how:
        return options, {"providers": [(how["provider"], how.get("options", {}))]}
    chosen = [device for device in ort.get_ep_devices() if device.ep_name == how["plugin"]]
    package = Path(importlib.import_module(how["plugin"]).__file__ or "").parent
    options.add_provider_for_devices(
        chosen[:1], {key: str(value).format(package=package) for key, value in how.get("options", {}).items()}
    )
    return options, {}


def places(session: ort.InferenceSession) -> dict[str, dict[str, int]]:
    """Return how many nodes of each operator each provider has."""
    found: dict[str, Counter[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return {name: dict(count) for name, count in found.items()}


def one(path: str, feeds: dict[str, np.ndarray], how: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Load and run one model; return what is to be said, and the session where it runs."""
    try:
        options, others = options_of(how)
        start = time.perf_counter()
        session = ort.InferenceSession(path, options, **others)
        session.disable_fallback()
        loading = (time.perf_counter() - start) * 1e3
    except Exception as error:
        return {"refused": str(error)}, None
    said: dict[str, Any] = {"places": places(session), "loading": loading, "copies": 0}
    try:
        outputs = session.run(None, feeds)
    except Exception as error:
        return {**said, "failed": str(error)}, None
    np.savez(f"{path}.out.npz", *outputs)
    return said, session


def main(how: dict[str, Any], jobs: list[dict[str, Any]]) -> None:
    """Run the models of each job, then all of them in turn for their times."""
    if "plugin" in how:
        library = importlib.import_module(how["plugin"]).get_library_path()
        ort.register_execution_provider_library(how["plugin"], library)
    for job in jobs:
        print(json.dumps({"begun": job["name"]}), flush=True)
        feeds = dict(np.load(job["feeds"]))
        results = [one(path, feeds, how) for path in job["models"]]
        times: list[list[float]] = [[] for _ in results]
        for _ in range(job["runs"]):
            for at, (_, session) in enumerate(results):
                if session is not None:
                    start = time.perf_counter()
                    session.run(None, feeds)
                    times[at].append((time.perf_counter() - start) * 1e3)
        for (said, _), taken in zip(results, times, strict=True):
            if taken:
                said["ms"] = sorted(taken)[len(taken) // 2]
        print(json.dumps({"name": job["name"], "results": [said for said, _ in results]}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
