from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", str(folder))
    return folder
