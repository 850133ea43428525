"""The same model and options give the same bytes in every process and every thread."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ortscan
from tests.support.corpus import shipped_corpus

pytestmark = pytest.mark.long

MODELS = sorted(path for path in shipped_corpus().glob("*.onnx"))
ROOT = Path(__file__).parents[2]


def digest(path: Path) -> str:
    result = ortscan.optimize(path, target="onnx", verify=False)
    return hashlib.sha256(result.SerializeToString()).hexdigest()


def digests_under(seed: int) -> list[str]:
    code = "from tests.ortscan.test_determinism import MODELS, digest; print(*map(digest, MODELS))"
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-Wignore", "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.split()


def test_processes_with_other_hash_seeds_and_four_threads_at_a_time_give_the_same_bytes() -> None:
    with ThreadPoolExecutor(4) as threads:
        here = list(threads.map(digest, MODELS))
    assert MODELS
    assert digests_under(1) == here
    assert digests_under(2) == here
