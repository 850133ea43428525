import pytest

from ortscan.native import library as installed
from tests.support.native_plans import library


@pytest.fixture(autouse=True)
def _with_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
