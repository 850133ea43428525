"""The names with which provider packages tell onnxruntime what to load."""

import subprocess
import sys

import pytest

import ortscan
from ortscan.native import library as installed

SESSION = """
import numpy as np, onnxruntime as ort, ortscan
from tests.support.native_plans import library
from ortscan.native import library as installed
installed._built = library
from tests.support.plugin_sessions import SCAN, feeds_of_scan
from tests.support.text import model_from_text
ort.register_execution_provider_library(ortscan.get_ep_name(), ortscan.get_library_path())
assert ortscan.get_library_path() == ortscan.get_library_path()
options = ort.SessionOptions()
options.add_provider_for_devices([each for each in ort.get_ep_devices() if each.ep_name in ortscan.get_ep_names()][:1], {})
data = model_from_text(SCAN, 18).SerializeToString()
session = ort.InferenceSession(data, options)
assert session.get_providers()[0] == ortscan.get_ep_name(), session.get_providers()
for ours, theirs in zip(session.run(None, feeds_of_scan()), ort.InferenceSession(data).run(None, feeds_of_scan())):
    np.testing.assert_array_equal(ours, theirs)
"""


def test_a_session_runs_with_what_the_names_say() -> None:
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_library_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", lambda: None)
    with pytest.raises(ortscan.OptionError, match="get_library_path needs ortscan's library: "):
        ortscan.get_library_path()
